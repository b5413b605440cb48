//! Events that a program has got and not yet acknowledged. An object is destroyed after its last event is acknowledged, as the manual says.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Number of events without acknowledgement.
#[derive(Default)]
pub(super) struct Acknowledgements {
    outstanding: Mutex<u64>,
    changed: Condvar,
}

impl Acknowledgements {
    fn outstanding(&self) -> MutexGuard<'_, u64> {
        self.outstanding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an event that the program gets.
    pub(super) fn deliver(&self) {
        *self.outstanding() += 1;
    }

    /// Counts acknowledgements. Surplus ones are ignored.
    pub(super) fn acknowledge(&self, count: u32) {
        let mut outstanding = self.outstanding();
        *outstanding = outstanding.saturating_sub(count.into());
        self.changed.notify_all();
    }

    /// Waits until each event is acknowledged.
    pub(super) fn wait(&self) {
        let mut outstanding = self.outstanding();
        while *outstanding > 0 {
            outstanding = self.changed.wait(outstanding).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
