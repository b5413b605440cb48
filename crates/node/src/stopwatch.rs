//! A clock at half the cost: the processor's time-stamp counter, calibrated against the kernel's clock every millisecond.
//!
//! A poll of a node begins with a reading of the clock. Three readings lie on the path of a store and its acknowledgement. The kernel's clock reads
//! the same counter, but waits for all earlier instructions and scales the value for all programs. A node that reads the clock again within a
//! millisecond only needs the difference of two counter values.
//!
//! The counter is used only where the kernel uses it, and only within [`REACH_NS`] of the last reading of the kernel's clock. The error of a counter
//! that jumps, stands still or differs between processors is therefore at most that large, and a jump beyond it or backwards is detected at once. The
//! times of one stopwatch never go back.

use rackloom_protocol::Instant;

use crate::clock::Clock;

/// Time after a reading of the clock during which the counter is used, in nanoseconds. The error is the jitter of two readings, some tens of
/// nanoseconds.
const REACH_NS: u64 = 1_000_000;
/// Minimum distance of two readings of the clock that calibrate the counter, in nanoseconds.
const APART_NS_MIN: u64 = 200_000;
/// Maximum duration of a reading of the clock, in nanoseconds. A longer reading was interrupted and is not used for calibration.
const READING_NS_MAX: u64 = 1_000;
/// Number of fraction bits of the scale.
const POINT: u32 = 32;
/// Plausible scales, in nanoseconds per count. The bounds correspond to counters of 10 MHz and 16 GHz.
const SCALES: std::ops::RangeInclusive<u64> = (1 << POINT) / 16..=100 << POINT;

/// A monotonic clock for one thread at a time, based on the processor's counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    clock: Clock,
    /// The processor has a counter that the kernel uses as its clock source.
    has_counter: bool,
    /// Clock time of the reading that the counter is extrapolated from. `count` is the counter at that time.
    time: Instant,
    count: u64,
    /// Nanoseconds per count, as a fixed-point number; 0 while unknown.
    scale: u64,
    /// Number of counts after that reading for which the counter is used.
    reach: u64,
    /// The last time that was returned.
    last: Instant,
}

impl Stopwatch {
    pub(crate) fn new(clock: Clock) -> Self {
        let has_counter = counter().is_some() && is_counter_clock_source();
        let (time, last) = (Instant::ZERO, Instant::ZERO);
        Self { clock, has_counter, time, count: 0, scale: 0, reach: 0, last }
    }

    /// Returns the current time.
    #[inline]
    pub(crate) fn now(&mut self) -> Instant {
        let moved = counter().unwrap_or(0).wrapping_sub(self.count);
        let now = if moved < self.reach { self.time + self.in_ns(moved) } else { self.read() };
        self.last = self.last.max(now);
        self.last
    }

    #[inline]
    const fn in_ns(&self, counts: u64) -> u64 {
        // Cannot overflow: the counts within reach are some millions, and a scale is below 100 nanoseconds per count.
        (counts * self.scale) >> POINT
    }

    /// Reads the kernel's clock, and the counter before and after it.
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

    /// Records that the clock read `time` while the counter went from `before` to `after`.
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
            // Neither this reading nor the previous one can be used for calibration.
            (self.count, self.scale) = (0, 0);
        } else {
            (self.time, self.count) = (time, after);
        }
        self.reach = (REACH_NS << POINT).checked_div(self.scale).unwrap_or(0);
    }
}

/// Returns whether the kernel's clock source is the processor's counter.
fn is_counter_clock_source() -> bool {
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    source.is_ok_and(|source| matches!(source.trim(), "tsc" | "kvm-clock"))
}

/// Returns the processor's counter, if a program can read one.
#[inline(always)]
fn counter() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: sound because the instruction reads a register and touches no memory. It would fault only in a process that has disabled it for
        // itself. Needed because the instruction has no safe function.
        Some(unsafe { core::arch::x86_64::_rdtsc() })
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a stopwatch with the given readings.
    fn stopwatch_with(readings: &[(u64, u64, u64)]) -> Stopwatch {
        let mut watch = Stopwatch::new(Clock::begin());
        for (time, before, after) in readings {
            watch.note(Instant(*time), *before, *after);
        }
        watch
    }

    #[test]
    fn two_readings_calibrate_the_counter() {
        let watch = stopwatch_with(&[(1_000_000, 3_000_000, 3_000_060), (2_000_000, 6_000_000, 6_000_060)]);
        assert_eq!(watch.in_ns(3_000), 1_000 - 1, "three counts to a nanosecond, rounded down");
        assert!(watch.reach.abs_diff(3_000_000) < 3_000, "{}", watch.reach);
    }

    #[test]
    fn unusable_readings_do_not_calibrate() {
        let first = (1_000_000, 3_000_000, 3_000_060);
        assert_eq!(stopwatch_with(&[first]).reach, 0, "one reading is not enough");
        assert_eq!(stopwatch_with(&[first, (1_100_000, 3_300_000, 3_300_060)]).reach, 0, "too close");
        assert_eq!(stopwatch_with(&[first, (2_000_000, 6_000_000, 6_010_000)]).reach, 0, "interrupted");
        assert_eq!(
            stopwatch_with(&[first, (2_000_000, 3_000_060, 3_000_060)]).reach,
            0,
            "the counter stands still"
        );
        assert_eq!(
            stopwatch_with(&[first, (2_000_000, 2_000_000, 2_000_060)]).reach,
            0,
            "the counter has gone back"
        );
        assert_eq!(
            stopwatch_with(&[first, (1_001_000_000, 3_100_000, 3_100_060)]).reach,
            0,
            "implausible frequency"
        );
        let recovered = [first, (2_000_000, 6_000_000, 6_010_000), (3_000_000, 9_000_000, 9_000_060)];
        assert_eq!(stopwatch_with(&recovered).reach, 0, "calibration restarts");
        let again = [&recovered[..], &[(4_000_000, 12_000_000, 12_000_060)]].concat();
        assert!(stopwatch_with(&again).reach > 0);
    }

    /// The returned time lies between two readings of the kernel's clock, apart from the small error of the scale.
    #[test]
    fn times_follow_the_clock_and_never_go_back() {
        const ERROR_NS: u64 = 20_000;
        let clock = Clock::begin();
        let mut watch = Stopwatch::new(clock);
        let (mut last, mut wrong_count) = (Instant::ZERO, 0);
        while last < Instant(30_000_000) {
            let before = clock.now();
            let now = watch.now();
            let after = clock.now();
            assert!(now >= last);
            last = now;
            let is_off = now + ERROR_NS < before || now > after + ERROR_NS;
            wrong_count += u32::from(is_off);
        }
        // A reading of the clock that is interrupted between its halves may make the times of one millisecond wrong.
        assert!(wrong_count < 100_000, "{wrong_count} wrong times");
    }
}
