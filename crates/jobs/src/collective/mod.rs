//! Collective job: every rank runs a schedule on its own memory and checks the result bit by bit.
//!
//! A rank fills its input, helps to measure the fabric if the algorithm is to be chosen, and then goes through the
//! sizes. Before each run it overwrites its output with wrong bytes and meets the others. Then it runs the schedule and
//! compares the result with the expected one. The time of a run begins when the rank leaves the barrier. It ends when
//! its program is complete and all it sent is visible. Overwriting, checking and barriers are not measured. When a rank
//! is lost, the others end with an error that names it.
//!
//! Modules: `start` (construction) · `performance` (the play) · `settings` · `inputs` (input data) · `memory_plan` (memory) · `probe` (alpha, beta and gamma) · `trials`, `trying`
//! (trial runs of algorithms) · `exchange` (agreement on times) · `adapting` (re-choice of the algorithm) · `run` (one run) · `work` (own memory) · `expected`, `check` (check of the result) · `prepared` (what ranks share) ·
//! [`snapshot`] (saving and resuming) · `shrink` (repeating with the remaining ranks).

mod check;
mod common;
mod exchange;
mod expected;
mod inputs;
mod memory_plan;
mod performance;
mod prepared;
mod probe;
mod run;
mod settings;
mod shrink;
pub mod snapshot;
mod start;
mod symbols;
mod trials;
mod work;

pub use self::common::Common;
pub use self::inputs::{Arrays, HeldArrays, Inputs};
pub use self::memory_plan::{CollectiveError, MemoryNeed, memory_needed};
pub use self::settings::CollectiveSettings;
pub use self::start::{collective, collective_from};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a value that is whole after a panic of another thread, too.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
