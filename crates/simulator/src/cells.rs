//! Values with several owners within one rack, which may move to another thread together with the rack.
//!
//! One thread uses a rack at a time, and a lock orders the threads. So an access needs no order of its own, and costs as
//! much as that of a plain variable.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rackloom_protocol::Instant;

/// A `bool` with several owners.
#[derive(Debug, Default)]
pub(crate) struct Flag(AtomicBool);

/// A number with several owners.
#[derive(Debug, Default)]
pub(crate) struct Number(AtomicU64);

/// A time with several owners.
#[derive(Debug, Default)]
pub(crate) struct Moment(Number);

impl Flag {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, value: bool) {
        self.0.store(value, Ordering::Relaxed);
    }
}

impl Number {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

impl Moment {
    pub(crate) fn get(&self) -> Instant {
        Instant(self.0.get())
    }

    pub(crate) fn set(&self, value: Instant) {
        self.0.set(value.0);
    }
}
