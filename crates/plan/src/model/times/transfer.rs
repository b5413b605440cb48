//! Time that bytes take at a rate.

/// Returns the time of `bytes` at `rate_bits_per_s`, in whole nanoseconds, rounded up; 0 without a rate.
pub(crate) fn transfer_ns(bytes: u64, rate_bits_per_s: Option<u64>) -> u64 {
    let Some(rate) = rate_bits_per_s.filter(|rate| *rate > 0) else { return 0 };
    let ns = (u128::from(bytes) * 8 * 1_000_000_000).div_ceil(u128::from(rate));
    u64::try_from(ns).unwrap_or(u64::MAX)
}
