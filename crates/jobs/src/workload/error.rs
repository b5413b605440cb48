//! Reasons for which a rack cannot perform a workload.

use std::fmt;

use rackloom_collectives::Reason;
use rackloom_workloads::Place;

use super::layout::MemoryNeed;

/// Reason for which a rack cannot perform a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadError {
    /// The workload contradicts itself.
    Inconsistent {
        /// Name of the workload.
        name: String,
        /// First mistake.
        first: rackloom_workloads::WorkloadError,
    },
    /// The workload has more ranks than the rack has GPU nodes.
    TooManyRanks {
        /// Name of the workload.
        name: String,
        /// Ranks of the workload.
        ranks: usize,
        /// GPU nodes of the rack.
        nodes: usize,
    },
    /// The workload does not fit into the memory of a node.
    TooLarge {
        /// Name of the node.
        node: String,
        /// Memory that it needs.
        need: MemoryNeed,
        /// Memory that it has, in bytes.
        memory_bytes: u64,
    },
    /// A computation is stated by its work, and the device of its rank has no compute rate.
    NoComputeRate {
        /// Name of the workload.
        name: String,
        /// Name of the node.
        node: String,
        /// Rank of the first such computation.
        rank: usize,
        /// Index of the computation in the list of its rank.
        operation: usize,
    },
    /// The ranks belong to several tenants, which cannot access each other's memory.
    SeveralTenants,
    /// A collective of the workload has no schedule.
    Refused {
        /// Group of the collective.
        group: u16,
        /// Reason and remedy.
        reason: Reason,
    },
    /// None of the named algorithms can perform a collective of the workload.
    Unsuitable {
        /// Names of the algorithms.
        algorithms: String,
        /// Names of the collectives.
        collectives: String,
    },
}

impl WorkloadError {
    /// Returns message and hint.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Inconsistent { name, first } => {
                let place = match first.place {
                    Place::Whole => String::new(),
                    place => format!(", {place}"),
                };
                Reason::new(format!("workload {name}{place}: {}", first.reason), first.hint.clone())
            }
            Self::TooManyRanks { name, ranks, nodes } => Reason::new(
                format!("workload {name} has {ranks} ranks, the rack has {nodes} GPU nodes"),
                format!("take a rack of at least {ranks} nodes, or a workload of fewer ranks"),
            ),
            Self::TooLarge { node, need, memory_bytes } => {
                let MemoryNeed { source_bytes, inbox_bytes, count_bytes, signal_bytes } = need;
                let needed = need.total_bytes();
                Reason::new(
                    format!(
                        "the workload needs {needed} bytes of memory at {node} (longest message sent {source_bytes}, longest \
                         received {inbox_bytes}, words {}), there are {memory_bytes}",
                        count_bytes.saturating_add(*signal_bytes)
                    ),
                    "raise `defaults.memory` in the rack file, or make the largest messages and collectives smaller",
                )
            }
            Self::NoComputeRate { name, node, rank, operation } => Reason::new(
                format!(
                    "workload {name}, rank {rank}, operation {operation}: the computation is stated by its work, and {node} \
                     has no compute rate"
                ),
                "state the rate in the rack file, `device: {compute_rate: 500TFLOP/s}`, or a duration in the workload, \
                 `compute 5us`",
            ),
            Self::SeveralTenants => Reason::new(
                "the ranks of the workload belong to several tenants",
                "a workload is performed within one",
            ),
            Self::Refused { group, reason } => {
                Reason::new(format!("collective of group {group}: {}", reason.message), reason.hint.clone())
            }
            Self::Unsuitable { algorithms, .. } if algorithms == "in-switch" => Reason::new(
                "--algorithm in-switch: switches take no part in workloads",
                "leave --algorithm out, or measure the collective alone: `--collective NAME --algorithm in-switch`",
            ),
            Self::Unsuitable { algorithms, collectives } => Reason::new(
                format!("--algorithm {algorithms}: the workload has no collective that it can perform"),
                format!("its collectives are {collectives}; leave --algorithm out, or name one for them"),
            ),
        }
    }
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason().fmt(formatter)
    }
}

impl core::error::Error for WorkloadError {}
