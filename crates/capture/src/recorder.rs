//! What one end of a link, or the simulator for both, writes down.
//!
//! A recorder turns what it is told into blocks in a buffer and nothing more: whoever owns it takes the buffer away and
//! puts it wherever it belongs, when that disturbs nobody. A frame that was sent is a record of the sending end; a frame
//! that came in and was not used is a record of the receiving end, which [`crate::join()`] makes a comment of the first.
//!
//! A recorder stops for good at its limit, and its last record says so.

use rackloom_plan::impair::Verdict;
use rackloom_protocol::Instant;

use crate::block::{self, FLAG_INBOUND, FLAG_OUTBOUND, PACKET_OVERHEAD_BYTES, Packet};
use crate::comment;
use crate::heading::Heading;

/// The smallest limit: a heading and some frames must fit.
pub const BYTES_MIN: u64 = 64 << 10;

/// The pen of one file.
#[derive(Debug)]
pub struct Recorder {
    buffer: Vec<u8>,
    /// Bytes that have been taken away.
    taken_bytes: u64,
    bytes_max: u64,
    full: bool,
    missed: u64,
}

impl Recorder {
    /// A file about this link, of about `bytes_max` bytes at most (one frame more or less), at least [`BYTES_MIN`].
    #[must_use]
    pub fn new(heading: &Heading, bytes_max: u64) -> Self {
        let mut buffer = Vec::new();
        heading.write(&mut buffer);
        Self { buffer, taken_bytes: 0, bytes_max: bytes_max.max(BYTES_MIN), full: false, missed: 0 }
    }

    /// A frame went on the wire at this end, and this befell it there. `frame` is what went, so with its flipped bit.
    pub fn sent(&mut self, now: Instant, interface: u32, frame: &[u8], verdict: &Verdict) {
        let flags = FLAG_OUTBOUND;
        let packet = Packet { interface, timestamp_ns: now.0, flags, frame };
        self.write(packet, || comment::injected(verdict));
    }

    /// A frame came in at this end and was not used; `why` is a whole comment.
    pub fn not_used(&mut self, now: Instant, interface: u32, frame: &[u8], why: String) {
        let flags = FLAG_INBOUND;
        self.write(Packet { interface, timestamp_ns: now.0, flags, frame }, || vec![why]);
    }

    /// A frame could not be written down; the next one that can will say so.
    pub fn miss(&mut self) {
        self.missed += u64::from(!self.full);
    }

    /// Whether nothing more is written.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Bytes that wait to be taken away.
    #[must_use]
    pub const fn waiting_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Take away what has been written, and go on in `empty`.
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
