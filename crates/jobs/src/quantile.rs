//! Quantiles of short lists.

/// Returns the quantile by nearest rank: the smallest value that at least this share of the values does not exceed. `None` if there are
/// none.
pub(crate) fn nearest_rank(sorted: &[u64], share: f64) -> Option<u64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}
