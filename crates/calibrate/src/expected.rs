//! Expected values of raw loops, so that a disturbed loop does not count as a measure.
//!
//! Source: medians of such loops between two processes of a quiet guest with two virtual processors (KVM, Linux 6.18);
//! `docs/measuring.md` has the table. Where the source gives a range, the constant is the worse end. Other machines differ: a
//! machine on which a loop reaches less than [`EXPECTED_SHARE_MIN`] of its value is reported as too slow for a verdict. That
//! is the safe error, because a slow raw loop makes ours look good.

use crate::sense::Sense;

/// Lowest share of its expected value at which a raw loop is a measure.
pub const EXPECTED_SHARE_MIN: f64 = 0.7;

/// Expected value of a raw loop, in the unit of the loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    value: f64,
}

impl Expected {
    /// Records of 64 bytes through a ring, published one by one with a consumer at the producer's heels, per second.
    pub const RING_64_SINGLE_PER_S: Self = Self::new(20.9e6);
    /// Stores of 64 bytes, packed into records, to random offsets in 64 MiB, per second.
    pub const SCATTER_64_PER_S: Self = Self::new(67e6);
    /// Records of 4096 bytes through a ring, per second: 77 Gbit/s.
    pub const RING_4096_PER_S: Self = Self::new(77e9 / 8.0 / 4096.0);
    /// Round trip of a record of 64 bytes, in nanoseconds.
    pub const RING_ROUND_TRIP_NS: Self = Self::new(530.0);
    /// Round trip of a cache line, in nanoseconds.
    pub const CACHE_LINE_ROUND_TRIP_NS: Self = Self::new(260.0);
    /// A system call that does nothing, in nanoseconds.
    pub const SYSTEM_CALL_NS: Self = Self::new(100.0);
    /// Round trip of two threads that wake each other on one processor, in nanoseconds.
    pub const FUTEX_ROUND_TRIP_NS: Self = Self::new(3000.0);
    /// Copies of 4 KiB that are in the cache, per second: 90 GB/s.
    pub const COPY_4096_PER_S: Self = Self::new(90e9 / 4096.0);
    /// Copies of 1 MiB, per second: 25 GB/s.
    pub const COPY_MIB_PER_S: Self = Self::new(25e9 / 1_048_576.0);
    /// Frames of 64 bytes over a veth pair by sendmmsg and recvmmsg with credits, per second.
    pub const PACKET_64_PER_S: Self = Self::new(0.83e6);
    /// Frames of 4096 bytes, per second: 16.8 Gbit/s.
    pub const PACKET_4096_PER_S: Self = Self::new(16.8e9 / 8.0 / 4096.0);
    /// Frames of 9000 bytes, per second: 20 Gbit/s.
    pub const PACKET_9000_PER_S: Self = Self::new(20e9 / 8.0 / 9000.0);
    /// Round trip of a frame of 64 bytes, both sides awake, in nanoseconds.
    pub const PACKET_ROUND_TRIP_NS: Self = Self::new(4000.0);

    /// Makes an expected value.
    #[must_use]
    pub const fn new(value: f64) -> Self {
        Self { value }
    }

    /// Returns the value.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.value
    }

    /// Returns the share of it that was reached: above 1 is better than expected.
    #[must_use]
    pub fn share(self, sense: Sense, measured: f64) -> f64 {
        match sense {
            Sense::HigherIsBetter => measured / self.value,
            Sense::LowerIsBetter if measured > 0.0 => self.value / measured,
            Sense::LowerIsBetter => f64::INFINITY,
        }
    }
}
