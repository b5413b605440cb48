//! What happens when: occurrences in order of time, then of insertion.
//!
//! Two occurrences of the same nanosecond leave in the order in which they came, whatever else the queue holds;
//! every claim of determinism in this crate rests on that number. Occurrences are small and refer to frames by
//! their place in the slab. The heap is hidden, so that a calendar queue can take its place.
//!
//! Nothing can be cancelled: an occurrence that has lost its meaning is recognised when it is due.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use rackloom_protocol::{Instant, NodeId};

use crate::frames::FrameId;
use crate::link::ChannelId;

/// Something that is going to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occurrence {
    /// A frame reaches the end of its channel.
    Arrival(FrameId),
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

/// An occurrence with its place in the order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheduled {
    /// When.
    pub(crate) at: Instant,
    /// How many occurrences were scheduled before this one.
    pub(crate) number: u64,
    /// What.
    pub(crate) what: Occurrence,
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
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<Scheduled>>,
    scheduled: u64,
}

impl EventQueue {
    /// Let something happen at `at`.
    pub(crate) fn push(&mut self, at: Instant, what: Occurrence) {
        self.heap.push(Reverse(Scheduled { at, number: self.scheduled, what }));
        self.scheduled += 1;
    }

    /// When the next occurrence is due.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(next)| next.at)
    }

    /// The next occurrence if it is due at `at` or earlier.
    pub(crate) fn pop_due(&mut self, at: Instant) -> Option<Scheduled> {
        if self.next_at()? > at {
            return None;
        }
        self.heap.pop().map(|Reverse(next)| next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(queue: &mut EventQueue) -> Vec<(u64, Occurrence)> {
        std::iter::from_fn(|| queue.pop_due(Instant::NEVER)).map(|next| (next.at.0, next.what)).collect()
    }

    #[test]
    fn time_comes_first_then_the_order_of_insertion() {
        let mut queue = EventQueue::default();
        for (at, member) in [(30, 0), (10, 1), (30, 2), (20, 3), (10, 4), (30, 5)] {
            queue.push(Instant(at), Occurrence::Wake(NodeId(member)));
        }
        let members: Vec<_> = drained(&mut queue)
            .into_iter()
            .map(|(at, what)| match what {
                Occurrence::Wake(member) => (at, member.0),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(members, [(10, 1), (10, 4), (20, 3), (30, 0), (30, 2), (30, 5)]);
    }

    #[test]
    fn nothing_leaves_before_its_time() {
        let mut queue = EventQueue::default();
        queue.push(Instant(7), Occurrence::Timer(NodeId(0)));
        assert!(queue.pop_due(Instant(6)).is_none());
        assert!(queue.pop_due(Instant(7)).is_some());
        assert_eq!(queue.next_at(), None);
    }

    #[test]
    fn an_entry_stays_within_half_a_cache_line() {
        assert!(size_of::<Scheduled>() <= 32, "{}", size_of::<Scheduled>());
    }
}
