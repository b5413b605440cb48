//! A cache line between two processors, there and back: nothing between two processes is faster.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::pages::Pages;
use crate::patience::wait_until;
use crate::processors::Pair;

/// Words of the two sides; lines fetched in pairs do not disturb each other.
const PING_AT: usize = 0;
const PONG_AT: usize = 1024;

/// Nanoseconds for one round trip, over this many.
///
/// # Errors
/// The system's, or that a side was not answered.
pub fn round_trip_ns(pair: Pair, trips: u64) -> io::Result<f64> {
    let pages = Pages::new(4096)?;
    let (ping, pong) = (pages.word(PING_AT), pages.word(PONG_AT));
    let near = || {
        // The first answer says that the far side is there.
        ping.store(1, Ordering::Release);
        wait_until("near side of a cache line", || pong.load(Ordering::Acquire) == 1)?;
        let begun = Instant::now();
        for trip in 2..=trips + 1 {
            ping.store(trip, Ordering::Release);
            wait_until("ping of a cache line", || pong.load(Ordering::Acquire) == trip)?;
        }
        Ok(begun.elapsed().as_nanos() as f64 / trips.max(1) as f64)
    };
    let far = || {
        for trip in 1..=trips + 1 {
            wait_until("pong of a cache line", || ping.load(Ordering::Acquire) == trip)?;
            pong.store(trip, Ordering::Release);
        }
        Ok(())
    };
    pair.run_processes(near, far)
}
