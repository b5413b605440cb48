//! Order of datagrams.
//!
//! The fabric may deliver a short message before a long one. Programs that number their datagrams, such as those of UCX, take a late one for lost. So the
//! datagrams of one process to another are numbered, and the receiver holds those that arrive early.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use rackloom::fabric::NodeId;

/// Most datagrams that wait for one before them. Then that one is lost: its receiver began in the middle of a stream.
const HELD_MAX: usize = 1024;

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
    pub(super) fn receive(&mut self, from: NodeId, at: Position, datagram: T) -> Vec<T> {
        let begin = || Received { next: Position { number: 0, ..at }, held: BTreeMap::new() };
        let stream = self.received.entry(from).or_insert_with(begin);
        if stream.next.stream != at.stream {
            *stream = begin();
        }
        if at.number >= stream.next.number {
            stream.held.insert(at.number, datagram);
        }
        if stream.held.len() > HELD_MAX
            && let Some(first) = stream.held.keys().next()
        {
            stream.next.number = *first;
        }
        let mut due = Vec::new();
        while let Some(datagram) = stream.held.remove(&stream.next.number) {
            stream.next.number += 1;
            due.push(datagram);
        }
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
        datagrams.receive(PEER, Position { stream, number }, number)
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
