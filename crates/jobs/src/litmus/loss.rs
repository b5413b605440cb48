//! When something goes wrong that the run cannot go on with: a rank tells the others, lets what is outstanding end, checks what can
//! still be checked, and finishes.
//!
//! Every rank decides for itself; no barrier is needed to break off. A notice to the others makes sure that nobody waits for a
//! rank that has given up, also where the fabric has told only one of them about a loss.

use rackloom_protocol::{Completion, Instant, Memory, NodeId};

use super::findings::read_word;
use super::layout::CONTROL;
use super::memory::{self, Certainty};
use super::{Litmus, Stage, phase};
use crate::crew::request::{Body, Failure, Outcome, Request, Tag};
use crate::measure::OperationKind;

impl Litmus {
    pub(super) fn hear_failure(&mut self, now: Instant, outcome: &Outcome, failure: Failure) {
        let target =
            outcome.target.map_or_else(|| "all".to_owned(), |node| self.scene.name(node.0).to_owned());
        let text = format!("{} to {target} ended with: {}", outcome.kind.name(), failure.name());
        match outcome.target {
            Some(node) if failure.is_loss() => {
                self.lose(node.0);
                self.break_off(now, None);
            }
            _ if outcome.kind == OperationKind::ForbiddenAccess => {
                let described = phase::describe_forbidden(&self.scene, outcome);
                self.findings.fail(format!("{described} to {target} ended with: {}", failure.name()));
            }
            _ => self.break_off(now, Some(text)),
        }
    }

    /// Another rank broke off; its notice may say whom it lost.
    pub(super) fn hear_abort(&mut self, now: Instant, memory: &mut dyn Memory) {
        let notice = read_word(memory, CONTROL, self.scene.layout.abort_offset(), 8);
        let (sender, lost) = (notice as u16, (notice >> 16) as u16);
        if let Some(lost) = lost.checked_sub(1).filter(|lost| *lost != self.scene.rank) {
            self.lose(lost);
        }
        let sender = self.scene.name(sender.wrapping_sub(1)).to_owned();
        self.break_off(now, Some(format!("{sender} broke off")));
    }

    pub(super) fn hear_loss(&mut self, now: Instant, node: NodeId) {
        let is_rank = node.index() < self.scene.ranks.len();
        if is_rank && !matches!(self.stage, Stage::Close | Stage::Over) {
            self.lose(node.0);
            self.break_off(now, None);
        }
    }

    pub(super) fn lose(&mut self, rank: u16) {
        if usize::from(rank) < self.scene.ranks.len() && rank != self.scene.rank {
            self.lost.insert(rank);
            self.issuer.lose(NodeId(rank));
        }
    }

    /// Stop what is being done, tell the others, and let what is outstanding end.
    pub(super) fn break_off(&mut self, now: Instant, reason: Option<String>) {
        if matches!(self.stage, Stage::BreakOff { .. } | Stage::Over) {
            return;
        }
        let place = self.place();
        self.findings.fail(match reason {
            Some(reason) => format!("broke off at {place}: {reason}"),
            None => format!("broke off at {place}: lost nodes [{}]", self.lost_names().join(", ")),
        });
        self.issuer.break_off();
        let lost = self.lost.first().map_or(0, |lost| u64::from(*lost) + 1);
        let notice = (u64::from(self.scene.rank) + 1) | lost << 16;
        for peer in self.scene.peers.iter().filter(|peer| !self.lost.contains(peer)) {
            let target = self.scene.address(*peer, CONTROL, self.scene.layout.abort_offset());
            let data = notice.to_le_bytes().to_vec();
            let body = Body::Store { target, data, completion: Completion::Visible };
            self.issuer.submit_urgent(Request::new(Tag::AbortNotice, body));
        }
        let until = now + self.scene.settings.drain_timeout_ns;
        self.enter(Stage::BreakOff { until });
    }

    pub(super) fn finish_broken_off(&mut self, memory: &mut dyn Memory) {
        if !self.issuer.is_empty() {
            let waiting = self.issuer.waiting_for(|node| self.scene.name(node.0).to_owned());
            self.findings.fail(format!("operations did not end in time: {waiting}"));
        }
        if self.is_prepared {
            memory::sweep(&self.scene, memory, &mut self.findings, Certainty::Partial);
        }
        self.enter(Stage::Over);
    }

    pub(super) fn lost_names(&self) -> Vec<String> {
        self.lost.iter().map(|rank| self.scene.name(*rank).to_owned()).collect()
    }
}
