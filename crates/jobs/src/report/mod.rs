//! What both engines hand in at the end of a run, and the report assembled from it.
//!
//! Each member reports for itself ([`MemberReport`], sent as JSON from a process to its supervisor); [`Report::assemble`]
//! joins them with what the plan says, so that both engines produce the same fields from the same code.

mod assemble;
mod events;
mod fault_lines;
pub mod faults;
mod member;
mod memory;
mod meta;
mod refusals;
mod sweep;
mod traffic;

pub use assemble::{
    Context, LatencySummary, LinkReport, Manifest, MemberSeat, NodeReport, OperationReport, Report, Verdict, links_of,
    WireBytes,
};
pub use events::{EventLog, EventRecord};
pub use fault_lines::FaultLines;
pub use faults::FaultReport;
pub use member::{
    HostShortage, JobResult, MemberReport, MemberState, Mismatch, PathCount, PathReport, PortReport,
};
pub use memory::{LeakedRegion, Level, MemoryReport, PoolReport, Tiers};
pub use meta::{HostReport, Meta, Versions};
pub use refusals::Refusals;
pub use sweep::SweepRow;
pub use traffic::{TrafficPart, TrafficReport};

/// Counts that say nothing are left out of files.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
pub(crate) const fn is_zero(count: &u64) -> bool {
    *count == 0
}
