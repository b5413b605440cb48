//! A biased lock: one thread, the *owner*, enters it at the cost of two plain stores and a load.
//!
//! The owner enters the lock a million times a second. All other threads (*contenders*) pass a *gate*, which is an ordinary mutex. The owner
//! stores that it is inside and then loads whether a contender is present. A contender holds the gate, stores that it contends, and then loads
//! whether the owner is inside. With a full barrier between store and load on both sides, at least one of the two sees the other. Contenders are
//! rare, so they run the barriers of both sides ([`crate::barrier`]). An owner that sees a contender steps back and waits at the gate. A contender
//! therefore waits only while the owner is inside, never while it is busy with other work.
//!
//! Where the kernel does not offer such barriers, no thread becomes the owner and the lock is an ordinary mutex.
//!
//! The lock is not re-entrant: a thread that enters it twice deadlocks, as with any mutex.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError, TryLockError};

use crate::barrier;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, spin_loop, yield_now};

/// Number of times that a contender checks the owner's flag before it yields the processor, which the owner may need.
const CHECKS_PER_YIELD: u32 = 100;

/// A lock that is biased to one thread, and the value that it protects.
#[derive(Debug)]
pub(crate) struct BiasedLock<T> {
    gate: Mutex<Gate>,
    /// Set while the owner is inside. Only the owner writes it.
    is_owner_inside: AtomicBool,
    /// Set while a contender waits for the owner or is inside. Only the holder of the gate writes it.
    has_contender: AtomicBool,
    /// Identity of this lock, to detect a token that belongs to another lock.
    identity: Arc<()>,
    value: UnsafeCell<T>,
}

#[derive(Debug)]
struct Gate {
    has_owner: bool,
}

// SAFETY: sound because the value is reached only through an `Inside`, and at most one `Inside` exists at a time (see `Inside::deref`). Sharing the
// lock gives threads the value one after another, for which `T` has to be `Send`. Needed because an `UnsafeCell` is not `Sync`.
unsafe impl<T: Send> Sync for BiasedLock<T> {}

/// The right to enter one lock as its owner.
#[derive(Debug)]
pub(crate) struct BiasToken {
    identity: Arc<()>,
}

/// A guard: the holder is inside the lock and leaves it on drop.
#[derive(Debug)]
pub(crate) struct Inside<'l, T> {
    lock: &'l BiasedLock<T>,
    /// The gate's guard. `None` for an owner that did not need the gate.
    gate: Option<MutexGuard<'l, Gate>>,
    /// The guard counts as an exclusive reference to the value, also for `Send` and `Sync`.
    value: PhantomData<&'l mut T>,
}

impl<T> BiasedLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            gate: Mutex::new(Gate { has_owner: false }),
            is_owner_inside: AtomicBool::new(false),
            has_contender: AtomicBool::new(false),
            identity: Arc::default(),
            value: UnsafeCell::new(value),
        }
    }

    /// Enters through the gate if that needs no waiting. Returns `None` if another thread holds the gate or if there is an owner, which may stay
    /// inside for long unless a contender is announced.
    pub(crate) fn try_enter(&self) -> Option<Inside<'_, T>> {
        let gate = match self.gate.try_lock() {
            Ok(gate) => gate,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        (!gate.has_owner).then(|| self.pass(gate))
    }

    /// Enters through the gate. Waits until no other thread is inside.
    pub(crate) fn enter(&self) -> Inside<'_, T> {
        self.pass(self.lock_gate())
    }

    fn lock_gate(&self) -> MutexGuard<'_, Gate> {
        // A panic inside the lock would be a bug of the protected value. Other threads continue and get their own errors.
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass<'l>(&'l self, gate: MutexGuard<'l, Gate>) -> Inside<'l, T> {
        if gate.has_owner {
            self.announce();
        }
        Inside { lock: self, gate: Some(gate), value: PhantomData }
    }

    #[cold]
    fn announce(&self) {
        self.has_contender.store(true, Ordering::SeqCst);
        // The process has registered successfully, so the call fails only for lack of memory, which passes.
        while !barrier::send_within() {
            yield_now();
        }
        let mut checks = 0_u32;
        while self.is_owner_inside.load(Ordering::Acquire) {
            checks += 1;
            if checks.is_multiple_of(CHECKS_PER_YIELD) { yield_now() } else { spin_loop() }
        }
    }

    /// Makes the calling thread the owner. Returns `None` if there is one already, or if the kernel does not offer the barriers.
    pub(crate) fn bias(&self) -> Option<BiasToken> {
        // Registered before the gate is locked, because the first registration takes the kernel milliseconds.
        if !barrier::receive_within() {
            return None;
        }
        let mut gate = self.lock_gate();
        let is_free = !std::mem::replace(&mut gate.has_owner, true);
        is_free.then(|| BiasToken { identity: Arc::clone(&self.identity) })
    }

    /// Ends the bias. Afterwards every thread enters through the gate.
    pub(crate) fn end_bias(&self, token: BiasToken) {
        self.check(&token);
        self.lock_gate().has_owner = false;
    }

    /// Enters as the owner.
    // Always inlined: a guard that a call returns is written field by field and then copied as a whole, and the copy stalls until all field writes
    // have completed.
    #[inline(always)]
    pub(crate) fn enter_as_owner<'l>(&'l self, token: &'l mut BiasToken) -> Inside<'l, T> {
        self.check(token);
        self.is_owner_inside.store(true, Ordering::Relaxed);
        barrier::keep_order();
        if self.has_contender.load(Ordering::Acquire) {
            self.wait_for_contender();
        }
        Inside { lock: self, gate: None, value: PhantomData }
    }

    /// Steps back, waits for the gate, and marks the owner as inside before it releases the gate. A contender clears `has_contender` before it
    /// releases the gate, so no contender is inside then. A later contender locks the gate after this and finds the owner inside.
    #[cold]
    #[inline(never)]
    fn wait_for_contender(&self) {
        self.is_owner_inside.store(false, Ordering::Release);
        let gate = self.lock_gate();
        self.is_owner_inside.store(true, Ordering::Relaxed);
        drop(gate);
    }

    /// Panics if the token belongs to another lock: it would admit two threads.
    fn check(&self, token: &BiasToken) {
        assert!(Arc::ptr_eq(&self.identity, &token.identity), "a token is valid for its own lock only");
    }
}

impl<T> Deref for Inside<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: sound because at most one `Inside` exists at a time. Guards that hold the gate exclude each other by it, and the guard without the
        // gate borrows the only token. One of each cannot coexist: the owner has stored `is_owner_inside` and then loaded `has_contender` as
        // unset. The contender has stored `has_contender`, run a full barrier on this thread and on the owner's, and then loaded
        // `is_owner_inside` as unset. The barrier came either before the owner's load, which then saw the contender, or after its store, which
        // the contender then saw. An owner that has waited at the gate stored `is_owner_inside` while it held the gate, and every later
        // contender locks the gate after that. Writes made inside are visible to the next holder: leaving is a release store of a flag, or the release
        // of the gate, and the next holder has acquired it. Needed because the value lies in an `UnsafeCell`.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Inside<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: sound as in `deref`; `self` is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Inside<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match &self.gate {
            None => self.lock.is_owner_inside.store(false, Ordering::Release),
            Some(gate) if gate.has_owner => self.lock.has_contender.store(false, Ordering::Release),
            Some(_) => {}
        }
    }
}
