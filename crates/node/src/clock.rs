//! Wall time as the core wants it: nanoseconds since the run began.
//!
//! The kernel's monotonic clock is one clock for the whole host, so a supervisor reads it once, hands the number to
//! every process of the run, and all of them then mean the same thing by the same [`Instant`]. The clock never goes
//! back and knows nothing of calendars.

use rackloom_protocol::Instant;
use rustix::time::{ClockId, clock_gettime};

/// The host's monotonic clock, counted from the beginning of a run.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    origin_ns: u64,
}

impl Clock {
    /// A clock that begins now.
    #[must_use]
    pub fn begin() -> Self {
        Self { origin_ns: monotonic_ns() }
    }

    /// A clock that began when the host's monotonic clock showed `origin_ns`.
    #[must_use]
    pub const fn with_origin(origin_ns: u64) -> Self {
        Self { origin_ns }
    }

    /// What the host's monotonic clock showed when the run began.
    #[must_use]
    pub const fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Now. [`Instant::ZERO`] if the run has not begun yet.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant(monotonic_ns().saturating_sub(self.origin_ns))
    }
}

fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
