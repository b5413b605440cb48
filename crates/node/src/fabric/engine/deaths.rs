//! Deaths and departures of members, and the wakers of callers that depend on several members.
//!
//! An operation watches only the peer that it names. A caller that depends on several members at once watches here. The death of a member counts
//! even if it returns.

use std::task::Waker;

use rackloom_protocol::{Event, NodeId};

use crate::fabric::error::Error;

/// Deaths that this node has detected.
#[derive(Debug, Default)]
pub(in crate::fabric) struct Deaths {
    counts: Vec<u32>,
    total: u64,
    /// Members that have left in order, whose loss is no death. Few, if any.
    left: Vec<NodeId>,
    watchers: Vec<Waker>,
}

impl Deaths {
    /// Handles an event of the core. Returns the wakers to be woken.
    pub(in crate::fabric) fn handle_event(&mut self, event: &Event) -> impl Iterator<Item = Waker> {
        match event {
            Event::NodeLeft { node } => self.left.push(*node),
            Event::NodeReached { node } | Event::NodeRestarted { node } => {
                self.left.retain(|left| left != node)
            }
            _ => {}
        }
        let dead = match event {
            Event::NodeLost { node } | Event::NodeRestarted { node } => Some(node.index()),
            _ => None,
        };
        if let Some(index) = dead {
            if self.counts.len() <= index {
                self.counts.resize(index + 1, 0);
            }
            self.counts[index] += 1;
            self.total += 1;
        }
        let watchers = if dead.is_some() { std::mem::take(&mut self.watchers) } else { Vec::new() };
        watchers.into_iter()
    }

    /// Turns a loss into a departure, if the member announced that it would leave.
    pub(in crate::fabric) fn name(&self, error: Error) -> Error {
        match error {
            Error::PeerLost { peer, .. } if self.left.contains(&peer) => error.in_order(),
            error => error,
        }
    }

    /// Returns the number of deaths of all members. It grows with each death.
    pub(in crate::fabric) const fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of deaths of a member.
    pub(in crate::fabric) fn of(&self, node: NodeId) -> u32 {
        self.counts.get(node.index()).copied().unwrap_or(0)
    }

    /// Registers a waker for the next death. A caller that stops waiting calls [`Deaths::forget`].
    pub(in crate::fabric) fn watch(&mut self, waker: &Waker) {
        if !self.watchers.iter().any(|known| known.will_wake(waker)) {
            self.watchers.push(waker.clone());
        }
    }

    /// Removes a waker of a caller that stops waiting.
    pub(in crate::fabric) fn forget(&mut self, waker: &Waker) {
        self.watchers.retain(|known| !known.will_wake(waker));
    }

    /// Returns the number of wakers.
    #[cfg(test)]
    pub(in crate::fabric) fn watchers(&self) -> usize {
        self.watchers.len()
    }
}
