//! Members whose reports wait to be sent over a port, each at most once, in the order in which they were queued.
//!
//! A rack that comes up queues a report of every member at every port, so a member is found by its bit and not by a search.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::ids::NodeId;

/// Capacity that is kept when the queue is empty. A rack that comes up needs more once.
const CAPACITY_KEPT: usize = 64;

#[derive(Clone, Debug, Default)]
pub(super) struct ReportQueue {
    order: VecDeque<NodeId>,
    /// Bit of each queued member. Words after the last one are zero.
    is_queued: Vec<u64>,
}

impl ReportQueue {
    /// Queues a member that is not queued yet.
    pub(super) fn push(&mut self, member: NodeId) {
        let (word, bit) = position(member);
        if word >= self.is_queued.len() {
            self.is_queued.resize(word + 1, 0);
        }
        if self.is_queued[word] & bit == 0 {
            self.is_queued[word] |= bit;
            self.order.push_back(member);
        }
    }

    /// Returns the oldest member.
    pub(super) fn front(&self) -> Option<NodeId> {
        self.order.front().copied()
    }

    /// Takes the oldest member.
    pub(super) fn pop(&mut self) -> Option<NodeId> {
        let member = self.order.pop_front()?;
        let (word, bit) = position(member);
        self.is_queued[word] &= !bit;
        if self.order.is_empty() && self.order.capacity() > CAPACITY_KEPT {
            *self = Self::default();
        }
        Some(member)
    }

    pub(super) fn clear(&mut self) {
        self.order.clear();
        self.is_queued.fill(0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

const fn position(member: NodeId) -> (usize, u64) {
    (member.index() / 64, 1 << (member.index() % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_queued_once_and_again_after_it_was_taken() {
        let mut queue = ReportQueue::default();
        for member in [200, 3, 200, 64, 3] {
            queue.push(NodeId(member));
        }
        assert_eq!([queue.pop(), queue.pop()], [Some(NodeId(200)), Some(NodeId(3))]);
        queue.push(NodeId(200));
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(NodeId(64)), Some(NodeId(200)), None]);
        assert!(queue.is_empty());
        queue.push(NodeId(3));
        queue.clear();
        queue.push(NodeId(3));
        assert_eq!([queue.pop(), queue.pop()], [Some(NodeId(3)), None]);
    }

    #[test]
    fn memory_of_many_members_is_freed_when_the_queue_is_empty() {
        let mut queue = ReportQueue::default();
        (0..1000).for_each(|member| queue.push(NodeId(member)));
        while queue.pop().is_some() {}
        assert_eq!((queue.order.capacity(), queue.is_queued.capacity()), (0, 0));
    }
}
