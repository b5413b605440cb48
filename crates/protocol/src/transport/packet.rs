//! A packet as its sender keeps it: encoded operations, and a note of where bulk payload lies.
//!
//! Small operations are copied into the body. A put's payload is not: it is read from the source again at every
//! transmission, between `body[..split]` and `body[split..]`.

use alloc::vec::Vec;

use crate::ids::{Key, RegionId};
use crate::surroundings::Following;
use crate::time::Instant;
use crate::wire::packed::Operation;

/// Payload that is gathered at transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadSource {
    /// Own region.
    pub region: RegionId,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: usize,
    /// Place in the body before which the payload goes.
    pub split: usize,
    /// The peer's get that asked for these bytes, by its number in the peer's bulk stream.
    pub answers: Option<u32>,
    /// What follows them.
    pub following: Following,
}

/// One packet.
#[derive(Debug, Default)]
pub struct Packet {
    /// Encoded operations without the gathered payload.
    pub body: Vec<u8>,
    /// Payload to gather.
    pub source: Option<PayloadSource>,
    /// Numbered operations in the packet.
    pub operation_count: u8,
    /// Number of the first of them.
    pub first_operation: u32,
    /// Region and key selected last, for what is packed next.
    pub selected: Option<(RegionId, Key)>,
    /// Times the packet was sent.
    pub transmissions: u32,
    /// When it was sent last.
    pub sent_at: Instant,
    /// Place of that transmission among all transmissions of the stream.
    pub order: u64,
    /// Over which of several ways that was.
    pub way: u16,
    /// The receiver has it, though not everything before it.
    pub is_held_by_receiver: bool,
    /// To be sent again.
    pub is_lost: bool,
}

impl Packet {
    /// Bytes after the fabric header.
    #[must_use]
    pub fn length(&self) -> usize {
        self.body.len() + self.source.map_or(0, |source| source.length)
    }

    /// Add an operation behind the others.
    #[inline(always)]
    pub(super) fn add(&mut self, address: Option<(RegionId, Key)>, operation: &Operation<'_>) {
        self.select(address);
        operation.encode(&mut self.body);
        self.operation_count += 1;
    }

    /// Say what the next operations are about, if the last ones were about something else.
    #[inline(always)]
    pub(super) fn select(&mut self, address: Option<(RegionId, Key)>) {
        let Some((region, key)) = address else { return };
        if self.selected != address {
            Operation::Select { region, key }.encode(&mut self.body);
            self.selected = address;
        }
    }

    /// Begin anew in the place of a packet that is over; its buffer stays.
    #[inline]
    pub(super) fn begin(&mut self, first_operation: u32) {
        self.clear();
        self.first_operation = first_operation;
        self.transmissions = 0;
        self.sent_at = Instant::ZERO;
        self.order = 0;
        self.way = 0;
        self.is_held_by_receiver = false;
        self.is_lost = false;
    }

    /// Make the packet void: it keeps its number and says nothing.
    #[inline]
    pub fn clear(&mut self) {
        self.body.clear();
        self.source = None;
        self.operation_count = 0;
        self.selected = None;
    }
}
