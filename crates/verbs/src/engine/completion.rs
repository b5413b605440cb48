//! Completion queues.
//!
//! A queue has its own lock. A completion carries the places of the send queue that it frees when the program polls it, as with devices: sends
//! without a signal keep their places until a later completion is polled.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::events::{AsyncEvent, Element, Events};
use crate::layout::constants::EVENT_CQ_ERR;
use crate::layout::work::Wc;

/// Places of a send queue that are in use.
pub(super) type Places = Arc<AtomicU32>;

/// Completion and the places that it frees.
pub(super) struct Entry {
    pub(super) completion: Wc,
    /// The completion counts for programs that wait for solicited ones: it is solicited, or an error.
    pub(super) is_solicited: bool,
    pub(super) freed: Option<(Places, u32)>,
}

/// Completions for which the program wants an event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Armed {
    No,
    Solicited,
    Any,
}

struct Inner {
    entries: VecDeque<Entry>,
    capacity: usize,
    armed: Armed,
    has_overflowed: bool,
}

/// Completion queue.
pub struct CompletionQueue {
    inner: Mutex<Inner>,
    /// Value of the owner: the pointer that events carry. 0 until it is set.
    owner: AtomicUsize,
    channel: Option<Arc<Events<usize>>>,
    events: Arc<Events<AsyncEvent>>,
    /// Number of queues of work requests that complete here.
    pub(super) users: AtomicU32,
}

/// The queue has overflowed: a completion is lost.
pub(super) struct Overflow;

impl CompletionQueue {
    /// Returns an empty queue. `channel` gets an event for completions that the program waits for, `events` the error after an overflow.
    #[must_use]
    pub fn new(
        capacity: usize,
        channel: Option<Arc<Events<usize>>>,
        events: Arc<Events<AsyncEvent>>,
    ) -> Self {
        let inner = Inner { entries: VecDeque::new(), capacity, armed: Armed::No, has_overflowed: false };
        Self {
            inner: Mutex::new(inner),
            owner: AtomicUsize::new(0),
            channel,
            events,
            users: AtomicU32::new(0),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the value that events carry.
    pub fn set_owner(&self, owner: usize) {
        self.owner.store(owner, Ordering::Relaxed);
    }

    /// Returns the channel of the queue.
    #[must_use]
    pub fn channel(&self) -> Option<&Arc<Events<usize>>> {
        self.channel.as_ref()
    }

    /// Returns true if a queue pair or a shared receive queue uses the queue.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.users.load(Ordering::Relaxed) > 0
    }

    /// Sends an event with the next completion, or with the next solicited one, that is added from now on.
    pub fn arm(&self, solicited_only: bool) {
        let mut inner = self.inner();
        if !solicited_only {
            inner.armed = Armed::Any;
        } else if inner.armed == Armed::No {
            inner.armed = Armed::Solicited;
        }
    }

    /// Changes the capacity.
    ///
    /// # Errors
    /// `EINVAL` if more completions are in the queue.
    pub fn resize(&self, capacity: usize) -> Result<(), Errno> {
        let mut inner = self.inner();
        if capacity < inner.entries.len() {
            return Err(Errno::INVAL);
        }
        inner.capacity = capacity;
        Ok(())
    }

    /// Takes completions, the oldest first, until `take` returns false for the next one or the queue is empty. Returns their number.
    ///
    /// # Errors
    /// `EIO` if the queue has overflowed and has no completions left.
    pub fn poll(&self, count: usize, mut take: impl FnMut(usize, Wc)) -> Result<usize, Errno> {
        let mut inner = self.inner();
        let count = count.min(inner.entries.len());
        if count == 0 && inner.has_overflowed && inner.entries.is_empty() {
            return Err(Errno::IO);
        }
        for (index, entry) in inner.entries.drain(..count).enumerate() {
            if let Some((places, number)) = entry.freed {
                places.fetch_sub(number, Ordering::Relaxed);
            }
            take(index, entry.completion);
        }
        Ok(count)
    }

    /// Adds a completion.
    pub(super) fn push(&self, entry: Entry) -> Result<(), Overflow> {
        let mut inner = self.inner();
        let owner = self.owner.load(Ordering::Relaxed);
        if inner.has_overflowed || inner.entries.len() >= inner.capacity {
            if !inner.has_overflowed {
                inner.has_overflowed = true;
                self.events.push(AsyncEvent { kind: EVENT_CQ_ERR, element: Element::CompletionQueue(owner) });
            }
            return Err(Overflow);
        }
        let wakes = inner.armed == Armed::Any || inner.armed == Armed::Solicited && entry.is_solicited;
        inner.entries.push_back(entry);
        if wakes {
            inner.armed = Armed::No;
            if let Some(channel) = &self.channel {
                channel.push(owner);
            }
        }
        Ok(())
    }

    /// Removes the completions of a queue pair that is reset or destroyed.
    pub(super) fn purge(&self, queue_pair: u32) {
        self.inner().entries.retain(|entry| entry.completion.qp_num != queue_pair);
    }
}
