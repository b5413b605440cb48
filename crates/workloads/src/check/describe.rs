//! Operations in words, for messages.

use crate::model::{Work, Workload};

/// Returns a description such as `receive of 64 bytes from rank 1, tag 0`.
pub(super) fn work(work: &Work) -> String {
    match work {
        Work::Compute { duration_ns } => format!("compute of {duration_ns} ns"),
        Work::Kernel { flops, bytes } => format!("compute of {flops} operations and {bytes} bytes"),
        Work::Send { to, bytes, tag } => format!("send of {bytes} bytes to rank {to}, tag {tag}"),
        Work::Receive { from, bytes, tag } => format!("receive of {bytes} bytes from rank {from}, tag {tag}"),
        Work::Collective { group, kind, bytes, root } if kind.has_root() => {
            format!("{kind} of {bytes} bytes in group {group}, root {root}")
        }
        Work::Collective { group, kind, bytes, .. } => format!("{kind} of {bytes} bytes in group {group}"),
    }
}

/// Returns a description with the place, such as `rank 0, operation 3 (compute of 5 ns)`.
pub(super) fn operation(workload: &Workload, (rank, index): (usize, usize)) -> String {
    let operation = workload.ranks.get(rank).and_then(|rank| rank.operations().get(index));
    let work = operation.map_or_else(String::new, |operation| work(&operation.work));
    format!("rank {rank}, operation {index} ({work})")
}
