//! Bound of the time in which a rank computes. Sums of times within it fit in 64 bits.

use crate::error::WorkloadError;
use crate::model::{RankOperations, Work, Workload};

/// Longest time of all computations of a rank together, in nanoseconds: a hundred years.
const COMPUTE_NS_MAX: u64 = 3_155_760_000_000_000_000;

/// Checks that the computations of each rank that are stated as times take a hundred years together at most. [`check`](crate::check()) includes it.
///
/// # Errors
///
/// Returns the first operation with which a rank computes for longer.
pub fn check_durations(workload: &Workload) -> Result<(), WorkloadError> {
    let found = workload.ranks.iter().enumerate().find_map(|(rank, list)| beyond_limit(rank, list));
    found.map_or(Ok(()), Err)
}

/// Returns the mistake of a rank that computes for longer than the limit, at the operation with which it does.
pub(super) fn beyond_limit(rank: usize, operations: &RankOperations) -> Option<WorkloadError> {
    let mut sum_ns = 0_u64;
    let is_beyond = |work: &Work| {
        let Work::Compute { duration_ns } = work else { return false };
        sum_ns = sum_ns.saturating_add(*duration_ns);
        sum_ns > COMPUTE_NS_MAX
    };
    let mut works = operations.operations().iter().map(|operation| &operation.work);
    let index = works.position(is_beyond)?;
    let reason = format!("the computations of rank {rank} up to here take more than a hundred years");
    Some(WorkloadError::operation(
        rank,
        index,
        reason,
        "state shorter durations, or a trace with another unit of time",
    ))
}
