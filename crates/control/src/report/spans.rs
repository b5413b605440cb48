//! Spans of time of a run: single operations, and phases of a job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::measure::OperationKind;

/// One operation of a node, from its first attempt to its completion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperationSpan {
    /// Name of the node that issued it.
    pub node: String,
    /// Kind of the operation.
    pub kind: OperationKind,
    /// Name of the target; absent for operations that have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Time of the first attempt in nanoseconds, on the run's clock.
    pub begin_ns: u64,
    /// Time of the completion in nanoseconds.
    pub end_ns: u64,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Name of the error; absent if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Phase of a job, such as one algorithm at one size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseSpan {
    /// Name of the phase, such as `all-reduce ring 1048576 B`.
    pub name: String,
    /// Begin at the first rank in nanoseconds, on the run's clock.
    pub began_ns: u64,
    /// End at the last rank in nanoseconds.
    pub ended_ns: u64,
}

impl PhaseSpan {
    /// Joins the phases of all ranks by name, in the order in which they are first seen.
    #[must_use]
    pub fn join<'a>(parts: impl Iterator<Item = &'a [Self]>) -> Vec<Self> {
        let mut joined: Vec<Self> = Vec::new();
        for phase in parts.flatten() {
            match joined.iter_mut().find(|known| known.name == phase.name) {
                Some(known) => {
                    known.began_ns = known.began_ns.min(phase.began_ns);
                    known.ended_ns = known.ended_ns.max(phase.ended_ns);
                }
                None => joined.push(phase.clone()),
            }
        }
        joined
    }
}
