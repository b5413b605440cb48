//! Recorder of the frames that one end of a link sees, or the simulator at both ends.
//!
//! A recorder appends blocks to a buffer and does nothing more: its owner takes the buffer and
//! writes it to a file at a suitable time. A frame that was sent is a record of the sending end; a frame
//! that arrived and was not used is a record of the receiving end, which [`crate::join()`] turns into a comment of the first.
//!
//! A recorder stops for good at its limit, and its last record has a comment about it.

use rackloom_plan::impair::Verdict;
use rackloom_protocol::Instant;

use crate::block::{self, FLAG_INBOUND, FLAG_OUTBOUND, PACKET_OVERHEAD_BYTES, Packet};
use crate::comment;
use crate::heading::Heading;

/// Smallest limit, in bytes: a heading and some frames must fit.
pub const BYTES_MIN: u64 = 64 << 10;

/// Recorder of one file.
#[derive(Debug)]
pub struct Recorder {
    buffer: Vec<u8>,
    /// Number of bytes that have been taken.
    taken_bytes: u64,
    bytes_max: u64,
    full: bool,
    missed: u64,
}

impl Recorder {
    /// Creates the recorder of a file about this link, of about `bytes_max` bytes at most (one frame more or less),
    /// at least [`BYTES_MIN`].
    #[must_use]
    pub fn new(heading: &Heading, bytes_max: u64) -> Self {
        let mut buffer = Vec::new();
        heading.write(&mut buffer);
        Self { buffer, taken_bytes: 0, bytes_max: bytes_max.max(BYTES_MIN), full: false, missed: 0 }
    }

    /// Records a frame that this end has sent, with the faults of `verdict`. `frame` is as it was sent, with its flipped bit.
    pub fn sent(&mut self, now: Instant, interface: u32, frame: &[u8], verdict: &Verdict) {
        let flags = FLAG_OUTBOUND;
        let packet = Packet { interface, timestamp_ns: now.0, flags, frame };
        self.write(packet, || comment::injected(verdict));
    }

    /// Records a frame that arrived at this end and was not used; `reason` is a whole comment.
    pub fn not_used(&mut self, now: Instant, interface: u32, frame: &[u8], reason: String) {
        let flags = FLAG_INBOUND;
        self.write(Packet { interface, timestamp_ns: now.0, flags, frame }, || vec![reason]);
    }

    /// Counts a frame that could not be recorded; the next record has a comment with the count.
    pub fn miss(&mut self) {
        self.missed += u64::from(!self.full);
    }

    /// Returns true if the limit is reached and no more frames are recorded.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Returns the number of recorded bytes that have not been taken.
    #[must_use]
    pub const fn waiting_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the recorded bytes, and continues in `empty`.
    #[must_use]
    pub fn take(&mut self, mut empty: Vec<u8>) -> Vec<u8> {
        empty.clear();
        self.taken_bytes += self.buffer.len() as u64;
        std::mem::replace(&mut self.buffer, empty)
    }

    fn write(&mut self, packet: Packet<'_>, comments: impl FnOnce() -> Vec<String>) {
        if self.full {
            return;
        }
        let mut comments = comments();
        if self.missed > 0 {
            comments.push(comment::missed(std::mem::take(&mut self.missed)));
        }
        let length =
            self.taken_bytes + (self.buffer.len() + PACKET_OVERHEAD_BYTES + packet.frame.len()) as u64;
        if length >= self.bytes_max {
            self.full = true;
            comments.push(comment::full(self.bytes_max));
        }
        block::packet(&mut self.buffer, packet, &comments);
    }
}
