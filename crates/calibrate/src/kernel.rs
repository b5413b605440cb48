//! Cost of the kernel: an empty system call, and a sleep and a wake of two processes on one processor.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::getppid;
use rustix::thread::futex;

use crate::pages::Pages;
use crate::processors::Pair;

/// Limit of one sleep. A sleeper whose wake was missed looks again.
const SLEEP_MAX: futex::Timespec = futex::Timespec { tv_sec: 1, tv_nsec: 0 };
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Returns the time of an empty system call, in nanoseconds, over `calls` of them.
#[must_use]
pub fn system_call_ns(calls: u64) -> f64 {
    let begun = Instant::now();
    for _ in 0..calls {
        std::hint::black_box(getppid());
    }
    begun.elapsed().as_nanos() as f64 / calls.max(1) as f64
}

/// Returns the time in which two processes wake each other once, both on `processor`, in nanoseconds, over `trips`.
///
/// # Errors
/// The system's error, or a sleeper that was never woken.
pub fn wake_round_trip_ns(processor: usize, trips: u32) -> io::Result<f64> {
    let pages = Pages::new(4096)?;
    let (ping, pong) = (pages.half_word(0), pages.half_word(1024));
    let initiator = || {
        // The first answer shows that the other side runs.
        wake(ping, 1)?;
        sleep(pong, 1)?;
        let begun = Instant::now();
        for trip in 2..=trips + 1 {
            wake(ping, trip)?;
            sleep(pong, trip)?;
        }
        Ok(begun.elapsed().as_nanos() as f64 / f64::from(trips.max(1)))
    };
    let target = || {
        for trip in 1..=trips + 1 {
            sleep(ping, trip)?;
            wake(pong, trip)?;
        }
        Ok(())
    };
    Pair { initiator: processor, target: processor }.run_processes(initiator, target)
}

fn wake(word: &AtomicU32, value: u32) -> io::Result<()> {
    word.store(value, Ordering::Release);
    futex::wake(word, futex::Flags::empty(), 1)?;
    Ok(())
}

/// Sleeps until the word has reached `value`.
fn sleep(word: &AtomicU32, value: u32) -> io::Result<()> {
    let begun = Instant::now();
    while word.load(Ordering::Acquire) != value {
        if begun.elapsed() > WAIT_MAX {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "sleeper of a futex: never woken"));
        }
        // Woken, changed before, interrupted or timed out: the value shows which.
        let _ = futex::wait(word, futex::Flags::empty(), value - 1, Some(&SLEEP_MAX));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_wakes_take_time() {
        assert!(system_call_ns(1000) > 0.0);
        let processor = crate::processors::allowed().unwrap()[0];
        assert!(wake_round_trip_ns(processor, 100).unwrap() > 0.0);
    }
}
