//! Waiting for the other side of a loop: awake for as long as it is fast, giving the processor away when it is not, and
//! never for ever.

use std::hint::spin_loop;
use std::io;
use std::time::{Duration, Instant};

use rustix::thread::sched_yield;

/// Looks without anything in between; the other side usually answers within these.
const LOOKS: u32 = 4000;
/// Then with a pause in between.
const PAUSES: u32 = 1000;
/// The end of every wait.
const PATIENCE: Duration = Duration::from_secs(10);

/// Wait until `is_so`.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`], with `who` and what it waited for.
pub(crate) fn wait_until(who: &'static str, mut is_so: impl FnMut() -> bool) -> io::Result<()> {
    for _ in 0..LOOKS {
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
        if begun.elapsed() > PATIENCE {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{who}: nothing for {PATIENCE:?}")));
        }
        sched_yield();
    }
    Ok(())
}
