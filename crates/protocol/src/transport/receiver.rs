//! The receiving half of a stream: each packet is taken exactly once and in order.
//!
//! Under selective, packets after a hole are held (up to the window) until the hole is filled; under go-back-N they are
//! dropped and the hole is announced once.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::distance;
use crate::config::{RetransmissionMode, TransportConfig};
use crate::ids::PortId;
use crate::memory::LeaseId;
use crate::time::Instant;
use crate::wire::packed::BITMAP_BYTES_MAX;

/// A packet after a hole. Its bytes are copied for reading later; the lease keeps them for the memory request.
#[derive(Debug)]
pub struct Held {
    /// The frame.
    pub lease: LeaseId,
    /// Where it came in.
    pub port: PortId,
    /// A copy of the frame.
    pub bytes: Vec<u8>,
}

/// What is known of a packet after a hole.
#[derive(Debug)]
pub enum Early {
    /// It waits for its turn.
    Held(Held),
    /// It was carried out before its turn.
    Taken {
        /// Number of its first operation.
        first_operation: u32,
    },
}

/// What a received packet number means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The one expected.
    InOrder,
    /// Taken or held before.
    Duplicate,
    /// After a hole; to be held at this place.
    Hold(usize),
    /// After a hole under go-back-N.
    OutOfOrder,
    /// Further ahead than the window.
    BeyondWindow,
}

/// The receiving half of a stream.
#[derive(Debug)]
pub struct Receiver {
    mode: RetransmissionMode,
    window: u32,
    ack_every: u32,
    ack_delay_ns: u64,
    expected: u32,
    held: VecDeque<Option<Early>>,
    hole_announced: bool,
    hole_to_announce: bool,
    mark_to_announce: bool,
    unacknowledged: u32,
    ack_due: bool,
    ack_deadline: Option<Instant>,
    /// The first operation of this stream that is not yet visible.
    pub visible: u32,
    pool: Vec<Vec<u8>>,
}

impl Receiver {
    /// A stream at its beginning.
    #[must_use]
    pub const fn new(config: &TransportConfig) -> Self {
        Self {
            mode: config.mode,
            window: match config.mode {
                RetransmissionMode::GoBackN => config.window_packets,
                RetransmissionMode::Selective => config.reorder_packets,
            },
            ack_every: config.ack_every_packets,
            ack_delay_ns: config.ack_delay_ns,
            expected: 0,
            held: VecDeque::new(),
            hole_announced: false,
            hole_to_announce: false,
            mark_to_announce: false,
            unacknowledged: 0,
            ack_due: false,
            ack_deadline: None,
            visible: 0,
            pool: Vec::new(),
        }
    }

    // W-21
    /// Judge a packet number.
    #[must_use]
    pub fn judge(&self, psn: u32) -> Arrival {
        let ahead = distance(self.expected, psn);
        if ahead == 0 {
            if self.has_next() { Arrival::Duplicate } else { Arrival::InOrder }
        } else if ahead >= 1 << 31 {
            Arrival::Duplicate
        } else if ahead >= self.window {
            Arrival::BeyondWindow
        } else if self.mode == RetransmissionMode::GoBackN {
            Arrival::OutOfOrder
        } else if self.held.get(ahead as usize).is_some_and(Option::is_some) {
            Arrival::Duplicate
        } else {
            Arrival::Hold(ahead as usize)
        }
    }

    /// Whether this is the packet expected, and none behind it is held.
    #[must_use]
    #[inline]
    pub fn continues(&self, psn: u32) -> bool {
        psn == self.expected && self.held.is_empty()
    }

    /// The expected packet was taken.
    pub fn accept(&mut self, now: Instant, ack_now: bool) {
        self.expected = self.expected.wrapping_add(1);
        self.held.pop_front();
        self.hole_announced = false;
        self.unacknowledged += 1;
        if ack_now || self.unacknowledged >= self.ack_every || self.has_hole() {
            self.ack_due = true;
        } else if self.ack_deadline.is_none() {
            self.ack_deadline = Some(now + self.ack_delay_ns);
        }
    }

    fn has_hole(&self) -> bool {
        self.held.iter().any(Option::is_some)
    }

    /// Hold a packet at the place that `judge` gave.
    pub fn hold(&mut self, place: usize, lease: LeaseId, port: PortId, frame: &[u8]) {
        self.make_place(place);
        let mut bytes = self.pool.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(frame);
        self.held[place] = Some(Early::Held(Held { lease, port, bytes }));
        self.ack_due = true;
    }

    /// The packet at this place has been carried out before its turn.
    pub fn note_taken(&mut self, place: usize, first_operation: u32) {
        self.make_place(place);
        self.held[place] = Some(Early::Taken { first_operation });
        self.ack_due = true;
    }

    fn make_place(&mut self, place: usize) {
        while self.held.len() <= place {
            self.held.push_back(None);
        }
    }

    /// The place of the first held packet for which this holds; it is told the place, too.
    pub fn find_held(&self, is_wanted: impl Fn(usize, &Held) -> bool) -> Option<usize> {
        let mut places = self.held.iter().enumerate();
        let found = places.find(|(place, early)| match early {
            Some(Early::Held(held)) => is_wanted(*place, held),
            _ => false,
        });
        found.map(|(place, _)| place)
    }

    /// Whether a packet that came in here is held before this place.
    #[must_use]
    pub fn holds_before(&self, place: usize, port: PortId) -> bool {
        let mut before = self.held.iter().take(place);
        before.any(|early| matches!(early, Some(Early::Held(held)) if held.port == port))
    }

    /// Take the held packet at this place out.
    pub fn take_at(&mut self, place: usize) -> Option<Held> {
        match self.held.get_mut(place)?.take()? {
            Early::Held(held) => Some(held),
            taken @ Early::Taken { .. } => {
                self.held[place] = Some(taken);
                None
            }
        }
    }

    /// Whether the packet that is expected now is here and has not been taken.
    #[must_use]
    #[inline]
    pub fn has_next(&self) -> bool {
        self.held.front().is_some_and(Option::is_some)
    }

    /// The early packet that is expected now, if it is here.
    pub fn next_early(&mut self) -> Option<Early> {
        self.held.front_mut().and_then(Option::take)
    }

    /// Keep the copy's memory for the next time.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        self.pool.push(bytes);
    }

    /// Every held lease; for the end of the stream.
    pub fn take_held(&mut self) -> impl Iterator<Item = LeaseId> + '_ {
        self.held.drain(..).flatten().filter_map(|early| match early {
            Early::Held(held) => Some(held.lease),
            Early::Taken { .. } => None,
        })
    }

    /// A duplicate came: its acknowledgement may be lost.
    pub const fn note_duplicate(&mut self) {
        self.ack_due = true;
    }

    /// A packet after a hole came under go-back-N: announce the hole once, then be silent until it is filled.
    pub const fn note_hole(&mut self) {
        if !self.hole_announced {
            self.hole_announced = true;
            self.hole_to_announce = true;
            self.ack_due = true;
        }
    }

    // W-75
    /// A packet came marked: the next acknowledgement says so.
    pub const fn note_mark(&mut self) {
        self.mark_to_announce = true;
    }

    /// An acknowledgement leaves: whether it says that a packet came marked.
    pub const fn take_mark(&mut self) -> bool {
        core::mem::replace(&mut self.mark_to_announce, false)
    }

    /// Something changed that the sender must know now.
    pub const fn demand_ack(&mut self) {
        self.ack_due = true;
    }

    // W-25
    /// The path to the sender changed: the last acknowledgement may have died with the old one.
    pub const fn repeat_ack(&mut self) {
        self.ack_due |= self.has_taken();
    }

    /// Whether this stream has ever carried a packet. Numbers may come round to zero, operations not at the same time.
    const fn has_taken(&self) -> bool {
        self.expected != 0 || self.visible != 0
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.ack_deadline.is_some_and(|deadline| now >= deadline) {
            self.ack_due = true;
        }
    }

    /// When `handle_timeout` is due.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        if self.ack_due { None } else { self.ack_deadline }
    }

    /// Whether an acknowledgement must be sent now.
    #[must_use]
    pub const fn ack_due(&self) -> bool {
        self.ack_due
    }

    /// Whether anything is unacknowledged and its acknowledgement is a plain cumulative one, so that it may ride on data.
    #[must_use]
    pub fn may_piggyback(&self) -> bool {
        let is_plain = !self.hole_to_announce && !self.mark_to_announce && !self.has_hole();
        (self.ack_due || self.unacknowledged > 0) && is_plain
    }

    /// Whether anything is unacknowledged.
    #[must_use]
    pub const fn owes_ack(&self) -> bool {
        self.ack_due || self.unacknowledged > 0
    }

    /// The next packet expected.
    #[must_use]
    pub const fn expected(&self) -> u32 {
        self.expected
    }

    /// An acknowledgement leaves. Returns whether it announces a hole; the bitmap of held packets goes to `bitmap`.
    pub fn acknowledge(&mut self, bitmap: &mut Vec<u8>) -> bool {
        self.unacknowledged = 0;
        self.ack_due = false;
        self.ack_deadline = None;
        bitmap.clear();
        for (place, held) in self.held.iter().enumerate().skip(1) {
            let bit = place - 1;
            if held.is_some() && bit / 8 < BITMAP_BYTES_MAX {
                bitmap.resize(bitmap.len().max(bit / 8 + 1), 0);
                bitmap[bit / 8] |= 1 << (bit % 8);
            }
        }
        core::mem::take(&mut self.hole_to_announce)
    }
}
