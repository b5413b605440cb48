//! Time at half the price: the processor's own counter, held against the kernel's clock every millisecond.
//!
//! A turn of a node begins with a look at the clock, and three of these looks lie on the way of a store and its acknowledgement. The kernel's
//! clock reads the processor's counter as well, but waits for everything before it, and works out the time with care for all
//! programs; a node that looks again within the millisecond needs only to know how far the counter has moved.
//!
//! The counter is believed where the kernel believes it, and no farther than [`REACH_NS`] from the last reading of the clock: a
//! counter that jumps, stands still or differs from one processor to the next then costs at most that much, and a jump beyond it or backwards
//! is noticed at once. Times of one stopwatch never go back.

use rackloom_protocol::Instant;

use crate::clock::Clock;

/// How far the counter is believed. The error of what is worked out is the jitter of two readings, some tens of nanoseconds.
const REACH_NS: u64 = 1_000_000;
/// Two readings of the clock tell how fast the counter is if they lie at least so far apart.
const APART_NS_MIN: u64 = 200_000;
/// A reading of the clock during which the counter has moved farther was interrupted, and tells nothing.
const READING_NS_MAX: u64 = 1_000;
/// Fixed point of the scale.
const POINT: u32 = 32;
/// Counters slower than 10 MHz and faster than 16 GHz are none.
const SCALES: std::ops::RangeInclusive<u64> = (1 << POINT) / 16..=100 << POINT;

/// A clock for one thread at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    clock: Clock,
    /// A counter that the kernel believes in is there.
    has_counter: bool,
    /// A reading of both.
    time: Instant,
    count: u64,
    /// Nanoseconds per count; 0 as long as it is not known.
    scale: u64,
    /// How many counts from that reading are believed.
    reach: u64,
    /// What was said last.
    last: Instant,
}

impl Stopwatch {
    pub(crate) fn new(clock: Clock) -> Self {
        let has_counter = counter().is_some() && is_counter_believed();
        let (time, last) = (Instant::ZERO, Instant::ZERO);
        Self { clock, has_counter, time, count: 0, scale: 0, reach: 0, last }
    }

    /// Now.
    #[inline]
    pub(crate) fn now(&mut self) -> Instant {
        let moved = counter().unwrap_or(0).wrapping_sub(self.count);
        let now = if moved < self.reach { self.time + self.in_ns(moved) } else { self.read() };
        self.last = self.last.max(now);
        self.last
    }

    #[inline]
    const fn in_ns(&self, counts: u64) -> u64 {
        // No overflow: what is in reach is some millions of counts, and a scale is below a hundred.
        (counts * self.scale) >> POINT
    }

    /// Ask the clock, and note where the counter stood.
    #[cold]
    fn read(&mut self) -> Instant {
        let before = counter().unwrap_or(0);
        let time = self.clock.now();
        let after = counter().unwrap_or(0);
        if self.has_counter {
            self.note(time, before, after);
        }
        time
    }

    /// The clock showed `time` while the counter went from `before` to `after`.
    fn note(&mut self, time: Instant, before: u64, after: u64) {
        let (passed_ns, moved) = (time.since(self.time), after.wrapping_sub(self.count));
        if self.count != 0 && passed_ns < APART_NS_MIN {
            return;
        }
        let scale = if self.count == 0 || moved == 0 {
            0
        } else {
            u64::try_from((u128::from(passed_ns) << POINT) / u128::from(moved)).unwrap_or(0)
        };
        let is_possible = SCALES.contains(&scale);
        self.scale = if is_possible { scale } else { 0 };
        let was_interrupted =
            is_possible && self.in_ns(after.wrapping_sub(before).min(1 << 30)) > READING_NS_MAX;
        if was_interrupted {
            // Neither this reading nor the last one is a beginning any more.
            (self.count, self.scale) = (0, 0);
        } else {
            (self.time, self.count) = (time, after);
        }
        self.reach = (REACH_NS << POINT).checked_div(self.scale).unwrap_or(0);
    }
}

/// Whether the kernel takes its own time from the counter.
fn is_counter_believed() -> bool {
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    source.is_ok_and(|source| matches!(source.trim(), "tsc" | "kvm-clock"))
}

/// The processor's counter, if there is one that a program may read.
#[inline(always)]
fn counter() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: needed because the instruction has no safe name. It reads a register and touches no memory; where a system forbids
        // it, `is_counter_believed` is not asked first, but no Linux forbids it to whole processes unless they ask for that themselves.
        Some(unsafe { core::arch::x86_64::_rdtsc() })
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stopwatch that has been told of two readings.
    fn told(readings: &[(u64, u64, u64)]) -> Stopwatch {
        let mut watch = Stopwatch::new(Clock::begin());
        for (time, before, after) in readings {
            watch.note(Instant(*time), *before, *after);
        }
        watch
    }

    #[test]
    fn two_readings_tell_how_fast_the_counter_is() {
        let watch = told(&[(1_000_000, 3_000_000, 3_000_060), (2_000_000, 6_000_000, 6_000_060)]);
        assert_eq!(watch.in_ns(3_000), 1_000 - 1, "three counts to a nanosecond, rounded down");
        assert!(watch.reach.abs_diff(3_000_000) < 3_000, "{}", watch.reach);
    }

    #[test]
    fn readings_that_tell_nothing_are_no_beginning() {
        let first = (1_000_000, 3_000_000, 3_000_060);
        assert_eq!(told(&[first]).reach, 0, "one is not enough");
        assert_eq!(told(&[first, (1_100_000, 3_300_000, 3_300_060)]).reach, 0, "too close");
        assert_eq!(told(&[first, (2_000_000, 6_000_000, 6_010_000)]).reach, 0, "interrupted");
        assert_eq!(told(&[first, (2_000_000, 3_000_060, 3_000_060)]).reach, 0, "it stands still");
        assert_eq!(told(&[first, (2_000_000, 2_000_000, 2_000_060)]).reach, 0, "it has gone back");
        assert_eq!(told(&[first, (1_001_000_000, 3_100_000, 3_100_060)]).reach, 0, "no such counter");
        let mended = [first, (2_000_000, 6_000_000, 6_010_000), (3_000_000, 9_000_000, 9_000_060)];
        assert_eq!(told(&mended).reach, 0, "it begins anew");
        let again = [&mended[..], &[(4_000_000, 12_000_000, 12_000_060)]].concat();
        assert!(told(&again).reach > 0);
    }

    /// What is said lies between two readings of the kernel's clock, but for the little by which the scale is wrong.
    #[test]
    fn its_time_is_that_of_the_clock_and_never_goes_back() {
        const ERROR_NS: u64 = 20_000;
        let clock = Clock::begin();
        let mut watch = Stopwatch::new(clock);
        let (mut last, mut far_off) = (Instant::ZERO, 0);
        while last < Instant(30_000_000) {
            let before = clock.now();
            let now = watch.now();
            let after = clock.now();
            assert!(now >= last);
            last = now;
            let is_off = now + ERROR_NS < before || now > after + ERROR_NS;
            far_off += u32::from(is_off);
        }
        // A reading of the clock that is interrupted between its halves may spoil a millisecond.
        assert!(far_off < 100_000, "{far_off} times far off");
    }
}
