//! Completions for callers who submit much and ask later.
//!
//! A queue belongs to nobody's operation: requests of several nodes, even of several fabrics, may end in one queue. It
//! is filled by whoever drives the node, and emptied by [`super::Node::poll`] or by [`Queue::pop`]. The room of the
//! queue is reserved once and grows only if more completions wait than it was made for.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use rackloom_protocol::OperationId;

use super::error::Error;
use super::table::Ended;

/// The end of a submitted request.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug)]
pub struct Completion {
    /// What the caller gave with the request.
    pub context: u64,
    /// The operation's name at its node.
    pub operation: OperationId,
    /// How it ended.
    pub result: Result<Ended, Error>,
}

/// A completion queue and its counters.
///
/// `Send` and `Sync`: any number of threads may submit to it and take from it; each completion is taken once.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    succeeded: AtomicU64,
    failed: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    completions: VecDeque<Completion>,
    wakers: Vec<Waker>,
}

impl Queue {
    /// A queue with room for `capacity` completions.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Arc<Self> {
        let waiting = Waiting { completions: VecDeque::with_capacity(capacity), wakers: Vec::new() };
        Arc::new(Self { waiting: Mutex::new(waiting), ..Self::default() })
    }

    /// The oldest completion. Does not drive a node: see [`super::Node::poll`].
    pub fn pop(&self) -> Option<Completion> {
        self.lock().completions.pop_front()
    }

    /// Completions that wait to be taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().completions.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Requests that have ended well, since the queue was made.
    #[must_use]
    pub fn succeeded(&self) -> u64 {
        self.succeeded.load(Ordering::Acquire)
    }

    /// Requests that have ended in an error, since the queue was made.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Acquire)
    }

    /// Add a completion; whom to wake.
    pub(super) fn push(&self, completion: Completion) -> Option<Waker> {
        let counter = if completion.result.is_ok() { &self.succeeded } else { &self.failed };
        counter.fetch_add(1, Ordering::AcqRel);
        let mut waiting = self.lock();
        waiting.completions.push_back(completion);
        waiting.wakers.pop()
    }

    /// Wake this one, or another that asked before, at the next completion.
    pub(super) fn set_waker(&self, waker: &Waker) {
        let mut waiting = self.lock();
        if !waiting.wakers.iter().any(|known| known.will_wake(waker)) {
            waiting.wakers.push(waker.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A panic while the lock was held cannot have left half a completion: pushes and pops are whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
