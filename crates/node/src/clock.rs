//! The wall clock: nanoseconds since the start of the run.
//!
//! All processes of a host share the kernel's monotonic clock. A supervisor reads it once and passes the value to every process of the run, so an
//! [`Instant`] means the same time in all of them. The clock never goes back and has no relation to calendar time.

use rackloom_protocol::Instant;
use rustix::fs::Timespec;
use rustix::time::{ClockId, clock_gettime};

/// The host's monotonic clock, counted from the start of a run.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    origin_ns: u64,
}

impl Clock {
    /// Creates a clock that starts now.
    #[must_use]
    pub fn begin() -> Self {
        Self { origin_ns: monotonic_ns() }
    }

    /// Creates a clock that started when the host's monotonic clock read `origin_ns` nanoseconds.
    #[must_use]
    pub const fn with_origin(origin_ns: u64) -> Self {
        Self { origin_ns }
    }

    /// Returns the reading of the host's monotonic clock at the start of the run, in nanoseconds.
    #[must_use]
    pub const fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Returns the current time, or [`Instant::ZERO`] if the run has not started yet.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant(monotonic_ns().saturating_sub(self.origin_ns))
    }
}

fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Converts nanoseconds to the kernel's duration type.
pub(crate) fn timespec(nanoseconds: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(nanoseconds / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (nanoseconds % 1_000_000_000) as _,
    }
}

/// Returns the processor time of this process so far, in nanoseconds.
#[must_use]
pub fn process_time_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
