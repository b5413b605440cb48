//! One thread's privilege: what only it touches needs no atomic instruction.
//!
//! The first thread that asks gets it and keeps it, because most programs use a thing from one thread. All others are told
//! no and take the way that threads share.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    /// Only its address matters.
    static HERE: u64 = const { 0 };
}

/// No thread has its own variable at an address that is not even.
const DENIED: usize = usize::MAX;

/// Who has the privilege.
#[derive(Debug, Default)]
pub(super) struct LoneThread {
    /// An address that is the thread's own as long as it lives; 0 is nobody yet. A thread that comes to the address of one
    /// that has ended inherits the privilege, and sees what that one did: memory of threads passes through the system's locks.
    holder: AtomicUsize,
}

impl LoneThread {
    /// Nobody, ever.
    pub(super) const fn denied() -> Self {
        Self { holder: AtomicUsize::new(DENIED) }
    }

    /// Whether this thread has it.
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
    fn the_first_thread_keeps_it() {
        let lone = LoneThread::default();
        assert!(std::thread::scope(|scope| scope.spawn(|| lone.is_here() && lone.is_here()).join().unwrap()));
        let privileged = LoneThread::default();
        assert!(privileged.is_here());
        assert!(!std::thread::scope(|scope| scope.spawn(|| privileged.is_here()).join().unwrap()));
        assert!(privileged.is_here());
        assert!(!LoneThread::denied().is_here());
    }
}
