//! Check that every member has joined, before a member's first collective.
//!
//! Members join at different times. Each queries all others until their regions exist, for at most its join timeout, so no member waits for
//! one that never joins. The first collective then begins with a barrier. A member that leaves the barrier has proof that all have finished
//! their join checks, so it may leave the group.
//!
//! The join check also detects failures before this member joined: a member that gave up could not notify it, but answers the query.

use std::task::Waker;

use rackloom_protocol::{Instant, OperationError};

use super::super::error::Error;
use super::layout::Layout;
use super::membership::Membership;
use super::query::{GroupStatus, Query};
use crate::fabric::engine::core::Core;

/// Members that have not answered.
#[derive(Debug)]
pub(super) struct JoinCheck {
    queries: Vec<Query>,
    join_timeout_ns: u64,
}

impl JoinCheck {
    pub(super) fn new(membership: &Membership, layout: Layout, now: Instant, join_timeout_ns: u64) -> Self {
        let others = (0..membership.members.len()).filter(|rank| *rank != membership.rank);
        let queries = others.map(|rank| Query::new(rank, layout, now + join_timeout_ns)).collect();
        Self { queries, join_timeout_ns }
    }

    /// Advances the queries. `None` while an answer is missing.
    pub(super) fn advance(&mut self, core: &mut Core, membership: &Membership) -> Option<Result<(), Error>> {
        loop {
            let (mut issued, mut failed) = (false, None);
            self.queries.retain_mut(|query| match query.advance(core, membership, &mut issued) {
                None => true,
                Some(Ok(GroupStatus::Calls(_))) => false,
                Some(Ok(GroupStatus::Over(broken))) => {
                    failed.get_or_insert(broken.error(true));
                    false
                }
                Some(Err(error)) => {
                    failed.get_or_insert(missing(error, self.join_timeout_ns));
                    false
                }
            });
            if failed.is_some() {
                return failed.map(Err);
            }
            if self.queries.is_empty() {
                return Some(Ok(()));
            }
            if !issued {
                return None;
            }
            core.poll();
        }
    }

    pub(super) fn register(&self, core: &mut Core, waker: &Waker) {
        for operation in self.queries.iter().filter_map(Query::operation) {
            core.table.set_waker(operation, waker);
        }
    }

    pub(super) fn abandon(&mut self, core: &mut Core) {
        self.queries.iter_mut().for_each(|query| query.abandon(core));
    }
}

/// Converts the error of a member without the group's region, which has not joined or has left the group.
fn missing(error: Error, join_timeout_ns: u64) -> Error {
    match error {
        Error::Refused { peer, reason: OperationError::NoSuchRegion } => {
            Error::NotJoined { peer, waited_ms: join_timeout_ns / 1_000_000 }
        }
        other => other,
    }
}
