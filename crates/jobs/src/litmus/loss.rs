//! Break-off of a litmus run that cannot go on: a rank notifies the others, lets outstanding operations complete,
//! checks what can still be checked, and finishes.
//!
//! Every rank decides on its own. No barrier is needed to break off. The notice to the others ensures that no rank
//! waits for a rank that has given up, even if the fabric has reported a loss to only one of them.

use rackloom_protocol::{Completion, Instant, JobMemory, NodeId};

use super::findings::read_word;
use super::layout::CONTROL;
use super::memory::{self, Certainty};
use super::{Litmus, Stage, phase};
use crate::measure::OperationKind;
use crate::ranks::request::{Body, Failure, Outcome, Request, Tag};
use crate::ranks::{BreakOff, NOTICES_REPEATED_MAX};

impl Litmus {
    pub(super) fn handle_failure(&mut self, now: Instant, outcome: &Outcome, failure: Failure) {
        let target =
            outcome.target.map_or_else(|| "all".to_owned(), |node| self.view.name(node.0).to_owned());
        let text = format!("{} to {target} ended with: {}", outcome.kind.name(), failure.name());
        match outcome.target {
            Some(node) if failure.is_loss() => {
                self.lose(node.0);
                self.break_off(now, BreakOff::Loss(self.losses()));
            }
            // The report decides whether a fault script explains the refusal.
            _ if failure.is_refusal() || failure.is_of_new_incarnation() => {
                self.break_off(now, BreakOff::Refusal(text))
            }
            _ if outcome.kind == OperationKind::ForbiddenAccess => {
                let described = phase::describe_forbidden(&self.view, outcome);
                self.findings.fail(format!("{described} to {target} ended with: {}", failure.name()));
            }
            _ => self.break_off(now, BreakOff::Fault(text)),
        }
    }

    /// Processes the notice of another rank that broke off. The notice may name a lost rank.
    pub(super) fn handle_abort(&mut self, now: Instant, memory: &mut dyn JobMemory) {
        let notice = read_word(memory, CONTROL, self.view.layout.abort_offset(), 8);
        let (sender, lost) = (notice as u16, (notice >> 16) as u16);
        if let Some(lost) = lost.checked_sub(1).filter(|lost| *lost != self.view.rank) {
            self.lose(lost);
        }
        let sender = self.view.name(sender.wrapping_sub(1)).to_owned();
        self.break_off(now, BreakOff::Loss(format!("{sender} broke off")));
    }

    pub(super) fn handle_loss(&mut self, now: Instant, node: NodeId) {
        let is_rank = node.index() < self.view.ranks.len();
        if is_rank && !matches!(self.stage, Stage::Close | Stage::Over) {
            self.lose(node.0);
            self.break_off(now, BreakOff::Loss(self.losses()));
        }
    }

    pub(super) fn lose(&mut self, rank: u16) {
        if usize::from(rank) < self.view.ranks.len() && rank != self.view.rank {
            self.lost.insert(rank);
            self.issuer.lose(NodeId(rank));
        }
    }

    /// Stops the work, notifies the others, and lets outstanding operations complete.
    pub(super) fn break_off(&mut self, now: Instant, reason: BreakOff) {
        if matches!(self.stage, Stage::BreakOff { .. } | Stage::Over) {
            return;
        }
        let activity = self.position();
        match reason {
            BreakOff::Loss(reason) => {
                self.findings.clean_errors.push(format!("broke off at {activity}: {reason}"))
            }
            BreakOff::Fault(reason) => self.findings.fail(format!("broke off at {activity}: {reason}")),
            BreakOff::Refusal(reason) => {
                self.findings.refusals.push(format!("broke off at {activity}: {reason}"))
            }
        }
        self.issuer.break_off();
        // A rank that is lost to this one may be live and wait for it. It is notified as well, if possible.
        for peer in 0..self.view.peers.len() {
            self.notify_abort(self.view.peers[peer]);
        }
        let until = now + self.view.settings.drain_timeout_ns;
        self.enter(Stage::BreakOff { until });
    }

    /// Notifies `peer` that this rank has broken off.
    fn notify_abort(&mut self, peer: u16) {
        let lost = self.lost.first().map_or(0, |lost| u64::from(*lost) + 1);
        let notice = (u64::from(self.view.rank) + 1) | lost << 16;
        let target = self.view.address(peer, CONTROL, self.view.layout.abort_offset());
        let data = notice.to_le_bytes().to_vec();
        let body = Body::Store { target, data, completion: Completion::Visible };
        self.issuer.submit_urgent(Request::new(Tag::AbortNotice, body));
    }

    /// Handles a notice that did not arrive. Memory that fails intermittently may accept the next notice, and a lost
    /// rank may return.
    pub(super) fn handle_unnotified(&mut self, peer: NodeId, failure: Failure) {
        if failure.is_refusal() && self.notices_repeated < NOTICES_REPEATED_MAX {
            self.notices_repeated += 1;
            self.notify_abort(peer.0);
        } else {
            self.unnotified.insert(peer.0);
        }
    }

    /// Handles a node that is reachable again. The node may not have noticed the loss, and may wait for work that this
    /// rank has given up.
    pub(super) fn handle_reached(&mut self, node: NodeId) {
        if self.unnotified.remove(&node.0) {
            self.notify_abort(node.0);
        }
    }

    pub(super) fn has_broken_off(&self) -> bool {
        matches!(self.stage, Stage::Over) && !self.is_complete
    }

    pub(super) fn finish_broken_off(&mut self, memory: &mut dyn JobMemory) {
        // A notice without a path to its target is not outstanding.
        if self.issuer.has_outstanding() {
            let waiting = self.issuer.waiting_for(|node| self.view.name(node.0).to_owned());
            self.findings.fail(format!("operations did not end in time: {waiting}"));
        }
        if self.is_prepared {
            memory::sweep(&self.view, memory, &mut self.findings, Certainty::Partial);
        }
        self.enter(Stage::Over);
    }

    pub(super) fn losses(&self) -> String {
        format!("lost nodes [{}]", self.lost_names().join(", "))
    }

    pub(super) fn lost_names(&self) -> Vec<String> {
        self.lost.iter().map(|rank| self.view.name(*rank).to_owned()).collect()
    }
}
