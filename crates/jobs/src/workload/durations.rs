//! Durations of the computations that a workload states by their work, from the device of each rank.
//!
//! Both engines perform times, so a rank's device has the same effect in virtual time and on processes.

use rackloom_plan::DeviceModel;
use rackloom_workloads::{RankOperations, Work, Workload};

use super::error::WorkloadError;
use crate::ranks::Rank;

/// Replaces the work of computations by durations. `devices` are by rank, as `ranks`.
///
/// # Errors
/// A rank whose device has no compute rate has such a computation.
pub(super) fn state(
    workload: &mut Workload,
    ranks: &[Rank],
    devices: &[DeviceModel],
) -> Result<(), WorkloadError> {
    let mut previous: Option<(RankOperations, DeviceModel, RankOperations)> = None;
    for (rank, (operations, device)) in workload.ranks.iter_mut().zip(devices).enumerate() {
        // Ranks of one block on equal devices go on sharing their list.
        if let Some((stated, of, timed)) = &previous
            && of == device
            && stated == operations
        {
            operations.clone_from(timed);
            continue;
        }
        let stated = operations.clone();
        let timed = operations.replace_work(|index, work| match work {
            Work::Kernel { flops, bytes } => match device.compute_ns(flops, bytes) {
                Some(duration_ns) => Ok(Some(Work::Compute { duration_ns })),
                None => Err(index),
            },
            _ => Ok(None),
        });
        timed.map_err(|operation| WorkloadError::NoComputeRate {
            name: workload.name.clone(),
            node: ranks[rank].name.clone(),
            rank,
            operation,
        })?;
        previous = Some((stated, *device, operations.clone()));
    }
    Ok(())
}
