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
#[non_exhaustive]
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

    /// Wake this one, or another that asked before, at the next completion. Whoever does not wait any more says so:
    /// [`Queue::forget`].
    pub(super) fn set_waker(&self, waker: &Waker) {
        let mut waiting = self.lock();
        if !waiting.wakers.iter().any(|known| known.will_wake(waker)) {
            waiting.wakers.push(waker.clone());
        }
    }

    /// This one does not wait any more. If it was chosen for a completion that it has not taken, another has to come: whom to
    /// wake.
    pub(super) fn forget(&self, waker: &Waker) -> Option<Waker> {
        let mut waiting = self.lock();
        let known = waiting.wakers.iter().position(|known| known.will_wake(waker));
        match known {
            Some(index) => {
                waiting.wakers.swap_remove(index);
                None
            }
            None if waiting.completions.is_empty() => None,
            None => waiting.wakers.pop(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A panic while the lock was held cannot have left half a completion: pushes and pops are whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    use super::*;

    /// Counts how often it was woken.
    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn completion() -> Completion {
        Completion { context: 0, operation: OperationId(1), result: Ok(Ended::default()) }
    }

    #[test]
    fn who_waits_no_more_is_not_woken_and_hands_its_turn_on() {
        let queue = Queue::with_capacity(4);
        let (first, second) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
        let (first_waker, second_waker) = (Waker::from(Arc::clone(&first)), Waker::from(Arc::clone(&second)));
        let woken = || (first.0.load(Ordering::Relaxed), second.0.load(Ordering::Relaxed));
        queue.set_waker(&second_waker);
        queue.set_waker(&first_waker);
        queue.set_waker(&first_waker);
        assert!(queue.forget(&first_waker).is_none(), "nothing has come for it");
        queue.push(completion()).expect("one waits").wake();
        assert_eq!(woken(), (0, 1));
        // The first is chosen, and gives up before it has taken anything.
        queue.set_waker(&second_waker);
        queue.set_waker(&first_waker);
        queue.push(completion()).expect("two wait").wake();
        queue.forget(&first_waker).expect("the other has to come").wake();
        assert_eq!(woken(), (1, 2));
        assert!(queue.lock().wakers.is_empty());
    }

    #[test]
    fn a_wait_leaves_no_waker_behind() {
        let plan = rackloom_plan::Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "test").unwrap();
        let fabric = super::super::Fabric::local(&plan).unwrap();
        let node = &fabric.nodes()[0];
        let queue = Queue::with_capacity(1);
        let (is_over, looks) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            // Somebody else drives, so that the wait below parks again and again.
            scope.spawn(|| {
                node.wait_for(rackloom_protocol::Instant::NEVER, |_| {
                    looks.fetch_add(1, Ordering::Relaxed);
                    is_over.load(Ordering::Relaxed) == 1
                })
            });
            // It looks once, and from then on as the driver.
            while looks.load(Ordering::Relaxed) < 2 {
                std::thread::yield_now();
            }
            let patience = std::time::Duration::from_millis(100);
            assert!(node.poll_wait(&queue, patience).is_none());
            let wakers = queue.lock().wakers.len();
            is_over.store(1, Ordering::Relaxed);
            assert_eq!(wakers, 0);
        });
    }
}
