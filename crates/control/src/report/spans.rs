//! Single operations of a run, with begin and end.
//!
//! Measurements sum operations up. A span is one of them, for tools that draw operations over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::measure::OperationKind;
use crate::zero::is_zero;

/// One operation of a node, from its first attempt to its completion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperationSpan {
    /// Index of the node among the report's `nodes`.
    pub node: u16,
    /// Kind of the operation.
    pub kind: OperationKind,
    /// Time of the first attempt in nanoseconds, on the run's clock.
    pub begin_ns: u64,
    /// Time of the completion in nanoseconds.
    pub end_ns: u64,
    /// Index of the other node; absent for operations that concern only their own node, and for barriers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<u16>,
    /// Bytes of the operation; zero if it moves none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_returns_from_json_and_leaves_out_what_it_does_not_have() {
        let fence = OperationSpan {
            node: 3,
            kind: OperationKind::Fence,
            begin_ns: 5,
            end_ns: 9,
            peer: None,
            bytes: 0,
        };
        let text = serde_json::to_string(&fence).unwrap();
        assert_eq!(text, r#"{"node":3,"kind":"fence","begin_ns":5,"end_ns":9}"#);
        assert_eq!(serde_json::from_str::<OperationSpan>(&text).unwrap(), fence);
        let put = OperationSpan { kind: OperationKind::Put, peer: Some(1), bytes: 64, ..fence };
        let text = serde_json::to_string(&put).unwrap();
        assert_eq!(serde_json::from_str::<OperationSpan>(&text).unwrap(), put);
    }
}
