//! Results of members at the end of a run, and the report that is assembled from them.
//!
//! Each member reports its own results ([`MemberReport`], sent as JSON from a process to its supervisor).
//! [`Report::assemble`] joins them with the plan. So both engines produce the same fields from the same code.

mod assemble;
pub mod balance;
pub mod device;
mod events;
mod fault_lines;
mod fault_report;
pub mod faults;
pub mod gpu;
pub mod injected;
mod member;
mod memory;
mod meta;
mod refusals;
mod series;
mod spans;
mod sweep;
mod topology;
mod traffic;
mod workload;

pub use assemble::{
    Context, LatencySummary, LinkReport, Manifest, MemberSeat, NodeReport, OperationReport, Report, Verdict,
    WireBytes,
};
pub use balance::{PhaseBalance, PhaseBytes};
pub use device::{DevicePart, DeviceUse, PathUse};
pub use events::{EventLog, EventRecord};
pub use fault_lines::FaultLines;
pub use fault_report::FaultReport;
pub use gpu::{GpuPart, GpuRates, GpuUse, MeanAndMax, Sampled};
pub use member::{
    DEVICE_DROPS, HostShortage, JobResult, MemberReport, MemberState, Mismatch, PathCount, PathReport,
    PortReport,
};
pub use memory::{LeakedRegion, Level, MemoryReport, PoolReport, Tiers};
pub use meta::{HostReport, Meta, Versions};
pub use refusals::Refusals;
pub use series::{LinkSeries, NodeSeries, Series};
pub use spans::{OperationSpan, PhaseSpan};
pub use sweep::{Rechoice, RechoiceCause, SweepRow, TriedAlgorithm};
pub use topology::{Topology, TopologyLink, TopologyMember, TopologyShape};
pub use traffic::{TrafficPart, TrafficReport};
pub use workload::{LinkUse, PhasePart, PhaseReport, RankReport, WorkloadPart, WorkloadReport};
