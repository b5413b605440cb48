//! State of a member's group that its calls share.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rackloom_collectives::execute::Blocks;

use super::membership::Membership;
use super::query::Broken;
use super::schedules::Schedules;

/// State that calls share.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) membership: Membership,
    pub(super) state: Mutex<State>,
    pub(super) join_timeout_ns: u64,
    /// Number of deaths that have been checked.
    pub(super) deaths_seen: AtomicU64,
}

/// State that changes with each call.
#[derive(Debug)]
pub(super) struct State {
    pub(super) schedules: Schedules,
    pub(super) blocks: Blocks,
    /// Number of calls.
    pub(super) calls: u32,
    /// All other members have joined.
    pub(super) is_complete: bool,
    /// Number of runs with data.
    pub(super) runs: u32,
    pub(super) barriers: u32,
    /// A barrier must come first: there was no run, or the last one does not prove that all members have left the one before it.
    pub(super) must_meet: bool,
    pub(super) is_busy: bool,
    pub(super) broken: Option<Broken>,
    /// Wait that ends when another member breaks the group.
    pub(super) departure: Option<rackloom_protocol::OperationId>,
}

impl Inner {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A panic while the lock was held would be a bug of this crate. Other callers get an error at worst.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
