//! Which members have died, how often, and who wants to know; and which have left in order, which ends as much.
//!
//! An operation watches the peer that it names; whoever depends on several members at once watches here. A member that comes
//! back has died all the same.

use std::task::Waker;

use rackloom_protocol::{Event, NodeId};

use super::error::Error;

/// Deaths that this node has heard of.
#[derive(Debug, Default)]
pub(super) struct Deaths {
    counts: Vec<u32>,
    total: u64,
    /// Whose loss is no death. Few, if any.
    left: Vec<NodeId>,
    watchers: Vec<Waker>,
}

impl Deaths {
    /// Hear what the core says; whom to wake because of it.
    pub(super) fn hear(&mut self, event: &Event) -> impl Iterator<Item = Waker> {
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

    /// What a loss is to be called: a member may have said before that it would leave.
    pub(super) fn name(&self, error: Error) -> Error {
        match error {
            Error::PeerLost { peer, .. } if self.left.contains(&peer) => error.in_order(),
            error => error,
        }
    }

    /// Deaths of all members together; grows with each.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// How often a member has died.
    pub(super) fn of(&self, node: NodeId) -> u32 {
        self.counts.get(node.index()).copied().unwrap_or(0)
    }

    /// Wake this one at the next death, unless it says before that it does not wait any more: [`Deaths::forget`].
    pub(super) fn watch(&mut self, waker: &Waker) {
        if !self.watchers.iter().any(|known| known.will_wake(waker)) {
            self.watchers.push(waker.clone());
        }
    }

    /// This one does not wait any more.
    pub(super) fn forget(&mut self, waker: &Waker) {
        self.watchers.retain(|known| !known.will_wake(waker));
    }

    /// How many wait.
    #[cfg(test)]
    pub(super) fn watchers(&self) -> usize {
        self.watchers.len()
    }
}
