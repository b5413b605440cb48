//! Receiving half of a stream: each packet is accepted exactly once and in order.
//!
//! With selective retransmission, packets after a gap are held (up to the window) until the gap is filled. With
//! go-back-N they are dropped, and the gap is reported once.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::distance;
use super::settings::StreamSettings;
use crate::config::RetransmissionMode;
use crate::ids::PortId;
use crate::memory::LeaseId;
use crate::time::Instant;
use crate::wire::packed::BITMAP_BYTES_MAX;

/// Packet after a gap. Its bytes are copied to be read later; the lease keeps them for the memory request.
#[derive(Debug)]
pub struct Held {
    /// Lease of the frame.
    pub lease: LeaseId,
    /// Port on which the frame arrived.
    pub port: PortId,
    /// Copy of the frame.
    pub bytes: Vec<u8>,
}

/// State of a packet after a gap.
#[derive(Debug)]
pub enum Early {
    /// The packet waits until the gap is filled.
    Held(Held),
    /// The packet's operations were executed before the gap was filled.
    Taken {
        /// Number of the packet's first operation.
        first_operation: u32,
    },
}

/// Meaning of a received packet number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The expected packet.
    InOrder,
    /// A packet that was accepted or held before.
    Duplicate,
    /// A packet after a gap, to be held in this slot.
    Hold(usize),
    /// A packet after a gap, with go-back-N.
    OutOfOrder,
    /// A packet beyond the window.
    BeyondWindow,
}

/// Report of a gap to the sender, with go-back-N.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HoleReport {
    /// There is no gap to report.
    #[default]
    None,
    /// The next acknowledgement reports the gap.
    Due,
    /// The gap was reported and is not filled.
    Sent,
    /// The gap was filled before its report left. The next acknowledgement reports it nevertheless.
    DueThoughFilled,
}

/// Packets after a gap, and memory for their copies.
#[derive(Debug, Default)]
struct Window {
    /// Packets from the expected one on.
    slots: VecDeque<Option<Early>>,
    pool: Vec<Vec<u8>>,
}

/// Receiving half of a stream.
#[derive(Debug)]
pub struct Receiver {
    settings: Arc<StreamSettings>,
    expected: u32,
    /// Created by the first packet after a gap.
    held: Option<Box<Window>>,
    hole_report: HoleReport,
    mark_to_announce: bool,
    unacknowledged: u32,
    ack_due: bool,
    ack_deadline: Option<Instant>,
    /// Number of the first operation of this stream that is not yet visible.
    pub visible: u32,
}

impl Receiver {
    /// Returns the receiver of a new stream.
    #[must_use]
    pub const fn new(settings: Arc<StreamSettings>) -> Self {
        Self {
            settings,
            expected: 0,
            held: None,
            hole_report: HoleReport::None,
            mark_to_announce: false,
            unacknowledged: 0,
            ack_due: false,
            ack_deadline: None,
            visible: 0,
        }
    }

    /// Returns the packets from the expected one on.
    #[inline]
    fn slots(&self) -> impl Iterator<Item = &Option<Early>> {
        self.held.iter().flat_map(|held| &held.slots)
    }

    fn slot_mut(&mut self, slot: usize) -> Option<&mut Option<Early>> {
        self.held.as_mut()?.slots.get_mut(slot)
    }

    // W-21
    /// Returns the meaning of a packet number.
    #[must_use]
    pub fn judge(&self, psn: u32) -> Arrival {
        let ahead = distance(self.expected, psn);
        if ahead == 0 {
            if self.has_next() { Arrival::Duplicate } else { Arrival::InOrder }
        } else if ahead >= 1 << 31 {
            Arrival::Duplicate
        } else if ahead >= self.settings.receive_window() {
            Arrival::BeyondWindow
        } else if self.settings.transport.mode == RetransmissionMode::GoBackN {
            Arrival::OutOfOrder
        } else if self.has_at(ahead as usize) {
            Arrival::Duplicate
        } else {
            Arrival::Hold(ahead as usize)
        }
    }

    #[inline]
    fn has_at(&self, slot: usize) -> bool {
        self.held.as_ref().and_then(|held| held.slots.get(slot)).is_some_and(Option::is_some)
    }

    /// Returns true if this is the expected packet and none after it is held.
    #[must_use]
    #[inline]
    pub fn continues(&self, psn: u32) -> bool {
        psn == self.expected && self.held.as_ref().is_none_or(|held| held.slots.is_empty())
    }

    /// Records that the expected packet was accepted. `ack_now` requests an acknowledgement at once.
    pub fn accept(&mut self, now: Instant, ack_now: bool) {
        // A packet that is present is taken by `next_early` first, and a duplicate of it is not accepted.
        assert!(!self.has_next(), "the expected packet is accepted twice");
        self.expected = self.expected.wrapping_add(1);
        if let Some(held) = &mut self.held {
            held.slots.pop_front();
        }
        self.hole_report = match self.hole_report {
            HoleReport::None | HoleReport::Sent => HoleReport::None,
            HoleReport::Due | HoleReport::DueThoughFilled => HoleReport::DueThoughFilled,
        };
        self.unacknowledged += 1;
        if ack_now || self.unacknowledged >= self.settings.transport.ack_every_packets || self.has_hole() {
            self.ack_due = true;
        } else if self.ack_deadline.is_none() {
            self.ack_deadline = Some(now + self.settings.transport.ack_delay_ns);
        }
    }

    fn has_hole(&self) -> bool {
        self.slots().any(Option::is_some)
    }

    /// Holds a packet in the slot that `judge` returned.
    pub fn hold(&mut self, slot: usize, lease: LeaseId, port: PortId, frame: &[u8]) {
        let held = self.make_slot(slot);
        assert!(held.slots[slot].is_none(), "a packet is held twice");
        let mut bytes = held.pool.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(frame);
        held.slots[slot] = Some(Early::Held(Held { lease, port, bytes }));
        self.ack_due = true;
    }

    /// Records that the operations of the packet in this slot were executed early.
    pub fn note_taken(&mut self, slot: usize, first_operation: u32) {
        let held = self.make_slot(slot);
        assert!(held.slots[slot].is_none(), "a packet is executed early and held");
        held.slots[slot] = Some(Early::Taken { first_operation });
        self.ack_due = true;
    }

    /// Makes a slot that [`Receiver::judge`] returned. Packets beyond the window, which a peer may send, get none.
    fn make_slot(&mut self, slot: usize) -> &mut Window {
        assert!(slot < self.settings.receive_window() as usize, "a packet is held beyond the window");
        let held = self.held.get_or_insert_default();
        while held.slots.len() <= slot {
            held.slots.push_back(None);
        }
        held
    }

    /// Returns the slot of the first held packet that satisfies the condition, which gets slot and packet.
    pub fn find_held(&self, is_wanted: impl Fn(usize, &Held) -> bool) -> Option<usize> {
        let mut slots = self.slots().enumerate();
        let found = slots.find(|(slot, early)| match early {
            Some(Early::Held(held)) => is_wanted(*slot, held),
            _ => false,
        });
        found.map(|(slot, _)| slot)
    }

    /// Returns true if a packet from this port is held before this slot.
    #[must_use]
    pub fn holds_before(&self, slot: usize, port: PortId) -> bool {
        let mut before = self.slots().take(slot);
        before.any(|early| matches!(early, Some(Early::Held(held)) if held.port == port))
    }

    /// Removes and returns the held packet of this slot.
    pub fn take_at(&mut self, slot: usize) -> Option<Held> {
        let slot = self.slot_mut(slot)?;
        match slot.take()? {
            Early::Held(held) => Some(held),
            taken @ Early::Taken { .. } => {
                *slot = Some(taken);
                None
            }
        }
    }

    /// Returns true if the expected packet is present, held or executed early.
    #[must_use]
    #[inline]
    pub fn has_next(&self) -> bool {
        self.has_at(0)
    }

    /// Removes and returns the expected packet if it is present.
    pub fn next_early(&mut self) -> Option<Early> {
        self.slot_mut(0).and_then(Option::take)
    }

    /// Takes back the memory of a copy for reuse.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        self.held.get_or_insert_default().pool.push(bytes);
    }

    /// Removes all held packets at the end of the stream. Returns their leases.
    pub fn take_held(&mut self) -> impl Iterator<Item = LeaseId> + '_ {
        let slots = self.held.iter_mut().flat_map(|held| held.slots.drain(..));
        slots.flatten().filter_map(|early| match early {
            Early::Held(held) => Some(held.lease),
            Early::Taken { .. } => None,
        })
    }

    /// Handles a duplicate: its acknowledgement may be lost, so another is due.
    pub const fn note_duplicate(&mut self) {
        self.ack_due = true;
    }

    /// Handles a packet after a gap with go-back-N: reports the gap once, and not again until it is filled.
    pub const fn note_hole(&mut self) {
        if matches!(self.hole_report, HoleReport::None | HoleReport::DueThoughFilled) {
            self.hole_report = HoleReport::Due;
            self.ack_due = true;
        }
    }

    // W-75
    /// Records a packet with a congestion mark, for the next acknowledgement.
    pub const fn note_mark(&mut self) {
        self.mark_to_announce = true;
    }

    /// Returns true if the acknowledgement that leaves now must report a mark, and clears the mark.
    pub const fn take_mark(&mut self) -> bool {
        core::mem::replace(&mut self.mark_to_announce, false)
    }

    /// Requests an acknowledgement at once.
    pub const fn demand_ack(&mut self) {
        self.ack_due = true;
    }

    // W-25
    /// Repeats the last acknowledgement after a path change, because it may be lost.
    pub const fn repeat_ack(&mut self) {
        self.ack_due |= self.has_taken();
    }

    /// Returns true if this stream has ever carried a packet. Packet numbers may wrap to zero, but not at once with
    /// operation numbers.
    const fn has_taken(&self) -> bool {
        self.expected != 0 || self.visible != 0
    }

    /// Handles the passage of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.ack_deadline.is_some_and(|deadline| now >= deadline) {
            self.ack_due = true;
        }
    }

    /// Returns the time at which `handle_timeout` is due.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        if self.ack_due { None } else { self.ack_deadline }
    }

    /// Returns true if an acknowledgement must be sent now.
    #[must_use]
    pub const fn ack_due(&self) -> bool {
        self.ack_due
    }

    /// Returns true if an acknowledgement is due and it is cumulative only, so that a data frame can carry it.
    #[must_use]
    pub fn may_piggyback(&self) -> bool {
        let is_plain = !self.must_report_hole() && !self.mark_to_announce && !self.has_hole();
        (self.ack_due || self.unacknowledged > 0) && is_plain
    }

    /// Number of packets after a gap that have arrived.
    #[must_use]
    pub fn held_count(&self) -> u32 {
        self.slots().flatten().count() as u32
    }

    /// Returns true if anything is unacknowledged.
    #[must_use]
    pub const fn has_ack_due(&self) -> bool {
        self.ack_due || self.unacknowledged > 0
    }

    /// Number of the next expected packet.
    #[must_use]
    pub const fn expected(&self) -> u32 {
        self.expected
    }

    /// Records that an acknowledgement leaves. Returns true if it reports a gap, and writes the bitmap of held
    /// packets to `bitmap`.
    pub fn acknowledge(&mut self, bitmap: &mut Vec<u8>) -> bool {
        self.unacknowledged = 0;
        self.ack_due = false;
        self.ack_deadline = None;
        bitmap.clear();
        for (slot, held) in self.slots().enumerate().skip(1) {
            let bit = slot - 1;
            if held.is_some() && bit / 8 < BITMAP_BYTES_MAX {
                bitmap.resize(bitmap.len().max(bit / 8 + 1), 0);
                bitmap[bit / 8] |= 1 << (bit % 8);
            }
        }
        let reports_hole = self.must_report_hole();
        self.hole_report = match self.hole_report {
            HoleReport::None | HoleReport::DueThoughFilled => HoleReport::None,
            HoleReport::Due | HoleReport::Sent => HoleReport::Sent,
        };
        reports_hole
    }

    const fn must_report_hole(&self) -> bool {
        matches!(self.hole_report, HoleReport::Due | HoleReport::DueThoughFilled)
    }
}
