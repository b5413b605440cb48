//! Queues of events that a program waits for with a file descriptor: completion channels and asynchronous events.
//!
//! The descriptor is an eventfd that counts queued events, so `poll` and non-blocking reads of the program behave as with the kernel's descriptor.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use rustix::io::Errno;

/// Object of an asynchronous event. Values are those that the maker of the object gave: pointers of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Completion queue.
    CompletionQueue(usize),
    /// Queue pair.
    QueuePair(usize),
    /// Shared receive queue.
    Shared(usize),
    /// Port, or the device.
    Port(u8),
}

/// Asynchronous event of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncEvent {
    /// Value of `enum ibv_event_type`.
    pub kind: u32,
    /// Object that the event concerns.
    pub element: Element,
}

/// Queue of events with a file descriptor.
pub struct Events<T> {
    descriptor: OwnedFd,
    queue: Mutex<VecDeque<T>>,
}

impl<T> Events<T> {
    /// Returns an empty queue.
    ///
    /// # Errors
    /// The system has no free file descriptor.
    pub fn new() -> Result<Self, Errno> {
        let descriptor = eventfd(0, EventfdFlags::SEMAPHORE | EventfdFlags::CLOEXEC)?;
        Ok(Self { descriptor, queue: Mutex::default() })
    }

    /// Returns the descriptor, which is readable while an event is queued.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event.
    pub fn push(&self, event: T) {
        self.queue().push_back(event);
        // It fails only at 2^64 - 1 events.
        let _ = rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes());
    }

    /// Takes the oldest event. Waits for one if the descriptor is blocking. `taken` sees the event before any other call sees the queue without it.
    ///
    /// # Errors
    /// `EAGAIN` if there is no event and the descriptor is not blocking, `EINTR` after a signal.
    pub fn next(&self, taken: impl Fn(&T)) -> Result<T, Errno> {
        loop {
            rustix::io::read(&self.descriptor, &mut [0; 8])?;
            let mut queue = self.queue();
            // The queue is empty if the event of this count has been removed.
            if let Some(event) = queue.pop_front() {
                taken(&event);
                return Ok(event);
            }
        }
    }

    /// Removes events of an object that is about to be destroyed.
    pub fn remove(&self, is_of_object: impl Fn(&T) -> bool) {
        drop(self.extract(is_of_object));
    }

    /// Removes events of an object that is about to get them elsewhere, and returns them.
    pub fn extract(&self, is_of_object: impl Fn(&T) -> bool) -> Vec<T> {
        let mut queue = self.queue();
        let (removed, kept): (Vec<T>, Vec<T>) =
            std::mem::take(&mut *queue).into_iter().partition(|event| is_of_object(event));
        *queue = kept.into();
        for _ in &removed {
            let mut descriptor = [PollFd::new(&self.descriptor, PollFlags::IN)];
            // Another thread may have read the count and find no event.
            if rustix::event::poll(&mut descriptor, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(1) {
                let _ = rustix::io::read(&self.descriptor, &mut [0; 8]);
            }
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptor_counts_events_and_removed_ones_do_not_wake() {
        let events = Events::new().expect("a descriptor");
        rustix::fs::fcntl_setfl(events.descriptor(), rustix::fs::OFlags::NONBLOCK).expect("a flag");
        assert_eq!(events.next(|_| ()), Err(Errno::AGAIN));
        (1..=3).for_each(|event| events.push(event));
        events.remove(|event| *event == 2);
        assert_eq!(events.next(|_| ()), Ok(1));
        assert_eq!(events.next(|_| ()), Ok(3));
        assert_eq!(events.next(|_| ()), Err(Errno::AGAIN));
    }
}
