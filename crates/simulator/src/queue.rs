//! Scheduled events in order of time, then of insertion.
//!
//! Two events of the same nanosecond leave in the order in which they were inserted, independent of the rest of the queue.
//! Determinism of this crate relies on that number. Events are small and refer to frames by
//! their index in the slab.
//!
//! Nearly all events are due within some microseconds: a frame arrives, a channel opens. So the next few thousand
//! nanoseconds have a list each, on a wheel that moves with the time. Insertion and removal cost the same
//! for any number of events. Later events (timers) wait in a heap. They join their nanosecond's list when it comes
//! into the range of the wheel; that is before an event can be inserted there directly, so every list is in order of insertion.
//!
//! Nothing can be cancelled: an event that has lost its meaning is recognised when it is due.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use rackloom_protocol::{Instant, NodeId};

use crate::ids::ChannelId;
use crate::ids::FrameId;
use crate::lists::Lists;

/// Nanoseconds on the wheel: a power of two, so that a slot is a bit range of the time.
const SHOWN_NS: u64 = 1 << 13;
const WORD_BITS: u64 = u64::BITS as u64;
const WORDS: usize = (SHOWN_NS / WORD_BITS) as usize;
/// Number of entries that are kept in any case.
const ENTRIES_KEPT: usize = 4_096;

/// A scheduled event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuedEvent {
    /// A frame reaches this member, at the end of its channel.
    Arrival(FrameId, NodeId),
    /// A frame that waits to be overtaken has waited long enough.
    HoldOver(FrameId),
    /// A channel takes frames again.
    Opening(ChannelId),
    /// A member's timer may be due.
    Timer(NodeId),
    /// A member is polled: its job requested it, or a command was given from outside.
    Wake(NodeId),
    /// An action is applied to the rack; the number is the action's index in the schedule.
    Action(u32),
}

/// An event with its time and order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheduled {
    /// Time of the event.
    pub(crate) at: Instant,
    /// Number of events that were scheduled before this one.
    pub(crate) number: u64,
    /// The event.
    pub(crate) what: QueuedEvent,
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scheduled {}

/// All events that are scheduled.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// First nanosecond on the wheel. Nothing is due earlier.
    begin: Instant,
    /// Lists by nanosecond, modulo the length of the wheel.
    shown: Lists<Scheduled>,
    /// One bit per list: set if the list is not empty.
    occupied: [u64; WORDS],
    /// Events beyond the wheel.
    later: BinaryHeap<Reverse<Scheduled>>,
    scheduled: u64,
    /// Time until which one member runs ahead of the others; 0 if none does. Events that it schedules before then are its own.
    ahead_until: Instant,
    own: BinaryHeap<Reverse<Scheduled>>,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            begin: Instant::ZERO,
            shown: Lists::new(SHOWN_NS as usize),
            occupied: [0; WORDS],
            later: BinaryHeap::new(),
            scheduled: 0,
            ahead_until: Instant::ZERO,
            own: BinaryHeap::new(),
        }
    }
}

impl EventQueue {
    /// Schedules an event at `at`, or as soon as possible if that time has passed.
    pub(crate) fn push(&mut self, at: Instant, what: QueuedEvent) {
        if at < self.ahead_until {
            return self.put_ahead(at, what);
        }
        let scheduled = Scheduled { at: at.max(self.begin), number: self.scheduled, what };
        self.scheduled += 1;
        self.insert(scheduled);
    }

    fn insert(&mut self, scheduled: Scheduled) {
        if scheduled.at.since(self.begin) < SHOWN_NS {
            self.show(scheduled);
        } else {
            self.later.push(Reverse(scheduled));
        }
    }

    /// Lets a member run ahead until then. The caller has removed earlier events.
    pub(crate) fn run_ahead(&mut self, until: Instant) {
        self.ahead_until = until;
    }

    /// Ends running ahead.
    pub(crate) fn run_together(&mut self) {
        debug_assert!(self.own.is_empty(), "remaining events were put back");
        self.ahead_until = Instant::ZERO;
    }

    /// Schedules an event for the member that runs ahead.
    fn put_ahead(&mut self, at: Instant, what: QueuedEvent) {
        debug_assert!(
            matches!(what, QueuedEvent::Opening(_) | QueuedEvent::Timer(_) | QueuedEvent::Wake(_)),
            "{what:?} at {at:?} concerns another member"
        );
        self.own.push(Reverse(Scheduled { at, number: self.scheduled, what }));
        self.scheduled += 1;
    }

    /// Returns the time of the next event that the member ahead has scheduled for itself.
    #[inline]
    pub(crate) fn next_own_at(&self) -> Instant {
        self.own.peek().map_or(Instant::NEVER, |Reverse(next)| next.at)
    }

    /// Removes and returns the next event of the member ahead.
    pub(crate) fn pop_own(&mut self) -> Option<Scheduled> {
        self.own.pop().map(|Reverse(next)| next)
    }

    /// Puts an event of the member ahead back, unchanged.
    pub(crate) fn put_back_own(&mut self, scheduled: Scheduled) {
        self.own.push(Reverse(scheduled));
    }

    /// Puts events back that were removed and have not been handled, unchanged.
    pub(crate) fn put_back(&mut self, mut all: Vec<Scheduled>) {
        all.extend(std::iter::from_fn(|| self.pop_due(Instant::NEVER)));
        all.sort_unstable();
        self.begin = all.first().map_or(self.begin, |first| first.at);
        all.into_iter().for_each(|scheduled| self.insert(scheduled));
    }

    /// Returns the time of the next event.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        // Events beyond the wheel are later than all events on it.
        self.next_shown().or_else(|| self.later.peek().map(|Reverse(next)| next.at))
    }

    /// Removes and returns the next event if it is due at `at` or earlier.
    pub(crate) fn pop_due(&mut self, at: Instant) -> Option<Scheduled> {
        let next_at = self.next_at().filter(|next_at| *next_at <= at)?;
        self.advance_to(next_at);
        let slot = slot(next_at);
        let next = self.shown.pop(slot)?;
        if self.shown.first(slot).is_none() {
            self.occupied[slot / WORD_BITS as usize] &= !(1 << (slot as u64 % WORD_BITS));
        }
        Some(next)
    }

    /// Moves the wheel to this nanosecond, before which nothing is due.
    fn advance_to(&mut self, begin: Instant) {
        if begin == self.begin {
            return;
        }
        self.begin = begin;
        while let Some(Reverse(next)) = self.later.peek().filter(|next| next.0.at.since(begin) < SHOWN_NS) {
            let next = *next;
            self.later.pop();
            self.show(next);
        }
    }

    /// Appends an event to its nanosecond's list.
    fn show(&mut self, scheduled: Scheduled) {
        let slot = slot(scheduled.at);
        if self.shown.push(slot, scheduled) {
            self.occupied[slot / WORD_BITS as usize] |= 1 << (slot as u64 % WORD_BITS);
        }
    }

    /// Gives up unused entries, if most are unused: a rack that comes up schedules a hundred times as many events
    /// as one at rest.
    pub(crate) fn trim(&mut self) {
        self.shown.trim(ENTRIES_KEPT);
        if self.later.capacity() / 8 > self.later.len() {
            self.later.shrink_to(2 * self.later.len());
        }
    }

    /// Returns the first nanosecond on the wheel that has an event.
    fn next_shown(&self) -> Option<Instant> {
        let begin = slot(self.begin) as u64;
        let (word, bit) = ((begin / WORD_BITS) as usize, begin % WORD_BITS);
        let ahead = self.occupied[word] >> bit;
        if ahead != 0 {
            return Some(self.begin + u64::from(ahead.trailing_zeros()));
        }
        // Words after the first, up to the first again, whose lower bits are the last nanoseconds of the wheel.
        let mut distance_ns = WORD_BITS - bit;
        for step in 1..=WORDS {
            let bits = self.occupied[(word + step) % WORDS];
            if bits != 0 {
                return Some(self.begin + distance_ns + u64::from(bits.trailing_zeros()));
            }
            distance_ns += WORD_BITS;
        }
        None
    }
}

/// Returns the slot of a nanosecond on the wheel.
fn slot(at: Instant) -> usize {
    (at.0 % SHOWN_NS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(queue: &mut EventQueue) -> Vec<(u64, QueuedEvent)> {
        std::iter::from_fn(|| queue.pop_due(Instant::NEVER)).map(|next| (next.at.0, next.what)).collect()
    }

    #[test]
    fn time_comes_first_then_the_order_of_insertion() {
        let mut queue = EventQueue::default();
        for (at, member) in [(30, 0), (10, 1), (30, 2), (20, 3), (10, 4), (30, 5)] {
            queue.push(Instant(at), QueuedEvent::Wake(NodeId(member)));
        }
        let members: Vec<_> = drained(&mut queue)
            .into_iter()
            .map(|(at, what)| match what {
                QueuedEvent::Wake(member) => (at, member.0),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(members, [(10, 1), (10, 4), (20, 3), (30, 0), (30, 2), (30, 5)]);
    }

    /// The order equals that of sorting by time and insertion, with distances on the wheel, beyond it and at its edges.
    #[test]
    fn events_on_and_beyond_the_wheel_leave_in_one_order() {
        let mut queue = EventQueue::default();
        let mut expected = std::collections::BTreeMap::new();
        let (mut now, mut number, mut state) = (0, 0, 0x2545_f491_4f6c_dd1d_u64);
        let mut random = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        for _ in 0..20_000 {
            for _ in 0..random(4) {
                let limit =
                    [1, 3, 70, SHOWN_NS - 1, SHOWN_NS, SHOWN_NS + 1, 5 * SHOWN_NS][random(7) as usize];
                let at = now + [random(limit), limit][random(2) as usize];
                queue.push(Instant(at), QueuedEvent::Action(number));
                expected.insert((at, number), ());
                number += 1;
            }
            if random(300) == 0 {
                queue.trim();
            }
            if random(3) == 0 {
                continue;
            }
            let first = expected.pop_first().map(|(key, ())| key);
            assert_eq!(queue.next_at(), first.map(|(at, _)| Instant(at)));
            let popped = queue.pop_due(Instant::NEVER).map(|next| (next.at.0, next.number as u32));
            assert_eq!(popped, first);
            now = first.map_or(now, |(at, _)| at);
        }
        let rest: Vec<_> = expected.into_keys().collect();
        let drained: Vec<_> = drained(&mut queue).into_iter().map(|(at, _)| at).collect();
        assert_eq!(drained, rest.iter().map(|(at, _)| *at).collect::<Vec<_>>());
        assert_eq!(queue.next_at(), None);
    }

    #[test]
    fn no_event_leaves_before_its_time() {
        let mut queue = EventQueue::default();
        queue.push(Instant(7), QueuedEvent::Timer(NodeId(0)));
        assert!(queue.pop_due(Instant(6)).is_none());
        assert!(queue.pop_due(Instant(7)).is_some());
        assert_eq!(queue.next_at(), None);
    }

    /// With the index of the next entry it fills half a cache line.
    #[test]
    fn an_event_is_small() {
        assert!(size_of::<Scheduled>() <= 24, "{}", size_of::<Scheduled>());
    }
}
