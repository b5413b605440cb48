//! Credits of a rack file. Unstated ones follow from the wire.

use rackloom_protocol::{CreditConfig, CreditUpdates};

use crate::model::links::of_link::OwnCredits;
use crate::model::links::wire::{FrameBuffer, WireKind, WireProperties};
use crate::setting::section::section;
use crate::setting::table::Kind;

/// Credits of one link in the default receive buffer of the kernel, in bytes (`docs/decisions/credits-in-truesize.md`).
const PACKET_BUFFER_BYTES: u32 = 160 << 10;
/// Credits on the udp wire, in bytes. They are fewer, because a datagram socket keeps a part of the bytes that have been read.
const UDP_BUFFER_BYTES: u32 = 120 << 10;

section! {
    /// Credit settings of the file. `None` follows from the wire.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct CreditChoice: CREDITS = "credits" {
        /// Bytes of one credit.
        unit_bytes: Option<u16> {
            form = Kind::Size(32, 2048);
            default = None;
            shown = "`128B`; packet and udp wires `256B` (ours)";
        }
        /// Bytes that are added to each frame, for the memory that the wire needs beside the frame's bytes.
        overhead_bytes: Option<u16> {
            form = Kind::Size(0, 8192);
            default = None;
            shown = "`16B`; packet and udp wires `1024B` (ours)";
        }
        /// Credits of one link direction.
        limit: Option<u32> {
            form = Kind::Count(0, u32::MAX as u64);
            default = None;
            shown = "half of `ring_bytes`; packet wire 160KiB, udp wire 120KiB (ours)";
        }
        /// Freed bytes after which an update leaves as a frame of its own.
        update_spacing_bytes: Option<u64> {
            key = "update_spacing";
            form = Kind::Size(1, 1 << 40);
            default = None;
            shown = "a quarter of all credits (ours)";
        }
        /// True if the credits of a lost frame return, with the next frame that arrives. Otherwise they are lost until the link goes down.
        resync: bool {
            form = Kind::Flag;
            default = true;
            ours = true;
        }
        /// Width of the cyclic counters in bits. The limit is at most half of their range.
        counter_bits: u8 {
            form = Kind::Count(2, 32);
            default = 32;
            ours = true;
        }
    }
}

impl CreditChoice {
    /// Returns the settings of one link: its own where stated, else those of the rack.
    pub(crate) fn of_link(self, own: OwnCredits) -> Self {
        Self {
            limit: own.limit.or(self.limit),
            update_spacing_bytes: own.update_spacing_bytes.or(self.update_spacing_bytes),
            resync: own.resync.unwrap_or(self.resync),
            ..self
        }
    }

    /// Returns the rules by which these credits return.
    pub(crate) fn updates(self, credits: CreditConfig) -> CreditUpdates {
        let usual = credits.usual_updates();
        let in_credits =
            |bytes: u64| u32::try_from(bytes / u64::from(credits.unit_bytes.max(1))).unwrap_or(u32::MAX);
        CreditUpdates {
            spacing: self.update_spacing_bytes.map_or(usual.spacing, |bytes| in_credits(bytes).max(1)),
            resync: self.resync,
        }
    }

    /// Returns the stated credits, or else the credits that the wire can hold: half of a ring, or the buffer of a socket in the
    /// kernel's accounting (about 1 KiB per frame in addition to its bytes).
    pub(crate) fn resolve(self, wire: WireKind, ring_bytes: u32) -> CreditConfig {
        let WireProperties { unit_bytes, overhead_bytes, buffer, .. } = wire.properties();
        let capacity_bytes = match buffer {
            FrameBuffer::Ring => ring_bytes / 2,
            FrameBuffer::KernelRing => PACKET_BUFFER_BYTES,
            FrameBuffer::Socket => UDP_BUFFER_BYTES,
        };
        let unit_bytes = self.unit_bytes.unwrap_or(unit_bytes);
        CreditConfig {
            unit_bytes,
            overhead_bytes: self.overhead_bytes.unwrap_or(overhead_bytes),
            // The checks report a unit of zero. Here it must only not divide.
            limit: self.limit.unwrap_or(capacity_bytes / u32::from(unit_bytes.max(1))),
        }
    }
}
