//! Collective that the remaining ranks repeat after a loss: the memory that a group of any size needs, and the
//! construction of its job.
//!
//! A group does an all-reduce by the ring and a barrier by dissemination, even if the whole rack used another
//! algorithm. Any number of ranks can run both, one included, and their memory is known beforehand.

use std::sync::Arc;

use rackloom_collectives::{Algorithm, Collective};
use rackloom_protocol::{Access, NodeId, RegionConfig};

use super::memory_plan::{CollectiveError, MemoryNeed, memory_needed};
use super::performance::alone;
use super::settings::CollectiveSettings;
use super::snapshot::Checkpoints;
use crate::job::Job;
use crate::ranks::{CONTROL, CONTROL_BYTES, JobGroup, Rank};
use crate::survivors::{AREAS, RANKS_MAX, Survivors};

/// Returns one rank of a collective that the remaining ranks repeat after a loss. Units in switches serve the whole rack only.
pub(super) fn shrinking(
    rank: NodeId,
    participants: Arc<[Rank]>,
    settings: CollectiveSettings,
    checkpoints: Checkpoints,
) -> Result<Box<dyn Job>, CollectiveError> {
    let ranks: Arc<[Rank]> = participants[..settings.ranks_of(participants.len())].into();
    let cannot =
        || CollectiveError::CannotShrink { collective: settings.collective.name(), ranks: ranks.len() };
    let algorithm = match settings.collective {
        Collective::AllReduce => Algorithm::Ring,
        Collective::Barrier => Algorithm::Dissemination,
        _ => return Err(cannot()),
    };
    if ranks.len() > RANKS_MAX {
        return Err(cannot());
    }
    if settings.algorithms.len() > 1 {
        return Err(CollectiveError::ShrinksByOne);
    }
    let of_group = CollectiveSettings {
        algorithms: vec![algorithm],
        adapts: false,
        servers: Vec::new(),
        shrinks: false,
        // A group has schedules of its own.
        common: None,
        ..settings.clone()
    };
    let need = need(&of_group, ranks.len())?;
    must_fit(&settings, ranks.len(), algorithm, need)?;
    let job_group = JobGroup::new(rank.0, ranks.clone(), settings.key_seed);
    let regions = regions(&job_group, need);
    let (drain_timeout_ns, common) = (settings.drain_timeout_ns, settings.common.clone());
    let whole =
        CollectiveSettings { memory_bytes: settings.memory_bytes - AREAS * need.total_bytes(), ..settings };
    let is_unit = rank.index() >= ranks.len();
    let job = alone(rank, participants, whole, checkpoints)?;
    if is_unit {
        return Ok(job);
    }
    let build = move |members: &[u16], own: NodeId| {
        let common = common.as_ref().map(|common| common.of_group(members));
        let settings = CollectiveSettings { members: members.to_vec(), common, ..of_group.clone() };
        let group = members.iter().map(|member| ranks[usize::from(*member)].clone()).collect();
        alone(own, group, settings, Checkpoints::default()).map_err(|error| error.to_string())
    };
    Ok(Box::new(Survivors::new(job_group, regions, drain_timeout_ns, Box::new(build), job)))
}

/// Returns the most memory that any rank of any group needs.
fn need(settings: &CollectiveSettings, ranks: usize) -> Result<MemoryNeed, CollectiveError> {
    let mut most = MemoryNeed::default();
    for group in 1..=ranks {
        most = memory_needed(settings, group)?.into_iter().fold(most, MemoryNeed::max);
    }
    Ok(most)
}

/// Returns the regions of a memory area of a group.
fn regions(job_group: &JobGroup, need: MemoryNeed) -> Vec<RegionConfig> {
    let control = job_group.region(CONTROL, CONTROL_BYTES, Access::ALL);
    std::iter::once(control).chain(need.regions(job_group, false)).collect()
}

/// Checks that the whole rack's job and all groups' jobs fit into memory.
fn must_fit(
    settings: &CollectiveSettings,
    ranks: usize,
    algorithm: Algorithm,
    need: MemoryNeed,
) -> Result<(), CollectiveError> {
    let areas_bytes = AREAS * need.total_bytes();
    let left = settings.memory_bytes.saturating_sub(areas_bytes);
    // `auto` uses as many algorithms as fit beside the areas.
    let whole = CollectiveSettings { memory_bytes: left, ..settings.clone() };
    memory_needed(&whole, ranks).map(|_| ()).map_err(|error| match error {
        CollectiveError::TooLarge { what, place, need: of_whole, .. } => {
            let overhead_bytes = of_whole.overhead_bytes + areas_bytes;
            let need = MemoryNeed { overhead_bytes, ..of_whole };
            CollectiveError::TooLarge { what, algorithm, place, need, memory_bytes: settings.memory_bytes }
        }
        other => other,
    })
}
