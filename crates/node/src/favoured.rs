//! A lock with a favourite, who enters it a million times a second and pays two plain stores and a load for it.
//!
//! Everybody else passes a *gate*, an ordinary mutex. The favourite does not: it says that it is inside and then looks whether
//! an intruder is. Who comes through the gate says that it intrudes and then looks whether the favourite is inside. With a full
//! barrier between saying and looking on both sides, one of the two sees the other; and since intruders are rare, they pay for
//! both barriers ([`crate::barrier`]). A favourite that sees an intruder steps back and waits at the gate like anybody else. So nobody is
//! ever shut out by a favourite that is busy elsewhere: it favours one, and keeps the rest waiting only while that one is inside.
//!
//! Where the kernel has no such barrier there is no favourite, and nothing else changes.
//!
//! Who is inside must not enter again: that waits for itself, as with any mutex.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::yield_now;

use crate::barrier;

/// Looks at the favourite before an intruder lets others have the processor: the favourite may need this very one.
const LOOKS_UNTIL_YIELD: u32 = 100;

/// The lock and what it protects.
#[derive(Debug)]
pub(crate) struct Favoured<T> {
    gate: Mutex<Gate>,
    /// Written by the favourite alone.
    is_favourite_inside: AtomicBool,
    /// Written by whoever holds the gate while there is a favourite.
    is_intruded: AtomicBool,
    /// Tells a favour of this lock from those of others.
    identity: Arc<()>,
    value: UnsafeCell<T>,
}

#[derive(Debug)]
struct Gate {
    has_favourite: bool,
}

// SAFETY: needed because an `UnsafeCell` is not `Sync`. The value is reached through an `Inside` only, of which there is one at a
// time (see `Inside::deref`): sharing the lock gives threads the value by turns, for which it has to be `Send`.
unsafe impl<T: Send> Sync for Favoured<T> {}

/// The right to be the favourite of one lock.
#[derive(Debug)]
pub(crate) struct Favour {
    identity: Arc<()>,
}

/// Somebody is inside; dropping it is leaving.
#[derive(Debug)]
pub(crate) struct Inside<'l, T> {
    lock: &'l Favoured<T>,
    /// `None` for a favourite that did not need the gate.
    gate: Option<MutexGuard<'l, Gate>>,
    /// It is shared like a reference to the value.
    value: PhantomData<&'l mut T>,
}

impl<T> Favoured<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            gate: Mutex::new(Gate { has_favourite: false }),
            is_favourite_inside: AtomicBool::new(false),
            is_intruded: AtomicBool::new(false),
            identity: Arc::default(),
            value: UnsafeCell::new(value),
        }
    }

    /// Enter through the gate if there is nobody to wait for: nobody holds it, and there is no favourite, who may be inside for long
    /// unless it is told that somebody waits.
    pub(crate) fn try_enter(&self) -> Option<Inside<'_, T>> {
        let gate = match self.gate.try_lock() {
            Ok(gate) => gate,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        (!gate.has_favourite).then(|| self.pass(gate))
    }

    /// Enter through the gate.
    pub(crate) fn enter(&self) -> Inside<'_, T> {
        self.pass(self.lock_gate())
    }

    fn lock_gate(&self) -> MutexGuard<'_, Gate> {
        // A panic inside would be a bug of what is protected; the other threads still get their errors.
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
        self.is_intruded.store(true, Ordering::SeqCst);
        // What was granted once can fail for want of memory at most, and then not for ever.
        while !barrier::send_within() {
            yield_now();
        }
        let mut looks = 0_u32;
        while self.is_favourite_inside.load(Ordering::Acquire) {
            looks += 1;
            if looks.is_multiple_of(LOOKS_UNTIL_YIELD) { yield_now() } else { spin_loop() }
        }
    }

    /// Become the favourite. `None` if somebody is, or if the kernel does not have what it takes.
    pub(crate) fn appoint(&self) -> Option<Favour> {
        // Not under the gate: the first time this takes the kernel milliseconds.
        if !barrier::receive_within() {
            return None;
        }
        let mut gate = self.lock_gate();
        let is_free = !std::mem::replace(&mut gate.has_favourite, true);
        is_free.then(|| Favour { identity: Arc::clone(&self.identity) })
    }

    /// Be the favourite no more.
    pub(crate) fn dismiss(&self, favour: Favour) {
        self.check(&favour);
        self.lock_gate().has_favourite = false;
    }

    /// Enter as the favourite.
    // Inlined, and with nothing in hand but the lock: a guard that comes back from a call is written field by field and copied as a whole
    // before every field has arrived where it was written.
    #[inline(always)]
    pub(crate) fn enter_favoured<'l>(&'l self, favour: &'l mut Favour) -> Inside<'l, T> {
        self.check(favour);
        self.is_favourite_inside.store(true, Ordering::Relaxed);
        barrier::keep_order();
        if self.is_intruded.load(Ordering::Acquire) {
            self.let_intruder_pass();
        }
        Inside { lock: self, gate: None, value: PhantomData }
    }

    /// Step back, wait at the gate, and be inside before it opens: an intruder takes its word back before it gives the gate back, so
    /// nobody is inside; the next one comes through the gate after this, and finds the favourite inside.
    #[cold]
    #[inline(never)]
    fn let_intruder_pass(&self) {
        self.is_favourite_inside.store(false, Ordering::Release);
        let gate = self.lock_gate();
        self.is_favourite_inside.store(true, Ordering::Relaxed);
        drop(gate);
    }

    /// A favour of another lock would let two in.
    fn check(&self, favour: &Favour) {
        assert!(Arc::ptr_eq(&self.identity, &favour.identity), "a favour is good for its own lock");
    }
}

impl<T> Deref for Inside<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: needed because the value lies in an `UnsafeCell`. There is one `Inside` at a time: those with the gate exclude each
        // other by it, and the one without it borrows the only favour. One with the gate and one without: the favourite has stored that
        // it is inside and then loaded that nobody intrudes; the other has stored that it intrudes, had a full barrier run on
        // this thread and the favourite's, and then loaded that the favourite is not inside. The barrier fell before the
        // favourite's load, which then saw the intruder, or after its store, which the intruder then saw. A favourite that has waited at the
        // gate stored its word while it held it, and whoever intrudes later has had the gate after it. What one did inside
        // the next one sees: leaving is a release store of the word, or of the gate, that the next one has acquired.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Inside<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`; `self` is borrowed as a whole.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Inside<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match &self.gate {
            None => self.lock.is_favourite_inside.store(false, Ordering::Release),
            Some(gate) if gate.has_favourite => self.lock.is_intruded.store(false, Ordering::Release),
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const VISITS: u64 = 20_000;

    /// Two words that are equal whenever nobody is inside.
    type Words = [u64; 2];

    fn visit(words: &mut Words) {
        assert_eq!(words[0], words[1], "two were inside");
        words[0] += 1;
        std::hint::black_box(&mut *words);
        words[1] += 1;
    }

    /// Count a test as skipped, where the test runner does not swallow it.
    fn no_barriers() {
        let line = b"SKIPPED (1): this kernel sends no barriers to the threads of a process\n";
        std::io::Write::write_all(&mut std::io::stderr(), line).unwrap();
    }

    #[test]
    fn a_favourite_and_intruders_are_never_inside_together() {
        let lock = Favoured::new([0; 2]);
        let Some(mut favour) = lock.appoint() else {
            no_barriers();
            return;
        };
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..VISITS {
                        visit(&mut lock.enter());
                        if let Some(mut inside) = lock.try_enter() {
                            visit(&mut inside);
                            visit(&mut inside);
                        } else {
                            visit(&mut lock.enter());
                            visit(&mut lock.enter());
                        }
                    }
                });
            }
            for _ in 0..25 * VISITS {
                visit(&mut lock.enter_favoured(&mut favour));
                visit(&mut lock.enter_favoured(&mut favour));
            }
        });
        lock.dismiss(favour);
        assert_eq!(*lock.enter(), [56 * VISITS; 2]);
    }

    #[test]
    fn there_is_one_favourite_at_a_time_and_its_favour_opens_no_other_lock() {
        let (first, second) = (Favoured::new(1), Favoured::new(2));
        let Some(mut favour) = first.appoint() else {
            no_barriers();
            return;
        };
        assert!(first.appoint().is_none() && second.appoint().is_some());
        *first.enter_favoured(&mut favour) += 10;
        assert_eq!(*first.enter(), 11);
        let wrong = thread::scope(|scope| scope.spawn(|| *second.enter_favoured(&mut favour)).join());
        assert!(wrong.is_err());
        first.dismiss(favour);
        assert!(first.appoint().is_some());
    }

    #[test]
    fn who_does_not_want_to_wait_is_told_that_there_is_a_favourite() {
        let lock = Favoured::new(0);
        let Some(favour) = lock.appoint() else {
            no_barriers();
            return;
        };
        assert!(lock.try_enter().is_none());
        lock.dismiss(favour);
        assert!(lock.try_enter().is_some());
    }

    #[test]
    fn a_favourite_that_is_busy_elsewhere_keeps_nobody_waiting() {
        let lock = Favoured::new(0);
        let _favour = lock.appoint();
        thread::scope(|scope| scope.spawn(|| *lock.enter() += 1).join().unwrap());
        assert_eq!(*lock.enter(), 1);
    }
}
