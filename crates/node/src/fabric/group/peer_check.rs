//! Check of the peer of a wait: does it take part in the same call?
//!
//! The core ends a wait if the peer is lost, and a peer that gives up sends a departure. Two cases remain. First, a peer may be in a different
//! call and wait itself, so a waiting member queries its peer at intervals. Second, a third member may be dead: the peer waits for it, or
//! has finished its part and left. So a waiting member also queries its peer after each death, and continues if the peer is in the
//! same call. The peer then sends its part, or detects the failure itself, because it waits for the dead member or queries the
//! member that it waits for. A peer that has not reached the call will not do so after a death.

use std::task::Waker;

use rackloom_protocol::{Instant, NodeId, OperationId};

use super::super::error::Error;
use super::query::{CallName, GroupStatus, Query, RelativePosition};
use super::running::Running;
use super::shared::Inner;
use crate::fabric::engine::core::Core;

/// Interval after which the peer of a wait is queried, in nanoseconds.
pub(super) const QUERY_INTERVAL_NS: u64 = 100_000_000;

/// State of the check of one wait's peer.
#[derive(Debug, Default)]
pub(super) struct PeerCheck {
    wait: Option<OperationId>,
    query_at: Instant,
    /// The query in flight, and the number of deaths that were known when it was sent.
    query: Option<(Query, u64)>,
    /// Number of deaths that were known when the peer was found in the same call.
    cleared: Option<u64>,
}

impl PeerCheck {
    /// Advances a wait without a signal: checks that the peer can still send it. Sets `issued` if the core has a command to send.
    pub(super) fn advance(
        &mut self,
        core: &mut Core,
        group: &Inner,
        running: &Running,
        call: CallName,
        issued: &mut bool,
    ) -> Result<(), Error> {
        let now = core.member()?.now();
        let Some((wait, from)) = running.waits_for() else {
            // The signal has arrived, and the wait ends by itself.
            self.abandon(core);
            return Ok(());
        };
        if self.wait != Some(wait) {
            self.abandon(core);
            *self = Self { wait: Some(wait), query_at: now + QUERY_INTERVAL_NS, ..Self::default() };
        }
        let (dead, deaths) = (group.dead(core), core.table.deaths.total());
        let is_urgent = dead.is_some() && self.cleared != Some(deaths);
        if self.query.is_none() && (is_urgent || now >= self.query_at) {
            self.query = Some((Query::new(from, running.layout, Instant::ZERO), deaths));
        }
        let Some((query, deaths)) = &mut self.query else { return Ok(()) };
        let Some(answer) = query.advance(core, &group.membership, issued) else { return Ok(()) };
        let deaths = *deaths;
        self.query = None;
        self.query_at = now + QUERY_INTERVAL_NS;
        if running.has_arrived(&group.membership)? {
            // The signal was in flight. The wait ends with one of the next polls, regardless of the peer's state.
            return Ok(());
        }
        let peer = group.membership.members[from];
        self.judge(answer?, call, peer, dead, deaths)
    }

    fn judge(
        &mut self,
        group_status: GroupStatus,
        call: CallName,
        peer: NodeId,
        dead: Option<NodeId>,
        deaths: u64,
    ) -> Result<(), Error> {
        let other = match group_status {
            GroupStatus::Calls(other) => other,
            GroupStatus::Over(broken) => return Err(broken.error(true)),
        };
        match (call.compare(other), dead) {
            (RelativePosition::Equal, _) => self.cleared = Some(deaths),
            (RelativePosition::Behind, None) => {}
            (RelativePosition::Behind, Some(peer)) => return Err(Error::PeerLost { peer, maybe_done: true }),
            (RelativePosition::Diverged, _) => return Err(Error::GroupBroken { peer }),
        }
        Ok(())
    }

    /// Drops the query.
    pub(super) fn abandon(&mut self, core: &mut Core) {
        if let Some((mut query, _)) = self.query.take() {
            query.abandon(core);
        }
    }

    pub(super) fn register(&self, core: &mut Core, waker: &Waker) {
        if let Some(operation) = self.query.as_ref().and_then(|(query, _)| query.operation()) {
            core.table.set_waker(operation, waker);
        }
    }
}
