//! A seat of a rack of other processes, held by this process.

pub(super) mod faults;
pub(super) mod job;
pub(super) mod join;
pub(super) mod notices;
pub(super) mod wake_thread;
