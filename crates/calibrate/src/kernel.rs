//! What the kernel charges: a call that does nothing, and a sleep and a wake of two processes on one processor.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::getppid;
use rustix::thread::futex;

use crate::pages::Pages;
use crate::processors::Pair;

/// The end of every sleep; a sleeper that was missed looks again.
const SLEEP_MAX: futex::Timespec = futex::Timespec { tv_sec: 1, tv_nsec: 0 };
const PATIENCE: Duration = Duration::from_secs(20);

/// Nanoseconds of a system call that only asks, over `calls` of them.
#[must_use]
pub fn system_call_ns(calls: u64) -> f64 {
    let begun = Instant::now();
    for _ in 0..calls {
        std::hint::black_box(getppid());
    }
    begun.elapsed().as_nanos() as f64 / calls.max(1) as f64
}

/// Nanoseconds for waking another process and being woken by it, both on `processor`, over `trips`.
///
/// # Errors
/// The system's, or that a sleeper was never woken.
pub fn wake_round_trip_ns(processor: usize, trips: u32) -> io::Result<f64> {
    let pages = Pages::new(4096)?;
    let (ping, pong) = (pages.half_word(0), pages.half_word(1024));
    let near = || {
        // The first answer says that the far side is there.
        wake(ping, 1)?;
        sleep(pong, 1)?;
        let begun = Instant::now();
        for trip in 2..=trips + 1 {
            wake(ping, trip)?;
            sleep(pong, trip)?;
        }
        Ok(begun.elapsed().as_nanos() as f64 / f64::from(trips.max(1)))
    };
    let far = || {
        for trip in 1..=trips + 1 {
            sleep(ping, trip)?;
            wake(pong, trip)?;
        }
        Ok(())
    };
    Pair { near: processor, far: processor }.run_processes(near, far)
}

fn wake(word: &AtomicU32, value: u32) -> io::Result<()> {
    word.store(value, Ordering::Release);
    futex::wake(word, futex::Flags::empty(), 1)?;
    Ok(())
}

/// Until the word has reached `value`.
fn sleep(word: &AtomicU32, value: u32) -> io::Result<()> {
    let begun = Instant::now();
    while word.load(Ordering::Acquire) != value {
        if begun.elapsed() > PATIENCE {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "sleeper of a futex: never woken"));
        }
        // Woken, changed before, interrupted or timed out: the word says which.
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
