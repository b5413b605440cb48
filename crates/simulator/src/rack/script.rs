//! State of a fault script in a rack: its schedulers, its begins and ends of faults, and the awaited successors.

use rackloom_plan::Plan;
use rackloom_plan::faults::FaultScheduler;
use rackloom_protocol::{Instant, NodeId};

use crate::outcome::FaultTransition;

/// A dead member whose seat gets a successor soon, or got one. The run waits until the successor's links are up.
pub(super) struct Return {
    pub(super) member: NodeId,
    /// Index of the event that killed it.
    pub(super) event: usize,
    /// Deadline for the successor; `None` before it starts.
    pub(super) until: Option<Instant>,
}

/// State of the script in this rack.
pub(super) struct Script {
    /// Schedulers of faults by member.
    pub(super) schedulers: Vec<Option<FaultScheduler>>,
    /// Time of the scheduler's scheduled poll; later ones are stale.
    pub(super) due_at: Vec<Instant>,
    pub(super) fault_transitions: Vec<FaultTransition>,
    /// Members that are to get a successor, or whose successor is not up yet.
    pub(super) returns: Vec<Return>,
    /// Maximum time for which the run waits for the links of a successor, in nanoseconds.
    pub(super) wait_max_ns: u64,
    /// Plan of a successor: the same rack without a job.
    pub(super) successors: Plan,
    pub(super) seed: u64,
}
