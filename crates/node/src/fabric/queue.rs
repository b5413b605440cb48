//! Completions for callers who submit much and ask later.
//!
//! A queue belongs to nobody's operation: requests of several nodes, even of several fabrics, may end in one queue. It
//! is filled by whoever drives the node, and emptied by [`super::Node::poll`] or by [`Queue::pop`]. The room of the
//! queue is reserved once and grows only if more completions wait than it was made for.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// How many wait: written under the lock, read without it by those who mostly find none.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Waiting {
    completions: VecDeque<Completion>,
    wakers: Vec<Waker>,
    succeeded: u64,
    failed: u64,
}

impl Queue {
    /// A queue with room for `capacity` completions.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Arc<Self> {
        let waiting = Waiting { completions: VecDeque::with_capacity(capacity), ..Waiting::default() };
        Arc::new(Self { waiting: Mutex::new(waiting), ..Self::default() })
    }

    /// The oldest completion. Does not drive a node: see [`super::Node::poll`].
    pub fn pop(&self) -> Option<Completion> {
        if self.is_empty() {
            return None;
        }
        let mut waiting = self.lock();
        let completion = waiting.completions.pop_front();
        self.count.store(waiting.completions.len(), Ordering::Release);
        completion
    }

    /// Completions that wait to be taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Requests that have ended well, since the queue was made.
    #[must_use]
    pub fn succeeded(&self) -> u64 {
        self.lock().succeeded
    }

    /// Requests that have ended in an error, since the queue was made.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.lock().failed
    }

    /// Add a completion; whom to wake.
    pub(super) fn push(&self, completion: Completion) -> Option<Waker> {
        let mut waiting = self.lock();
        let counter = if completion.result.is_ok() { &mut waiting.succeeded } else { &mut waiting.failed };
        *counter += 1;
        waiting.completions.push_back(completion);
        self.count.store(waiting.completions.len(), Ordering::Release);
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
