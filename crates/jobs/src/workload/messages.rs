//! Messages of one rank: puts that count themselves at the receiver, and waits for such counts.
//!
//! Messages of a channel are sent in the order of the list. The receive with number *n* ends when the word of its channel has
//! reached *n* + 1. On a fabric that lets a later message overtake an earlier one this is the arrival of *n* + 1 messages, not of
//! certain ones. A channel has one wait for the lowest awaited count; the endpoint looks at all waits at each arrival, so waits
//! for higher counts would cost time and end no earlier.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rackloom_protocol::{Condition, NodeId, Signal, SignalKind};

use super::layout::{COUNTS, INBOX, source};
use super::prepared::{Outgoing, RankTable};
use crate::ranks::JobGroup;
use crate::ranks::request::Body;

/// Sends of one rank.
#[derive(Debug)]
pub(super) struct Sends {
    /// Number of the next message of each channel.
    next: Vec<u32>,
    /// True for each operation that is ready.
    is_ready: Vec<bool>,
    /// Sends that may be issued, in order.
    due: VecDeque<u32>,
}

impl Sends {
    pub(super) fn new(table: &RankTable) -> Self {
        let (channels, operations) = (table.outgoing.len(), table.roles.len());
        Self { next: vec![0; channels], is_ready: vec![false; operations], due: VecDeque::new() }
    }

    /// Adds a send that is ready. It is due after the earlier ones of its channel.
    pub(super) fn add(&mut self, table: &RankTable, operation: u32) {
        self.is_ready[operation as usize] = true;
        let channel = table.roles[operation as usize].queue as usize;
        let next = &mut self.next[channel];
        while let Some(send) = table.outgoing[channel].operations.get(*next as usize)
            && self.is_ready[*send as usize]
        {
            self.due.push_back(*send);
            *next += 1;
        }
    }

    /// Takes the next send that is due.
    pub(super) fn pop_due(&mut self) -> Option<u32> {
        self.due.pop_front()
    }
}

/// Returns the put of a message of `bytes` bytes.
pub(super) fn put(job_group: &JobGroup, channel: &Outgoing, bytes: u64) -> Body {
    let word = job_group.address(channel.to, COUNTS, channel.word_offset);
    let (region, offset, key) = (word.region, word.offset, word.key);
    let signal = Signal { region, offset, key, kind: SignalKind::Add, value: 1 };
    let target = if bytes == 0 { word } else { job_group.address(channel.to, INBOX, 0) };
    Body::Put { target, source: source(bytes), signal: Some(signal) }
}

/// Receives of one rank.
#[derive(Debug)]
pub(super) struct Receives {
    channels: Vec<Channel>,
}

/// Receives of one channel.
#[derive(Clone, Debug, Default)]
struct Channel {
    /// Number of messages that are known to have arrived.
    arrived: u64,
    /// Numbers of the receives that are ready and have not ended.
    waiting: BinaryHeap<Reverse<u32>>,
    /// Numbers of the receives for which waits are outstanding, each lower than the one before.
    awaited: Vec<u32>,
}

/// Result of adding a receive, or of an arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Received {
    /// Receives that have ended.
    pub(super) ended: Vec<u32>,
    /// Receive for which the rank must wait.
    pub(super) wait: Option<u32>,
}

impl Receives {
    pub(super) fn new(table: &RankTable) -> Self {
        Self { channels: vec![Channel::default(); table.incoming.len()] }
    }

    /// Adds a receive that is ready.
    pub(super) fn add(&mut self, table: &RankTable, operation: u32) -> Received {
        let role = table.roles[operation as usize];
        let channel = &mut self.channels[role.queue as usize];
        channel.waiting.push(Reverse(role.number));
        channel.settle(&table.incoming[role.queue as usize].operations)
    }

    /// Records the end of the wait for a receive, with the value of the word.
    pub(super) fn arrived(&mut self, table: &RankTable, operation: u32, value: u64) -> Received {
        let role = table.roles[operation as usize];
        let channel = &mut self.channels[role.queue as usize];
        channel.awaited.retain(|number| *number != role.number);
        channel.arrived = channel.arrived.max(value);
        channel.settle(&table.incoming[role.queue as usize].operations)
    }
}

impl Channel {
    /// Ends the receives whose messages have arrived.
    fn settle(&mut self, operations: &[u32]) -> Received {
        let mut received = Received::default();
        while let Some(Reverse(number)) = self.waiting.peek().copied()
            && u64::from(number) < self.arrived
        {
            self.waiting.pop();
            received.ended.push(operations[number as usize]);
        }
        if let Some(Reverse(number)) = self.waiting.peek().copied()
            && self.awaited.iter().all(|awaited| *awaited > number)
        {
            self.awaited.push(number);
            received.wait = Some(operations[number as usize]);
        }
        received
    }
}

/// Returns the wait for a receive.
pub(super) fn wait(table: &RankTable, operation: u32) -> Body {
    let role = table.roles[operation as usize];
    Body::WaitUntil {
        region: COUNTS,
        offset: 8 * u64::from(role.queue),
        condition: Condition::AtLeast,
        value: u64::from(role.number) + 1,
        depends_on: Some(NodeId(table.incoming[role.queue as usize].from)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(ended: &[u32], wait: Option<u32>) -> Received {
        Received { ended: ended.to_vec(), wait }
    }

    #[test]
    fn one_wait_stands_for_all_receives_of_a_channel() {
        let operations = [10, 11, 12, 13];
        let mut channel = Channel::default();
        let add = |channel: &mut Channel, number| {
            channel.waiting.push(Reverse(number));
            channel.settle(&operations)
        };
        assert_eq!(add(&mut channel, 1), received(&[], Some(11)));
        assert_eq!(add(&mut channel, 2), received(&[], None), "the wait for 11 comes first");
        assert_eq!(add(&mut channel, 0), received(&[], Some(10)), "a lower count needs a wait of its own");
        channel.awaited.retain(|number| *number != 0);
        channel.arrived = 1;
        assert_eq!(channel.settle(&operations), received(&[10], None), "11 is still awaited");
        channel.awaited.retain(|number| *number != 1);
        channel.arrived = 3;
        assert_eq!(channel.settle(&operations), received(&[11, 12], None));
        assert_eq!(add(&mut channel, 3), received(&[], Some(13)));
    }

    #[test]
    fn a_message_that_has_arrived_needs_no_wait() {
        let mut channel = Channel { arrived: 2, ..Channel::default() };
        channel.waiting.push(Reverse(1));
        assert_eq!(channel.settle(&[4, 5]), received(&[5], None));
    }
}
