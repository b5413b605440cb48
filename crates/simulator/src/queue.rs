//! What happens when: events in order of time, then of insertion.
//!
//! Two events of the same nanosecond leave in the order in which they came, whatever else the queue holds;
//! every claim of determinism in this crate rests on that number. Events are small and refer to frames by
//! their place in the slab.
//!
//! Nearly everything happens within some microseconds: a frame arrives, a channel opens. So the next few thousand
//! nanoseconds have a list each, on a wheel that turns with the time, and both putting in and taking out cost the same
//! whatever is under way. What is further off (timers) waits in a heap, and joins its nanosecond's list when the wheel
//! comes to show it; that is before anything can be put there directly, so every list is in order of insertion.
//!
//! Nothing can be cancelled: an event that has lost its meaning is recognised when it is due.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use rackloom_protocol::{Instant, NodeId};

use crate::frames::FrameId;
use crate::link::ChannelId;
use crate::lists::Lists;

/// Nanoseconds that the wheel shows: a power of two, so that a place is cut out of the time.
const SHOWN_NS: u64 = 1 << 13;
const WORD_BITS: u64 = u64::BITS as u64;
const WORDS: usize = (SHOWN_NS / WORD_BITS) as usize;
/// As many entries are kept in any case.
const ENTRIES_KEPT: usize = 4_096;

/// Something that is going to happen.
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
    /// A member gets a turn: its job asked for one, or a command was given from outside.
    Wake(NodeId),
    /// Something is done to the rack; the number is the action's place in the schedule.
    Action(u32),
}

/// An event with its place in the order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheduled {
    /// When.
    pub(crate) at: Instant,
    /// How many events were scheduled before this one.
    pub(crate) number: u64,
    /// What.
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

/// All that is going to happen.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// The first nanosecond that the wheel shows. Nothing is due earlier.
    begin: Instant,
    /// By nanosecond, modulo what is shown.
    shown: Lists<Scheduled>,
    /// One bit per list: whether there is something in it.
    occupied: [u64; WORDS],
    /// What the wheel does not show yet.
    later: BinaryHeap<Reverse<Scheduled>>,
    scheduled: u64,
    /// Until when a member runs ahead of the others; 0 while none does. What it puts before itself until then is its own.
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
    /// Let something happen at `at`, or as soon as possible if that is over.
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

    /// A member runs ahead until then. What is due before has been taken out.
    pub(crate) fn run_ahead(&mut self, until: Instant) {
        self.ahead_until = until;
    }

    /// Nobody runs ahead any more.
    pub(crate) fn run_together(&mut self) {
        debug_assert!(self.own.is_empty(), "what is left was put back");
        self.ahead_until = Instant::ZERO;
    }

    /// Put something before the member that runs ahead.
    fn put_ahead(&mut self, at: Instant, what: QueuedEvent) {
        debug_assert!(
            matches!(what, QueuedEvent::Opening(_) | QueuedEvent::Timer(_) | QueuedEvent::Wake(_)),
            "{what:?} at {at:?} concerns another member"
        );
        self.own.push(Reverse(Scheduled { at, number: self.scheduled, what }));
        self.scheduled += 1;
    }

    /// When the next thing is due that the member ahead has put before itself.
    #[inline]
    pub(crate) fn next_own_at(&self) -> Instant {
        self.own.peek().map_or(Instant::NEVER, |Reverse(next)| next.at)
    }

    /// The next of those things.
    pub(crate) fn pop_own(&mut self) -> Option<Scheduled> {
        self.own.pop().map(|Reverse(next)| next)
    }

    /// Put something back before the member ahead, as it was.
    pub(crate) fn put_back_own(&mut self, scheduled: Scheduled) {
        self.own.push(Reverse(scheduled));
    }

    /// Put back what was taken out and has not happened, as it was.
    pub(crate) fn put_back(&mut self, mut all: Vec<Scheduled>) {
        all.extend(std::iter::from_fn(|| self.pop_due(Instant::NEVER)));
        all.sort_unstable();
        self.begin = all.first().map_or(self.begin, |first| first.at);
        all.into_iter().for_each(|scheduled| self.insert(scheduled));
    }

    /// When the next event is due.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        // What is later than the wheel shows is later than everything on it.
        self.next_shown().or_else(|| self.later.peek().map(|Reverse(next)| next.at))
    }

    /// The next event if it is due at `at` or earlier.
    pub(crate) fn pop_due(&mut self, at: Instant) -> Option<Scheduled> {
        let next_at = self.next_at().filter(|next_at| *next_at <= at)?;
        self.turn(next_at);
        let place = place(next_at);
        let next = self.shown.pop(place)?;
        if self.shown.first(place).is_none() {
            self.occupied[place / WORD_BITS as usize] &= !(1 << (place as u64 % WORD_BITS));
        }
        Some(next)
    }

    /// Let the wheel begin with this nanosecond, before which nothing is due.
    fn turn(&mut self, begin: Instant) {
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

    /// Put an event at the end of its nanosecond's list.
    fn show(&mut self, scheduled: Scheduled) {
        let place = place(scheduled.at);
        if self.shown.push(place, scheduled) {
            self.occupied[place / WORD_BITS as usize] |= 1 << (place as u64 % WORD_BITS);
        }
    }

    /// Give up entries that are not needed any more, if they are most of them: a rack that comes up has a hundred times as much before
    /// it as one at rest.
    pub(crate) fn tidy(&mut self) {
        self.shown.tidy(ENTRIES_KEPT);
        if self.later.capacity() / 8 > self.later.len() {
            self.later.shrink_to(2 * self.later.len());
        }
    }

    /// The first nanosecond on the wheel with something in it.
    fn next_shown(&self) -> Option<Instant> {
        let begin = place(self.begin) as u64;
        let (word, bit) = ((begin / WORD_BITS) as usize, begin % WORD_BITS);
        let ahead = self.occupied[word] >> bit;
        if ahead != 0 {
            return Some(self.begin + u64::from(ahead.trailing_zeros()));
        }
        // Words after the first, round to the first again, whose lower bits are the last nanoseconds shown.
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

/// Where on the wheel a nanosecond is.
fn place(at: Instant) -> usize {
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

    /// The same as sorting by time and insertion, with distances that lie on the wheel, beyond it and on its edges.
    #[test]
    fn near_and_far_leave_in_one_order() {
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
                queue.tidy();
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
    fn nothing_leaves_before_its_time() {
        let mut queue = EventQueue::default();
        queue.push(Instant(7), QueuedEvent::Timer(NodeId(0)));
        assert!(queue.pop_due(Instant(6)).is_none());
        assert!(queue.pop_due(Instant(7)).is_some());
        assert_eq!(queue.next_at(), None);
    }

    /// With the number of the next one it fills half a cache line.
    #[test]
    fn an_occurrence_is_small() {
        assert!(size_of::<Scheduled>() <= 24, "{}", size_of::<Scheduled>());
    }
}
