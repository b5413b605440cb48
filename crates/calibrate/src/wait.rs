//! Bounded waits for the other side of a loop: they spin first, and yield the processor later.

use std::hint::spin_loop;
use std::io;
use std::time::{Duration, Instant};

use rustix::thread::sched_yield;

/// Polls without a pause. The other side usually answers within these.
const SPINS: u32 = 4000;
/// Polls with a pause, before the processor is yielded.
const PAUSES: u32 = 1000;
/// Limit of every wait.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Waits until `is_so` returns true.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`], with `who` and the limit.
pub(crate) fn wait_until(who: &'static str, mut is_so: impl FnMut() -> bool) -> io::Result<()> {
    for _ in 0..SPINS {
        if is_so() {
            return Ok(());
        }
    }
    for _ in 0..PAUSES {
        if is_so() {
            return Ok(());
        }
        spin_loop();
    }
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() > WAIT_MAX {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{who}: nothing for {WAIT_MAX:?}")));
        }
        sched_yield();
    }
    Ok(())
}
