//! Completion queues, for callers that submit many operations and collect the completions later.
//!
//! A queue is independent of nodes: requests of several nodes, even of several fabrics, may complete in one queue. The thread that drives
//! a node fills it. [`super::Node::poll`] and [`Queue::pop`] empty it. Its capacity is reserved once, and grows only if more completions
//! wait than expected.

use std::collections::VecDeque;
use std::future::Future;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};

use super::completion::Completion;

/// Completion queue with counters.
///
/// `Send` and `Sync`: any number of threads may submit to it and take from it. Each completion is taken once.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    /// Readable while a completion waits. Made at the first use.
    descriptor: OnceLock<OwnedFd>,
    /// Number of waiting completions. Written under the lock, and read without it, since most reads find 0.
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
    /// Returns an empty queue for up to `capacity` completions.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Arc<Self> {
        let waiting = Waiting { completions: VecDeque::with_capacity(capacity), ..Waiting::default() };
        Arc::new(Self { waiting: Mutex::new(waiting), ..Self::default() })
    }

    /// Takes the oldest completion. Does not poll a node: see [`super::Node::poll`].
    pub fn pop(&self) -> Option<Completion> {
        if self.is_empty() {
            return None;
        }
        self.take_from(&mut self.lock())
    }

    fn take_from(&self, waiting: &mut Waiting) -> Option<Completion> {
        let completion = waiting.completions.pop_front();
        self.count.store(waiting.completions.len(), Ordering::Release);
        if completion.is_some()
            && waiting.completions.is_empty()
            && let Some(descriptor) = self.descriptor.get()
        {
            // The counter is not zero while a completion waits, so the read does not fail.
            let _ = read(descriptor, &mut [0; 8]);
        }
        completion
    }

    /// Returns a future of the next completion. The background threads of the nodes drive them meanwhile. Several tasks may wait; each
    /// completion goes to one of them.
    pub const fn next(&self) -> Next<'_> {
        Next { queue: self, waker: None }
    }

    /// Returns a descriptor that is readable while a completion waits, for `epoll`, `poll` and runtimes such as `tokio`. Do not read from it:
    /// take completions with [`Queue::pop`] until there is none. The background threads of the nodes drive them while the program waits for
    /// the descriptor.
    ///
    /// # Errors
    /// The first call makes the descriptor, and fails if the process may have no more.
    pub fn descriptor(&self) -> std::io::Result<BorrowedFd<'_>> {
        let waiting = self.lock();
        if let Some(descriptor) = self.descriptor.get() {
            return Ok(descriptor.as_fd());
        }
        let count = u32::from(!waiting.completions.is_empty());
        let made = eventfd(count, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(self.descriptor.get_or_init(|| made).as_fd())
    }

    /// Returns the number of completions that wait to be taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Returns `true` if no completion waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of requests that succeeded since the queue was made.
    #[must_use]
    pub fn succeeded(&self) -> u64 {
        self.lock().succeeded
    }

    /// Returns the number of requests that failed since the queue was made.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.lock().failed
    }

    /// Adds a completion. Returns a waker to be woken.
    pub(super) fn push(&self, completion: Completion) -> Option<Waker> {
        let mut waiting = self.lock();
        let counter = if completion.result.is_ok() { &mut waiting.succeeded } else { &mut waiting.failed };
        *counter += 1;
        waiting.completions.push_back(completion);
        self.count.store(waiting.completions.len(), Ordering::Release);
        // The count comes first: a reader that is woken may look at it before it takes the lock.
        if waiting.completions.len() == 1
            && let Some(descriptor) = self.descriptor.get()
        {
            // The counter is zero, so the write does not block.
            let _ = write(descriptor, &1_u64.to_ne_bytes());
        }
        waiting.wakers.pop()
    }

    /// Registers a waker for the next completion, which wakes one of the registered wakers. A caller that stops waiting calls
    /// [`Queue::forget`].
    pub(super) fn set_waker(&self, waker: &Waker) {
        let mut waiting = self.lock();
        if !waiting.wakers.iter().any(|known| known.will_wake(waker)) {
            waiting.wakers.push(waker.clone());
        }
    }

    /// Removes a waker of a caller that stops waiting. If it was woken for a completion that it has not taken, another one is to be woken
    /// instead, which is returned.
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
        // A panic while the lock was held cannot have left half a completion: pushes and pops are atomic.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Future of the next completion of a queue.
///
/// `Send` and `Sync`: any executor may poll it. A future that is dropped takes no completion.
#[derive(Debug)]
#[must_use = "a future does nothing until it is awaited"]
pub struct Next<'q> {
    queue: &'q Queue,
    waker: Option<Waker>,
}

impl Future for Next<'_> {
    type Output = Completion;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
        let this = self.get_mut();
        let mut waiting = this.queue.lock();
        let Some(completion) = this.queue.take_from(&mut waiting) else {
            if let Some(old) = this.waker.replace(context.waker().clone()) {
                waiting.wakers.retain(|known| !known.will_wake(&old));
            }
            waiting.wakers.push(context.waker().clone());
            return Poll::Pending;
        };
        drop(waiting);
        this.forget();
        Poll::Ready(completion)
    }
}

impl Next<'_> {
    fn forget(&mut self) {
        if let Some(another) = self.waker.take().and_then(|waker| self.queue.forget(&waker)) {
            another.wake();
        }
    }
}

impl Drop for Next<'_> {
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    use rackloom_protocol::OperationId;

    use super::*;
    use crate::fabric::completion::Ended;

    /// Counts wakes.
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
    fn a_forgotten_waker_is_not_woken_and_its_wake_passes_to_another() {
        let queue = Queue::with_capacity(4);
        let (first, second) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
        let (first_waker, second_waker) = (Waker::from(Arc::clone(&first)), Waker::from(Arc::clone(&second)));
        let woken = || (first.0.load(Ordering::Relaxed), second.0.load(Ordering::Relaxed));
        queue.set_waker(&second_waker);
        queue.set_waker(&first_waker);
        queue.set_waker(&first_waker);
        assert!(queue.forget(&first_waker).is_none(), "no completion has arrived for it");
        queue.push(completion()).expect("one waits").wake();
        assert_eq!(woken(), (0, 1));
        // The first waker is chosen, and its owner stops waiting before it has taken the completion.
        queue.set_waker(&second_waker);
        queue.set_waker(&first_waker);
        queue.push(completion()).expect("two wait").wake();
        queue.forget(&first_waker).expect("the other one is woken instead").wake();
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
            // The node is driven by another thread, so the wait below parks again and again.
            scope.spawn(|| {
                node.wait_for(rackloom_protocol::Instant::NEVER, |_| {
                    looks.fetch_add(1, Ordering::Relaxed);
                    is_over.load(Ordering::Relaxed) == 1
                })
            });
            // It checks once, and afterwards as the driver.
            while looks.load(Ordering::Relaxed) < 2 {
                std::thread::yield_now();
            }
            let timeout = std::time::Duration::from_millis(100);
            assert!(node.poll_wait(&queue, timeout).is_none());
            let wakers = queue.lock().wakers.len();
            is_over.store(1, Ordering::Relaxed);
            assert_eq!(wakers, 0);
        });
    }
}
