//! What the report holds a run against.
//!
//! The plan states expectations; whoever has seen the run judges them.

use rackloom_protocol::NodeId;

use crate::words::words;

/// What a run shall end like. What is `None` is not judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectations {
    /// What the job itself ends with.
    pub verdict: ExpectedVerdict,
    /// Whether every operation must end without an error or an unknown outcome, also where the job tolerates one.
    pub operations_complete: bool,
    /// Longest time from the first frame to the end of the job.
    pub elapsed_max_ns: Option<u64>,
    /// Fewest packets that all nodes together send again.
    pub retransmitted_min: Option<u64>,
    /// Most packets that all nodes together send again.
    pub retransmitted_max: Option<u64>,
    /// Exactly these members are lost by the end, in ascending order.
    pub nodes_lost: Vec<NodeId>,
}

words! {
    /// What a job ends with.
    pub enum ExpectedVerdict {
        /// All that the job checks is right.
        #[default]
        Pass = "pass",
        /// Something is not: the rack shows an outage.
        Fail = "fail",
    }
}
