//! A biased lock: one thread, the *favourite*, enters it at the cost of two plain stores and a load.
//!
//! The favourite enters the lock a million times a second. All other threads (*intruders*) pass a *gate*, which is an ordinary mutex. The favourite
//! stores that it is inside and then loads whether an intruder is present. An intruder holds the gate, stores that it intrudes, and then loads
//! whether the favourite is inside. With a full barrier between store and load on both sides, at least one of the two sees the other. Intruders are
//! rare, so they run the barriers of both sides ([`crate::barrier`]). A favourite that sees an intruder steps back and waits at the gate. An intruder
//! therefore waits only while the favourite is inside, never while it is busy with other work.
//!
//! Where the kernel does not offer such barriers, no thread becomes the favourite and the lock is an ordinary mutex.
//!
//! The lock is not re-entrant: a thread that enters it twice deadlocks, as with any mutex.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError, TryLockError};

use crate::barrier;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, spin_loop, yield_now};

/// Number of times that an intruder checks the favourite's flag before it yields the processor, which the favourite may need.
const CHECKS_PER_YIELD: u32 = 100;

/// A lock that favours one thread, and the value that it protects.
#[derive(Debug)]
pub(crate) struct Favoured<T> {
    gate: Mutex<Gate>,
    /// Set while the favourite is inside. Only the favourite writes it.
    is_favourite_inside: AtomicBool,
    /// Set while an intruder waits for the favourite or is inside. Only the holder of the gate writes it.
    has_intruder: AtomicBool,
    /// Identity of this lock, to detect a favour that belongs to another lock.
    identity: Arc<()>,
    value: UnsafeCell<T>,
}

#[derive(Debug)]
struct Gate {
    has_favourite: bool,
}

// SAFETY: sound because the value is reached only through an `Inside`, and at most one `Inside` exists at a time (see `Inside::deref`). Sharing the
// lock gives threads the value one after another, for which `T` has to be `Send`. Needed because an `UnsafeCell` is not `Sync`.
unsafe impl<T: Send> Sync for Favoured<T> {}

/// The right to enter one lock as its favourite.
#[derive(Debug)]
pub(crate) struct Favour {
    identity: Arc<()>,
}

/// A guard: the holder is inside the lock and leaves it on drop.
#[derive(Debug)]
pub(crate) struct Inside<'l, T> {
    lock: &'l Favoured<T>,
    /// The gate's guard. `None` for a favourite that did not need the gate.
    gate: Option<MutexGuard<'l, Gate>>,
    /// The guard counts as an exclusive reference to the value, also for `Send` and `Sync`.
    value: PhantomData<&'l mut T>,
}

impl<T> Favoured<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            gate: Mutex::new(Gate { has_favourite: false }),
            is_favourite_inside: AtomicBool::new(false),
            has_intruder: AtomicBool::new(false),
            identity: Arc::default(),
            value: UnsafeCell::new(value),
        }
    }

    /// Enters through the gate if that needs no waiting. Returns `None` if another thread holds the gate or if there is a favourite, which may stay
    /// inside for long unless an intruder is announced.
    pub(crate) fn try_enter(&self) -> Option<Inside<'_, T>> {
        let gate = match self.gate.try_lock() {
            Ok(gate) => gate,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        (!gate.has_favourite).then(|| self.pass(gate))
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
        if gate.has_favourite {
            self.intrude();
        }
        Inside { lock: self, gate: Some(gate), value: PhantomData }
    }

    #[cold]
    fn intrude(&self) {
        self.has_intruder.store(true, Ordering::SeqCst);
        // The process has registered successfully, so the call fails only for lack of memory, which passes.
        while !barrier::send_within() {
            yield_now();
        }
        let mut checks = 0_u32;
        while self.is_favourite_inside.load(Ordering::Acquire) {
            checks += 1;
            if checks.is_multiple_of(CHECKS_PER_YIELD) { yield_now() } else { spin_loop() }
        }
    }

    /// Makes the calling thread the favourite. Returns `None` if there is one already, or if the kernel does not offer the barriers.
    pub(crate) fn appoint(&self) -> Option<Favour> {
        // Registered before the gate is locked, because the first registration takes the kernel milliseconds.
        if !barrier::receive_within() {
            return None;
        }
        let mut gate = self.lock_gate();
        let is_free = !std::mem::replace(&mut gate.has_favourite, true);
        is_free.then(|| Favour { identity: Arc::clone(&self.identity) })
    }

    /// Ends the favour. Afterwards every thread enters through the gate.
    pub(crate) fn dismiss(&self, favour: Favour) {
        self.check(&favour);
        self.lock_gate().has_favourite = false;
    }

    /// Enters as the favourite.
    // Always inlined: a guard that a call returns is written field by field and then copied as a whole, and the copy stalls until all field writes
    // have completed.
    #[inline(always)]
    pub(crate) fn enter_favoured<'l>(&'l self, favour: &'l mut Favour) -> Inside<'l, T> {
        self.check(favour);
        self.is_favourite_inside.store(true, Ordering::Relaxed);
        barrier::keep_order();
        if self.has_intruder.load(Ordering::Acquire) {
            self.wait_for_intruder();
        }
        Inside { lock: self, gate: None, value: PhantomData }
    }

    /// Steps back, waits for the gate, and marks the favourite as inside before it releases the gate. An intruder clears `has_intruder` before it
    /// releases the gate, so no intruder is inside then. A later intruder locks the gate after this and finds the favourite inside.
    #[cold]
    #[inline(never)]
    fn wait_for_intruder(&self) {
        self.is_favourite_inside.store(false, Ordering::Release);
        let gate = self.lock_gate();
        self.is_favourite_inside.store(true, Ordering::Relaxed);
        drop(gate);
    }

    /// Panics if the favour belongs to another lock: it would admit two threads.
    fn check(&self, favour: &Favour) {
        assert!(Arc::ptr_eq(&self.identity, &favour.identity), "a favour is valid for its own lock only");
    }
}

impl<T> Deref for Inside<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: sound because at most one `Inside` exists at a time. Guards that hold the gate exclude each other by it, and the guard without the
        // gate borrows the only favour. One of each cannot coexist: the favourite has stored `is_favourite_inside` and then loaded `has_intruder` as
        // unset. The intruder has stored `has_intruder`, run a full barrier on this thread and on the favourite's, and then loaded
        // `is_favourite_inside` as unset. The barrier came either before the favourite's load, which then saw the intruder, or after its store, which
        // the intruder then saw. A favourite that has waited at the gate stored `is_favourite_inside` while it held the gate, and every later
        // intruder locks the gate after that. Writes made inside are visible to the next holder: leaving is a release store of a flag, or the release
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
            None => self.lock.is_favourite_inside.store(false, Ordering::Release),
            Some(gate) if gate.has_favourite => self.lock.has_intruder.store(false, Ordering::Release),
            Some(_) => {}
        }
    }
}
