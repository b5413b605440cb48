//! Phases of a round: the operations of a rank between two barriers.
//!
//! A phase submits requests to the issuer while there is capacity, receives their results, and may read local memory.
//! It handles neither the clock, nor barriers, nor losses.

mod atomic;
mod forbidden;
mod messages;
mod ordered;
mod read;
mod write;

pub(crate) use atomic::{Atomics, check_contended};
pub(crate) use forbidden::{Forbidden, check_refusals, describe_forbidden};
pub(crate) use messages::Messages;
pub(crate) use ordered::Ordered;
pub(crate) use read::Reads;
pub(crate) use write::Writes;

use rackloom_protocol::{JobMemory, LocalRange};

use super::fill;
use super::findings::Findings;
use super::lanes::Lanes;
use super::run_view::RunView;
use crate::ranks::issuer::Issuer;
use crate::ranks::pattern::Pattern;
use crate::ranks::request::Outcome;

/// Resources of a phase during one poll.
pub(crate) struct Poll<'a> {
    pub(crate) view: &'a RunView,
    pub(crate) memory: &'a mut dyn JobMemory,
    pub(crate) issuer: &'a mut Issuer,
    pub(crate) lanes: &'a mut Lanes,
    pub(crate) findings: &'a mut Findings,
}

impl Poll<'_> {
    /// Writes a pattern, from `index` on, into a range of the rank's own memory.
    pub(crate) fn fill(&mut self, range: LocalRange, pattern: Pattern, index: u64) {
        fill::fill(self.memory, self.findings, range, pattern, index);
    }
}

/// One phase of one rank in one round.
pub(crate) trait Phase: Send {
    /// Returns the phase's name for display.
    fn name(&self) -> &'static str;
    /// Submits requests while there is capacity. Returns whether there are none left to submit.
    fn submit(&mut self, poll: &mut Poll<'_>) -> bool;
    /// Records that a request succeeded. Failures break off the run before they reach a phase.
    fn succeeded(&mut self, poll: &mut Poll<'_>, outcome: &Outcome, peer: u16, item: u32);
    /// Checks local memory. Returns whether there is nothing left to check.
    fn look(&mut self, _turn: &mut Poll<'_>) -> bool {
        true
    }
    /// Returns the ranks that the phase waits for, for a watchdog.
    fn waits_for(&self, _view: &RunView) -> Option<String> {
        None
    }
}

/// Iterates over every item of every peer. It takes one item of each peer before the next item of any, so that all
/// pairs are busy at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sweeper {
    item: u32,
    peer: usize,
}

impl Sweeper {
    /// Returns the next (peer, item). `count` returns the number of a peer's items. The position advances only when
    /// `take` is called.
    pub(crate) fn current(&mut self, peers: &[u16], count: impl Fn(u16) -> usize) -> Option<(u16, u32)> {
        let longest = peers.iter().map(|peer| count(*peer)).max().unwrap_or(0);
        while (self.item as usize) < longest {
            while let Some(peer) = peers.get(self.peer) {
                if (self.item as usize) < count(*peer) {
                    return Some((*peer, self.item));
                }
                self.peer += 1;
            }
            self.peer = 0;
            self.item += 1;
        }
        None
    }

    /// Advances past the current item.
    pub(crate) fn take(&mut self) {
        self.peer += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_of_every_peer_comes_once_and_peers_alternate() {
        let counts = |peer: u16| [0, 3, 1][usize::from(peer)];
        let mut sweeper = Sweeper::default();
        let mut seen = Vec::new();
        while let Some(next) = sweeper.current(&[1, 2, 0], counts) {
            seen.push(next);
            sweeper.take();
        }
        assert_eq!(seen, [(1, 0), (2, 0), (1, 1), (1, 2)]);
    }
}
