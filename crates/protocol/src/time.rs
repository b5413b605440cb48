//! Time of the core: nanoseconds since the run began, always passed in.

use core::ops::Add;

/// A moment, in nanoseconds since the run began. Durations are plain `u64` nanoseconds whose names end in `_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Instant {
    /// The beginning of the run.
    pub const ZERO: Self = Self(0);
    /// Later than everything; used for "no timer is running".
    pub const NEVER: Self = Self(u64::MAX);

    /// Nanoseconds from `earlier` to `self`; zero when `earlier` is in fact later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Instant {
    type Output = Self;

    fn add(self, nanoseconds: u64) -> Self {
        Self(self.0.saturating_add(nanoseconds))
    }
}
