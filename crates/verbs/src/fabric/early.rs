//! Requests, datagrams and notes to processes that are not reached yet. A process that has just begun is reached within milliseconds, and a program may
//! know its address before.
//!
//! Its frames may even arrive before a path leads to it. If the report of its link was lost, the next heartbeat of a neighbour repeats it, up to half a
//! second later. The answer to its note waits for that.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use rackloom::fabric::NodeId;

use super::message::Message;
use crate::engine::Request;

/// Time in which requests wait for a process that was never reached. A datagram is lost afterwards.
const WAIT: Duration = Duration::from_secs(1);
/// Time in which a note waits. Nothing repeats it.
const NOTE_WAIT: Duration = Duration::from_secs(3);
/// Most datagrams that wait, and most notes. Requests are bounded by the windows of queue pairs.
const MESSAGES_MAX: usize = 1024;

pub(super) enum Waiting {
    /// Datagram or note.
    Message(Message),
    Request(Request),
}

/// End of a wait.
pub(super) enum Ended {
    /// The process is reached.
    Reached(NodeId, Waiting),
    /// Time is up.
    Late(Waiting),
}

#[derive(Default)]
pub(super) struct Early {
    waiting: VecDeque<(Instant, NodeId, Waiting)>,
    datagrams: usize,
    notes: usize,
    /// Times until which requests to a process wait for it. The time of a process that was reached has passed.
    contacts: BTreeMap<NodeId, Instant>,
}

impl Early {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) const fn has_datagrams(&self) -> bool {
        self.datagrams > 0
    }

    /// Returns true if something waits for a process. Later requests wait behind it.
    pub(super) fn waits_for(&self, peer: NodeId) -> bool {
        self.waiting.iter().any(|(_, waited, _)| *waited == peer)
    }

    /// Notes that a process is reached: requests to it do not wait again.
    pub(super) fn note_reached(&mut self, peer: NodeId, now: Instant) {
        self.contacts.entry(peer).or_insert(now);
    }

    /// Adds a request. Returns it if the time for its process has passed.
    pub(super) fn add_request(&mut self, peer: NodeId, request: Request, now: Instant) -> Option<Request> {
        let until = *self.contacts.entry(peer).or_insert(now + WAIT);
        if until <= now && !self.waits_for(peer) {
            return Some(request);
        }
        self.waiting.push_back((until, peer, Waiting::Request(request)));
        None
    }

    /// Adds a datagram or a note, or loses it if too many of its kind wait.
    pub(super) fn add_message(&mut self, peer: NodeId, message: Message, now: Instant) {
        let wait = if matches!(message, Message::Note(_)) { NOTE_WAIT } else { WAIT };
        let count = self.count(&message);
        if *count < MESSAGES_MAX {
            *count += 1;
            self.waiting.push_back((now + wait, peer, Waiting::Message(message)));
        }
    }

    /// Returns the number of messages of this kind that wait.
    fn count(&mut self, kind: &Message) -> &mut usize {
        if matches!(kind, Message::Note(_)) { &mut self.notes } else { &mut self.datagrams }
    }

    /// Takes what waits no longer, in the order in which it was added.
    pub(super) fn take_ended(&mut self, now: Instant, is_reached: impl Fn(NodeId) -> bool) -> Vec<Ended> {
        let mut ended = Vec::new();
        for _ in 0..self.waiting.len() {
            let Some((until, peer, waiting)) = self.waiting.pop_front() else { break };
            let is_reached = is_reached(peer);
            if !is_reached && now < until {
                self.waiting.push_back((until, peer, waiting));
                continue;
            }
            if let Waiting::Message(message) = &waiting {
                *self.count(message) -= 1;
            }
            if is_reached {
                self.contacts.insert(peer, now);
                ended.push(Ended::Reached(peer, waiting));
            } else {
                ended.push(Ended::Late(waiting));
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_leave_in_order_when_their_process_is_reached_and_are_lost_after_a_second() {
        let (mut early, begin) = (Early::default(), Instant::now());
        for queue_pair in 0..3 {
            early.add_message(NodeId(4), Message::Closed { queue_pair }, begin);
            early.add_message(NodeId(5), Message::Closed { queue_pair }, begin);
        }
        assert!(early.waits_for(NodeId(4)) && !early.waits_for(NodeId(6)));
        let numbers: Vec<_> = early
            .take_ended(begin, |peer| peer == NodeId(4))
            .into_iter()
            .map(|ended| match ended {
                Ended::Reached(NodeId(4), Waiting::Message(Message::Closed { queue_pair })) => queue_pair,
                _ => panic!("it is reached"),
            })
            .collect();
        assert_eq!(numbers, [0, 1, 2]);
        assert!(early.take_ended(begin + WAIT / 2, |_| false).is_empty() && early.has_datagrams());
        let late = early.take_ended(begin + WAIT, |_| false);
        assert!(late.len() == 3 && late.iter().all(|ended| matches!(ended, Ended::Late(_))));
        assert!(early.is_empty() && !early.has_datagrams());
        for queue_pair in 0..2000 {
            early.add_message(NodeId(4), Message::Closed { queue_pair }, begin);
        }
        assert_eq!(early.waiting.len(), MESSAGES_MAX);
    }

    #[test]
    fn a_note_waits_longer_and_delays_no_exit() {
        let (mut early, begin) = (Early::default(), Instant::now());
        for number in 0..2000_u32 {
            early.add_message(NodeId(4), Message::Note(number.to_le_bytes().into()), begin);
        }
        assert!(early.waits_for(NodeId(4)) && !early.has_datagrams());
        assert!(early.take_ended(begin + WAIT, |_| false).is_empty());
        let reached = early.take_ended(begin + WAIT, |_| true);
        assert!(
            reached
                .iter()
                .all(|ended| matches!(ended, Ended::Reached(NodeId(4), Waiting::Message(Message::Note(_)))))
        );
        assert_eq!(reached.len(), MESSAGES_MAX);
        early.add_message(NodeId(4), Message::Note(Vec::new()), begin);
        let late = early.take_ended(begin + NOTE_WAIT, |_| false);
        assert!(matches!(late[..], [Ended::Late(Waiting::Message(Message::Note(_)))]) && early.is_empty());
    }
}
