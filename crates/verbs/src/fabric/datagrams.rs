//! Order of datagrams.
//!
//! The fabric may deliver a short message before a long one. Programs that number their datagrams, such as those of UCX, take a late one for lost. So the
//! datagrams of one process to another are numbered, and the receiver holds those that arrive early.
//!
//! A missing datagram may never come: the receiver forgets a stream when it loses the path to the sender, which goes on with its numbers if it has not
//! lost the path. So the receiver goes on without it after a while.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use rackloom::fabric::NodeId;

/// Most datagrams that wait for one before them. Then that one is lost.
const HELD_MAX: usize = 1024;
/// Longest wait for a missing datagram, checked when another one arrives. The fabric repeats lost frames sooner, and programs repeat datagrams later.
const GAP_MAX: Duration = Duration::from_millis(100);

/// Position of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// Random number of the stream. A process that takes the seat of another one has streams of its own.
    pub(super) stream: u64,
    /// Number within the stream.
    pub(super) number: u64,
}

/// Datagrams to and from other processes.
pub(super) struct Datagrams<T> {
    next_stream: u64,
    sent: BTreeMap<NodeId, Position>,
    received: BTreeMap<NodeId, Received<T>>,
}

struct Received<T> {
    next: Position,
    /// Datagrams that arrived before their predecessors, by their numbers.
    held: BTreeMap<u64, T>,
    /// Time since which datagrams wait for the next one, if any do.
    waits_since: Option<Instant>,
}

impl<T> Default for Datagrams<T> {
    fn default() -> Self {
        let next_stream = RandomState::new().build_hasher().finish();
        Self { next_stream, sent: BTreeMap::new(), received: BTreeMap::new() }
    }
}

impl<T> Datagrams<T> {
    /// Returns the position of the next datagram to a process.
    pub(super) fn send(&mut self, to: NodeId) -> Position {
        let next = self.sent.entry(to).or_insert_with(|| {
            self.next_stream = self.next_stream.wrapping_add(1);
            Position { stream: self.next_stream, number: 0 }
        });
        let position = *next;
        next.number += 1;
        position
    }

    /// Adds a datagram that has arrived, and returns those that are due, in their order.
    pub(super) fn receive(&mut self, from: NodeId, at: Position, datagram: T, now: Instant) -> Vec<T> {
        let begin =
            || Received { next: Position { number: 0, ..at }, held: BTreeMap::new(), waits_since: None };
        let stream = self.received.entry(from).or_insert_with(begin);
        if stream.next.stream != at.stream {
            *stream = begin();
        }
        if at.number >= stream.next.number {
            stream.held.insert(at.number, datagram);
        }
        let is_overdue =
            stream.waits_since.is_some_and(|since| now.saturating_duration_since(since) >= GAP_MAX);
        if (stream.held.len() > HELD_MAX || is_overdue)
            && let Some(first) = stream.held.keys().next()
        {
            stream.next.number = *first;
        }
        let mut due = Vec::new();
        while let Some(datagram) = stream.held.remove(&stream.next.number) {
            stream.next.number += 1;
            due.push(datagram);
        }
        stream.waits_since = match stream.waits_since {
            _ if stream.held.is_empty() => None,
            // A gap has been closed or passed, and another one follows.
            _ if !due.is_empty() => Some(now),
            since => since.or(Some(now)),
        };
        due
    }

    /// Ends the streams from and to a process that is lost.
    pub(super) fn forget(&mut self, peer: NodeId) {
        self.sent.remove(&peer);
        self.received.remove(&peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: NodeId = NodeId(3);

    fn receive(datagrams: &mut Datagrams<u64>, stream: u64, number: u64) -> Vec<u64> {
        datagrams.receive(PEER, Position { stream, number }, number, Instant::now())
    }

    #[test]
    fn a_stream_goes_on_without_a_datagram_that_does_not_come() {
        let (mut datagrams, begun) = (Datagrams::default(), Instant::now());
        let mut receive = |number, milliseconds| {
            let now = begun + Duration::from_millis(milliseconds);
            datagrams.receive(PEER, Position { stream: 1, number }, number, now)
        };
        assert!(receive(40, 0).is_empty(), "the receiver has forgotten the datagrams before");
        assert!(receive(41, 99).is_empty());
        assert_eq!(receive(43, 100), [40, 41], "the next gap has its own time");
        assert!(receive(44, 199).is_empty());
        assert_eq!(receive(42, 199), [42, 43, 44], "a late datagram is in time");
        assert_eq!(receive(45, 1000), [45], "no gap, no wait");
    }

    #[test]
    fn datagrams_are_due_in_their_order_and_once() {
        let mut datagrams = Datagrams::default();
        assert!(receive(&mut datagrams, 1, 1).is_empty());
        assert_eq!(receive(&mut datagrams, 1, 0), [0, 1]);
        assert!(receive(&mut datagrams, 1, 1).is_empty());
        assert!(receive(&mut datagrams, 1, 4).is_empty());
        assert_eq!(receive(&mut datagrams, 1, 2), [2]);
        assert_eq!(receive(&mut datagrams, 2, 0), [0], "another process has the seat");
    }

    #[test]
    fn a_stream_whose_beginning_is_unknown_continues() {
        let mut datagrams = Datagrams::default();
        let late = (7..7 + HELD_MAX as u64).flat_map(|number| receive(&mut datagrams, 1, number)).count();
        assert_eq!(late, 0);
        let due = receive(&mut datagrams, 1, 5000);
        assert_eq!((due.len(), due[0]), (HELD_MAX, 7));
        assert_eq!(receive(&mut datagrams, 1, 7 + HELD_MAX as u64), [7 + HELD_MAX as u64]);
    }

    #[test]
    fn a_lost_peer_gets_a_new_stream() {
        let mut datagrams = Datagrams::<()>::default();
        let first = datagrams.send(PEER);
        assert_eq!(datagrams.send(PEER), Position { number: 1, ..first });
        assert_eq!(datagrams.send(NodeId(4)).number, 0);
        datagrams.forget(PEER);
        let again = datagrams.send(PEER);
        assert_eq!(again.number, 0);
        assert_ne!(again.stream, first.stream);
    }
}
