//! Round trip of a cache line between two processors: no exchange between two processes is faster.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::pages::Pages;
use crate::processors::Pair;
use crate::wait::wait_until;

/// Offsets of the words of the two sides. Lines that are fetched in pairs do not disturb each other.
const PING_AT: usize = 0;
const PONG_AT: usize = 1024;

/// Returns the time of one round trip, in nanoseconds, over `trips` of them.
///
/// # Errors
/// The system's error, or a side that did not answer.
pub fn round_trip_ns(pair: Pair, trips: u64) -> io::Result<f64> {
    let pages = Pages::new(4096)?;
    let (ping, pong) = (pages.word(PING_AT), pages.word(PONG_AT));
    let initiator = || {
        // The first answer shows that the other side runs.
        ping.store(1, Ordering::Release);
        wait_until("initiator of a cache line", || pong.load(Ordering::Acquire) == 1)?;
        let begun = Instant::now();
        for trip in 2..=trips + 1 {
            ping.store(trip, Ordering::Release);
            wait_until("ping of a cache line", || pong.load(Ordering::Acquire) == trip)?;
        }
        Ok(begun.elapsed().as_nanos() as f64 / trips.max(1) as f64)
    };
    let target = || {
        for trip in 1..=trips + 1 {
            wait_until("pong of a cache line", || ping.load(Ordering::Acquire) == trip)?;
            pong.store(trip, Ordering::Release);
        }
        Ok(())
    };
    pair.run_processes(initiator, target)
}
