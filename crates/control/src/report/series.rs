//! Time series of a run: what links and nodes did in each interval.
//!
//! All intervals of one run have the same length. A run of unknown duration begins with short intervals. When the maximum number is
//! reached, each two neighbours become one and the length doubles, so that memory is bounded and the whole run is covered.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time series of a run. Each list of a link or node has one value per interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Begin of the first interval in nanoseconds, on the run's clock.
    pub from_ns: u64,
    /// Length of an interval in nanoseconds.
    pub interval_ns: u64,
    /// Number of intervals.
    pub intervals: u32,
    /// Directions of links, in the order of the report's `links`. Directions without frames are left out.
    pub links: Vec<LinkSeries>,
    /// Nodes with operations, in the order of the report's `nodes`.
    pub nodes: Vec<NodeSeries>,
}

/// Series of one direction of one link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkSeries {
    /// Name of the direction, such as `n0->n1`.
    pub name: String,
    /// Bytes sent, with the Ethernet header, without preamble and gap.
    pub bytes: Vec<u64>,
    /// Frames sent.
    pub frames: Vec<u64>,
    /// Frames dropped by the receiving end or by an injected fault, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<String, Vec<u64>>,
    /// Frames that link-level retry sent again; empty if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replayed: Vec<u64>,
    /// Packets of the sending end that were retransmitted; empty if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retransmitted: Vec<u64>,
    /// Times at which a frame waited for credits; empty if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credit_waits: Vec<u64>,
    /// Frames in the sending end's queues at the end of the interval; empty if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queued: Vec<u64>,
}

/// Series of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeSeries {
    /// Name of the node.
    pub name: String,
    /// Operations that ended.
    pub operations: Vec<u64>,
    /// Median latency of these operations in nanoseconds; 0 if none ended.
    pub latency_p50_ns: Vec<u64>,
    /// 99th percentile of their latency in nanoseconds; 0 if none ended.
    pub latency_p99_ns: Vec<u64>,
}
