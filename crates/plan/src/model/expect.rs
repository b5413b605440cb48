//! Expectations that a report compares a run with.
//!
//! The plan states expectations. The jobs crate compares them with the result.

use rackloom_protocol::NodeId;

use crate::setting::word::words;

/// Expected end of a run. A field that is `None` is not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectations {
    /// Expected result of the job.
    pub verdict: ExpectedVerdict,
    /// True if every operation must end without an error and without an unknown outcome, even if the job tolerates one.
    pub operations_complete: bool,
    /// Longest time from the first frame to the end of the job, in nanoseconds.
    pub elapsed_max_ns: Option<u64>,
    /// Fewest packets that all nodes together retransmit.
    pub retransmitted_min: Option<u64>,
    /// Most packets that all nodes together retransmit.
    pub retransmitted_max: Option<u64>,
    /// Members that are lost by the end, in ascending order. No other member may be lost.
    pub nodes_lost: Vec<NodeId>,
}

words! {
    /// Result of a job.
    pub enum ExpectedVerdict {
        /// All checks of the job succeed.
        #[default]
        Pass = "pass",
        /// Some check fails: the rack demonstrates an outage.
        Fail = "fail",
    }
}
