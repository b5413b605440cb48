//! Expectations of a run with faults.

use rackloom_protocol::NodeId;

use crate::setting::named_value::named_values;

/// Expectations of a run with faults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultExpectations {
    /// Expected end of the job on the surviving nodes.
    pub ends: ExpectedEnd,
    /// Members that are lost by the end, in ascending order. No other member may be lost.
    pub lost: Vec<NodeId>,
    /// Events that must have happened.
    pub happen: RequiredEvents,
    /// Longest time from a fault to its first detection by a neighbour, in nanoseconds.
    pub detected_within_ns: Option<u64>,
    /// Longest time from a fault to the last change of path that it causes, in nanoseconds.
    pub switched_within_ns: Option<u64>,
    /// Longest time from the end of a fault until the affected links are up again, in nanoseconds.
    pub recovered_within_ns: Option<u64>,
    /// Longest time from the first frame to the end of the job, in nanoseconds.
    pub elapsed_max_ns: Option<u64>,
    /// Least goodput of the job, in bits per second.
    pub goodput_min_bits_per_s: Option<u64>,
    /// Fewest packets that all nodes together retransmit.
    pub retransmitted_min: Option<u64>,
    /// Most packets that all nodes together retransmit.
    pub retransmitted_max: Option<u64>,
}

named_values! {
    /// Expected end of a job on the surviving nodes. A wrong byte, an operation that is applied twice and a hang always fail.
    pub enum ExpectedEnd {
        /// All results are correct.
        #[default]
        Right = "right",
        /// The job ends with an error that names the lost nodes.
        Error = "clean-error",
        /// Either of both.
        Either = "right-or-clean-error",
    }
}

named_values! {
    /// Set of events that must have happened by the end.
    pub enum RequiredEvents {
        /// All events. An event that has not happened proves nothing.
        #[default]
        All = "all",
        /// Any set, because the run may end first.
        Any = "any",
    }
}
