//! Construction of one rank of a collective job: with or without a repetition by the remaining ranks after a loss.

use std::sync::Arc;

use rackloom_protocol::NodeId;

use super::memory_plan::CollectiveError;
use super::performance::alone;
use super::settings::CollectiveSettings;
use super::shrink;
use super::snapshot::Checkpoints;
use crate::job::Job;
use crate::ranks::Rank;

/// Returns one rank of a collective job.
///
/// # Errors
/// As for [`collective_from`].
pub fn collective(
    rank: NodeId,
    ranks: Arc<[Rank]>,
    settings: CollectiveSettings,
) -> Result<Box<dyn Job>, CollectiveError> {
    collective_from(rank, ranks, settings, Checkpoints::default())
}

/// Returns one rank of a collective job that saves snapshots or resumes from one.
///
/// # Errors
/// The job does not fit into memory, the algorithm does not support the collective, or arrays have the wrong length.
pub fn collective_from(
    rank: NodeId,
    ranks: Arc<[Rank]>,
    settings: CollectiveSettings,
    checkpoints: Checkpoints,
) -> Result<Box<dyn Job>, CollectiveError> {
    if settings.shrinks {
        shrink::shrinking(rank, ranks, settings, checkpoints)
    } else {
        alone(rank, ranks, settings, checkpoints)
    }
}
