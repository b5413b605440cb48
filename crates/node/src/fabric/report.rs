//! Memory of a node in a taken seat, as a record of reports.

use rackloom_control::report::{Level, MemoryReport};

use super::bytes::Account;

/// Returns the report about the memory of the node's regions. The memory is the program's own: `limit_bytes` is what the rack file grants the seat,
/// and is not enforced.
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
