//! A packet as its sender keeps it: encoded operations, and the location of bulk payload.
//!
//! Small operations are copied into the body. The payload of a put is not: it is read from its source at every
//! transmission, and goes between `body[..split]` and `body[split..]`.

use alloc::vec::Vec;

use crate::ids::{Key, RegionId};
use crate::time::Instant;
use crate::transmit::Following;
use crate::wire::packed::Operation;

/// Payload that is read from memory at each transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadSource {
    /// Region of this node.
    pub region: RegionId,
    /// First byte in the region.
    pub offset: u64,
    /// Number of bytes.
    pub length: usize,
    /// Offset in the body at which the payload goes.
    pub split: usize,
    /// Number of the peer's get that requested these bytes, in the peer's bulk stream.
    pub answers: Option<u32>,
    /// Payload that follows these bytes.
    pub following: Following,
}

/// One packet of a stream.
#[derive(Debug, Default)]
pub struct Packet {
    /// Encoded operations without the gathered payload.
    pub body: Vec<u8>,
    /// Payload to gather.
    pub source: Option<PayloadSource>,
    /// Number of numbered operations in the packet.
    pub operation_count: u8,
    /// Number of the first operation.
    pub first_operation: u32,
    /// Region and key of the last select, for the operations packed next.
    pub selected: Option<(RegionId, Key)>,
    /// Number of transmissions.
    pub transmissions: u32,
    /// Time of the last transmission.
    pub sent_at: Instant,
    /// Index of the last transmission among all transmissions of the stream.
    pub order: u64,
    /// Path of the last transmission, if the stream uses several.
    pub path: u16,
    /// True if the receiver holds the packet, but not all packets before it.
    pub is_held_by_receiver: bool,
    /// True if the packet must be retransmitted.
    pub is_lost: bool,
}

impl Packet {
    /// Number of bytes after the fabric header.
    #[must_use]
    pub fn length(&self) -> usize {
        self.body.len() + self.source.map_or(0, |source| source.length)
    }

    /// Appends an operation.
    #[inline(always)]
    pub(super) fn add(&mut self, address: Option<(RegionId, Key)>, operation: &Operation<'_>) {
        self.select(address);
        operation.encode(&mut self.body);
        self.operation_count += 1;
    }

    /// Appends a select, unless the same region and key are already selected.
    #[inline(always)]
    pub(super) fn select(&mut self, address: Option<(RegionId, Key)>) {
        let Some((region, key)) = address else { return };
        if self.selected != address {
            Operation::Select { region, key }.encode(&mut self.body);
            self.selected = address;
        }
    }

    /// Resets a packet for reuse; its buffer stays allocated.
    #[inline]
    pub(super) fn begin(&mut self, first_operation: u32) {
        self.clear();
        self.first_operation = first_operation;
        self.transmissions = 0;
        self.sent_at = Instant::ZERO;
        self.order = 0;
        self.path = 0;
        self.is_held_by_receiver = false;
        self.is_lost = false;
    }

    /// Makes the packet void: it keeps its number and has no content.
    #[inline]
    pub fn clear(&mut self) {
        self.body.clear();
        self.source = None;
        self.operation_count = 0;
        self.selected = None;
    }
}
