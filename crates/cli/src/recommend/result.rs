//! Result of the search, as tables print it and `--json` writes it.

use serde::Serialize;

/// Result of `rackloom recommend`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Recommendation {
    /// Version of rackloom.
    pub(super) version: &'static str,
    /// Rack file, as given on the command line.
    pub(super) rack: String,
    /// Collective.
    pub(super) collective: String,
    /// Size of the array.
    pub(super) bytes: u64,
    /// Target, as in the table.
    pub(super) target: String,
    /// Candidates, in the order in which they are preferred.
    pub(super) candidates: Vec<CandidateResult>,
    /// Index of the recommended candidate, if one meets the target.
    pub(super) recommended: Option<usize>,
}

/// One candidate with its costs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CandidateResult {
    /// Number of GPU nodes.
    pub(super) nodes: u64,
    /// Shape, as in rack files.
    pub(super) shape: &'static str,
    /// Planes of a star.
    pub(super) planes: u64,
    /// Fastest algorithm by the estimates; empty if there is none.
    pub(super) algorithm: String,
    /// Number of cables.
    pub(super) links: usize,
    /// Number of switches.
    pub(super) switches: usize,
    /// Estimated time, in nanoseconds.
    pub(super) estimated_ns: Option<f64>,
    /// Simulated time, in nanoseconds.
    pub(super) simulated_ns: Option<f64>,
    /// Size of the array that was simulated. If it is smaller than `bytes`, the time is scaled.
    pub(super) simulated_bytes: Option<u64>,
    /// Bus bandwidth, of the simulation if there is one.
    #[serde(rename = "busbw_GBps")]
    pub(super) bus_gbps: Option<f64>,
    /// Bus bandwidth as a share of the rate of all links of a node.
    pub(super) of_node: Option<f64>,
    /// Bus bandwidth over the target.
    pub(super) of_target: Option<f64>,
    /// Reason for the place of the candidate.
    pub(super) reason: String,
    /// Command that runs the candidate.
    pub(super) command: String,
}
