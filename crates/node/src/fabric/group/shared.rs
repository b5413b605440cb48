//! State of a member's group that its calls share.
//!
//! Calls are numbered when they begin. Call *n* uses lane *n* modulo the number of lanes, on every member, because all members begin the same
//! calls in the same order. A lane runs its calls one after the other; a call waits until the earlier calls of its lane have ended.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use rackloom_collectives::execute::Blocks;
use rackloom_protocol::OperationId;

use super::adaptations::{Adaptations, Rechoice};
use super::layout::Layout;
use super::membership::Membership;
use super::options::GroupOptions;
use super::query::Broken;
use super::schedules::Schedules;

/// State that calls share.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) options: GroupOptions,
    pub(super) membership: Membership,
    pub(super) lanes: Vec<Lane>,
    pub(super) schedules: Mutex<Schedules>,
    pub(super) common: Mutex<Common>,
    /// Number of deaths that have been checked.
    pub(super) deaths_seen: AtomicU64,
}

/// State of all lanes.
#[derive(Debug, Default)]
pub(super) struct Common {
    /// Lane of the next call that begins.
    pub(super) next_lane: usize,
    /// All other members have joined.
    pub(super) is_complete: bool,
    pub(super) broken: Option<Broken>,
    /// Last trials of algorithms, in the order of their ends.
    pub(super) rechoices: VecDeque<Rechoice>,
    /// Wait that ends when another member breaks the group.
    pub(super) departure: Option<OperationId>,
}

/// One lane: a part of the region, and the calls that use it.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) layout: Layout,
    pub(super) state: Mutex<LaneState>,
}

/// State of a lane that changes with each call.
#[derive(Debug)]
pub(super) struct LaneState {
    /// Buffers of the call that has the turn take them from here, and give them back.
    pub(super) blocks: Option<Box<Blocks>>,
    /// Number of the last call that has its turn or had it.
    pub(super) calls: u32,
    /// Number of runs with data.
    pub(super) runs: u32,
    pub(super) barriers: u32,
    /// A barrier must come first: there was no run, or the last one does not prove that all members have left the one before it.
    pub(super) must_meet: bool,
    pub(super) turns: Turns,
    pub(super) adaptations: Adaptations,
}

/// Order of the calls of a lane.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Number of calls that have begun.
    pub(super) taken: u64,
    /// Number of calls that have ended.
    pub(super) ended: u64,
    /// Number of calls that have begun and that no thread drives now.
    pub(super) paused: usize,
    /// Wakers of calls that wait for their turn.
    waiting: Vec<Waker>,
}

impl Turns {
    /// Has a call that waits for its turn woken when a call ends.
    pub(super) fn register(&mut self, waker: &Waker) {
        if !self.waiting.iter().any(|known| known.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
    }

    /// Notes the end of the oldest call, and returns the wakers of the calls behind it.
    pub(super) fn end(&mut self) -> Vec<Waker> {
        self.ended += 1;
        debug_assert!(self.ended <= self.taken, "a call ends that has not begun");
        std::mem::take(&mut self.waiting)
    }
}

impl Inner {
    pub(super) fn common(&self) -> MutexGuard<'_, Common> {
        locked(&self.common)
    }

    pub(super) fn schedules(&self) -> MutexGuard<'_, Schedules> {
        locked(&self.schedules)
    }

    /// Returns the state of a lane.
    pub(super) fn lane(&self, lane: usize) -> MutexGuard<'_, LaneState> {
        locked(&self.lanes[lane].state)
    }
}

/// Locks a part of the state. A panic while the lock was held would be a bug of this crate; other callers get an error at worst.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
