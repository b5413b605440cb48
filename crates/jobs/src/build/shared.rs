//! Values that the jobs of a plan share: seeds, ranks, memory, and timeouts.

use std::sync::Arc;

use rackloom_plan::Plan;
use rackloom_protocol::MemberRole;

use crate::ranks::Rank;

/// Seeds of the jobs of one run. All ranks must get equal seeds.
///
/// Equal seeds suit virtual time, where a run repeats to the last byte. Between real processes `keys` is a secret of
/// the run, so that a process that knows the rack file cannot address memory of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// Seed of data, guards, alignments and targets.
    pub data: u64,
    /// Seed of the keys of regions.
    pub keys: u64,
}

impl From<u64> for Seeds {
    fn from(seed: u64) -> Self {
        Self { data: seed, keys: seed }
    }
}

/// Returns the ranks. Endpoints come first in a plan, so a rank's number is its node's.
pub(super) fn ranks(plan: &Plan) -> Arc<[Rank]> {
    let endpoints = plan.members.iter().filter(|member| member.role == MemberRole::Endpoint);
    endpoints.map(|member| Rank { name: member.name.clone(), tenant: member.tenant }).collect()
}

/// Returns the ranks, and behind them the switches with a reduction unit. These follow the GPU nodes in a plan, so a
/// participant's number is its member's.
pub(super) fn participants(plan: &Plan, ranks: &Arc<[Rank]>) -> Arc<[Rank]> {
    if plan.reducing_switches().is_none() {
        return Arc::clone(ranks);
    }
    let members = plan.members.iter().filter(|member| member.role.has_job());
    members.map(|member| Rank { name: member.name.clone(), tenant: member.tenant }).collect()
}

/// Returns the memory of the GPU node with the least, in bytes; 0 if there is none.
pub(super) fn smallest_memory(plan: &Plan) -> u64 {
    let endpoints = plan.members.iter().filter(|member| member.role == MemberRole::Endpoint);
    endpoints.map(|member| member.memory_bytes).min().unwrap_or(0)
}

/// Returns a timeout that ends before the watchdog's, because the job can report more about the cause.
pub(super) fn timeout_ns(plan: &Plan, most_ns: u64) -> u64 {
    (plan.settings.watchdog_ns / 2).min(most_ns)
}
