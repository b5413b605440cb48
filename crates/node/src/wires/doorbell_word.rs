//! The word of a doorbell: the order in which both sides write and read.
//!
//! Both sides write before they read, with a full fence between. The sender writes frames and then reads the word. The owner writes the word and then
//! reads its rings. At least one of them therefore sees the other, and no wake-up is lost. `crates/models` checks this file.
//!
//! This file makes no system calls. The caller passes them as functions.

use crate::sync::{AtomicU32, Ordering, fence};

const AWAKE: u32 = 0;
/// Value of the word while the owner sleeps or is about to.
pub(super) const ASLEEP: u32 = 1;

/// Calls `wake` if the owner sleeps or is about to. The frames have been published before.
#[inline]
pub(super) fn ring(word: &AtomicU32, wake: impl FnOnce(&AtomicU32)) {
    fence(Ordering::SeqCst);
    if word.load(Ordering::Relaxed) != AWAKE && word.swap(AWAKE, Ordering::AcqRel) != AWAKE {
        wake(word);
    }
}

/// Announces that the owner is about to sleep.
#[inline]
pub(super) fn arm(word: &AtomicU32) {
    word.store(ASLEEP, Ordering::Relaxed);
    fence(Ordering::SeqCst);
}

/// Marks the owner as awake.
#[inline]
pub(super) fn disarm(word: &AtomicU32) {
    word.store(AWAKE, Ordering::Relaxed);
}

/// Calls `sleep` unless `is_ready` finds something after the doorbell is armed. `sleep` returns at once if the word is not [`ASLEEP`] any more.
#[inline]
pub(super) fn park(word: &AtomicU32, is_ready: impl FnOnce() -> bool, sleep: impl FnOnce()) {
    arm(word);
    if !is_ready() {
        sleep();
    }
    disarm(word);
}
