//! The first thread that uses a region, which needs no atomic instructions for data that only it changes.
//!
//! The first thread that checks becomes the *first thread* and stays it, because most programs use a region from one thread. All other threads use
//! the shared data.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    /// Only the address is used.
    static HERE: u64 = const { 0 };
}

/// Value that matches no thread: thread-local variables have even addresses.
const DENIED: usize = usize::MAX;

/// Identity of the first thread.
#[derive(Debug, Default)]
pub(super) struct FirstThread {
    /// Address of a thread-local variable, unique while the thread exists; 0 before the first thread. A thread that gets the address of one
    /// that has ended becomes the first thread, and sees its writes: the memory of threads passes through the system's locks.
    holder: AtomicUsize,
}

impl FirstThread {
    /// Returns an identity that no thread has.
    pub(super) const fn denied() -> Self {
        Self { holder: AtomicUsize::new(DENIED) }
    }

    /// Returns `true` if the calling thread is the first thread. The first caller becomes it.
    #[inline(always)]
    pub(super) fn is_here(&self) -> bool {
        let here = HERE.with(|here| ptr::from_ref(here).addr());
        let holder = self.holder.load(Ordering::Relaxed);
        holder == here || (holder == 0 && self.claim(here))
    }

    #[cold]
    fn claim(&self, here: usize) -> bool {
        self.holder.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_thread_has_the_privilege() {
        let first_thread = FirstThread::default();
        assert!(std::thread::scope(|scope| scope
            .spawn(|| first_thread.is_here() && first_thread.is_here())
            .join()
            .unwrap()));
        let privileged = FirstThread::default();
        assert!(privileged.is_here());
        assert!(!std::thread::scope(|scope| scope.spawn(|| privileged.is_here()).join().unwrap()));
        assert!(privileged.is_here());
        assert!(!FirstThread::denied().is_here());
    }
}
