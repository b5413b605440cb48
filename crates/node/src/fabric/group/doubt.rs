//! What a member does about the one that it waits for: ask whether it is in the same call at all.
//!
//! The core ends a wait if the peer is lost, and a peer that gives up says so. Two things nobody says. A peer may call something
//! else, and wait in turn: so who waits asks it now and then. And some third member may be dead, for which the peer waits, or
//! which has long done its part and left: so at each death who waits asks as well, and goes on if the peer is in the same call.
//! The peer will then send its part, or finds out itself, because it waits for the dead member or asks the one that it
//! waits for. A peer that has not come to the call will not do so after a death.

use std::task::Waker;

use rackloom_protocol::{Instant, NodeId, OperationId};

use super::super::core::Core;
use super::super::error::Error;
use super::Inner;
use super::inquiry::{CallName, Headline, Question, Whereabouts};
use super::running::Running;

/// How long a wait goes on before the peer is asked, and asked again.
pub(super) const ASK_AGAIN_NS: u64 = 100_000_000;

/// Doubts about the peer of one wait.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    wait: Option<OperationId>,
    ask_at: Instant,
    /// What is asked, and how many deaths were known then.
    question: Option<(Question, u64)>,
    /// Deaths after which the peer was found in the same call.
    cleared: Option<u64>,
}

impl Doubt {
    /// Nothing has come yet: see whether it is worth waiting. `issued` becomes true if the core has something to send.
    pub(super) fn advance(
        &mut self,
        core: &mut Core,
        group: &Inner,
        (running, call): (&Running, CallName),
        issued: &mut bool,
    ) -> Result<(), Error> {
        let now = core.member()?.now();
        let Some((wait, from)) = running.waits_for() else {
            // What has been sent ends by itself.
            self.abandon(core);
            return Ok(());
        };
        if self.wait != Some(wait) {
            self.abandon(core);
            *self = Self { wait: Some(wait), ask_at: now + ASK_AGAIN_NS, ..Self::default() };
        }
        let (dead, deaths) = (group.dead(core), core.table.deaths.total());
        let is_urgent = dead.is_some() && self.cleared != Some(deaths);
        if self.question.is_none() && (is_urgent || now >= self.ask_at) {
            self.question = Some((Question::new(from, Instant::ZERO), deaths));
        }
        let Some((question, deaths)) = &mut self.question else { return Ok(()) };
        let Some(answer) = question.advance(core, &group.place, issued) else { return Ok(()) };
        let deaths = *deaths;
        self.question = None;
        self.ask_at = now + ASK_AGAIN_NS;
        if running.has_arrived(&group.place)? {
            // It was on its way, and the wait ends with one of the next turns, whatever the peer does now.
            return Ok(());
        }
        let peer = group.place.members[from];
        self.judge(answer?, (call, peer), dead, deaths)
    }

    fn judge(
        &mut self,
        headline: Headline,
        (call, peer): (CallName, NodeId),
        dead: Option<NodeId>,
        deaths: u64,
    ) -> Result<(), Error> {
        let other = match headline {
            Headline::Calls(other) => other,
            Headline::Over(broken) => return Err(broken.error(true)),
        };
        match (call.where_is(other), dead) {
            (Whereabouts::Here, _) => self.cleared = Some(deaths),
            (Whereabouts::NotYetHere, None) => {}
            (Whereabouts::NotYetHere, Some(peer)) => return Err(Error::PeerLost { peer, maybe_done: true }),
            (Whereabouts::Elsewhere, _) => return Err(Error::GroupBroken { peer }),
        }
        Ok(())
    }

    /// Nobody wants to know any more.
    pub(super) fn abandon(&mut self, core: &mut Core) {
        if let Some((mut question, _)) = self.question.take() {
            question.abandon(core);
        }
    }

    pub(super) fn register(&self, core: &mut Core, waker: &Waker) {
        if let Some(operation) = self.question.as_ref().and_then(|(question, _)| question.operation()) {
            core.table.set_waker(operation, waker);
        }
    }
}
