//! Expectations that a report compares a run with.
//!
//! The plan states expectations. The jobs crate compares them with the result.

use rackloom_protocol::NodeId;

use crate::setting::named_value::named_values;
use crate::setting::section::section;
use crate::setting::table::Kind;

named_values! {
    /// Result of a job.
    pub enum ExpectedVerdict {
        /// All checks of the job succeed.
        #[default]
        Pass = "pass",
        /// Some check fails: the rack demonstrates an outage.
        Fail = "fail",
    }
}

section! {
    /// Expected end of a run. A field that is `None` is not compared.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Expectations: EXPECT = "expect" {
        /// Expected result of the job. A rack that demonstrates an outage expects `fail`.
        verdict: ExpectedVerdict {
            form = Kind::Choice(ExpectedVerdict::NAMES);
            default = ExpectedVerdict::Pass;
        }
        /// True if every operation must end without an error and without an unknown outcome, even if the job tolerates one.
        operations_complete: bool {
            form = Kind::Flag;
            default = false;
        }
        /// Longest time from the first frame to the end of the job.
        elapsed_max_ns: Option<u64> {
            key = "elapsed_max";
            form = Kind::Time(1, u64::MAX);
            default = None;
            shown = "not judged";
        }
        /// Fewest packets that all nodes together retransmit.
        retransmitted_min: Option<u64> {
            form = Kind::Count(0, u64::MAX);
            default = None;
            shown = "not judged";
        }
        /// Most packets that all nodes together retransmit.
        retransmitted_max: Option<u64> {
            form = Kind::Count(0, u64::MAX);
            default = None;
            shown = "not judged";
        }
        /// Exactly these members, nodes or switches, are lost by the end, in ascending order. The loss of any other member fails the run.
        nodes_lost: Vec<NodeId> {
            form = Kind::Names;
            default = Vec::new();
            shown = "none";
        }
    }
}
