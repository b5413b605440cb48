//! Memory of a node in a taken seat, as a record of reports.

use rackloom_control::report::{Level, MemoryReport};

use crate::fabric::memory::bytes::Account;

/// Returns the report about the memory of the node's regions. The program owns this memory: `limit_bytes` is the quota of the job
/// that holds the seat, or the limit of the rack file, which is not enforced.
pub(super) fn memory(account: Account, limit_bytes: u64) -> MemoryReport {
    let level = Level { current: account.bytes, high: account.bytes_high };
    MemoryReport {
        limit_bytes,
        reserved_bytes: level,
        used_bytes: level,
        allocations: account.added,
        frees: account.removed,
        ..MemoryReport::default()
    }
}
