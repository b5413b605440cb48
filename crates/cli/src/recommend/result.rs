//! Result of the search, as tables print it and `--json` writes it.

use schemars::JsonSchema;
use serde::Serialize;

/// Result of `rackloom recommend`.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Recommendation {
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
    /// Target as a share of the rate of all links of a node, if it is one.
    pub(super) target_of_node: Option<f64>,
    /// Target as a bus bandwidth in 10^9 bytes per second, if it is one.
    #[serde(rename = "target_busbw_GBps")]
    pub(super) target_gbps: Option<f64>,
    /// Candidates, in the order in which they are preferred.
    pub(super) candidates: Vec<CandidateResult>,
    /// Index of the recommended candidate, if one meets the target.
    pub(super) recommended: Option<usize>,
    /// True if all candidates were built, and all that were to be simulated were: neither the time limit nor an interruption came before.
    pub(super) is_complete: bool,
    /// Time limit, in seconds.
    pub(super) time_limit_s: f64,
    /// Duration of the search, in seconds.
    pub(super) elapsed_s: f64,
}

/// Knowledge of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    /// The shape does not exist for the number of nodes, the rack is refused, or no algorithm performs the collective.
    Impossible,
    /// It was neither built nor estimated: the time limit, or an interruption, came before.
    NotBuilt,
    /// It was estimated, and was not to be simulated.
    Estimated,
    /// It was estimated, and was to be simulated: the time limit, or an interruption, came before.
    NotSimulated,
    /// Its simulation failed.
    Failed,
    /// It was simulated.
    Simulated,
}

/// One candidate with its costs.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(super) struct CandidateResult {
    /// Number of GPU nodes.
    pub(super) nodes: u64,
    /// Shape, as in rack files.
    pub(super) shape: &'static str,
    /// Sizes of the shape beside the number of nodes, as in the table: `4x4` of a torus, `4x8, 8 spines` of leaves and spines; else empty.
    pub(super) sizes: String,
    /// Planes of a star, or of leaves and spines.
    pub(super) planes: u64,
    /// Fastest algorithm by the estimates; empty if there is none.
    pub(super) algorithm: String,
    /// Number of cables; 0 if the rack cannot be built.
    pub(super) links: usize,
    /// Number of switches; 0 if the rack cannot be built.
    pub(super) switches: usize,
    /// Estimated time, in nanoseconds.
    pub(super) estimated_ns: Option<f64>,
    /// Simulated time, in nanoseconds.
    pub(super) simulated_ns: Option<f64>,
    /// Size of the array that was simulated. If it is smaller than `bytes`, the time is scaled.
    pub(super) simulated_bytes: Option<u64>,
    /// Bus bandwidth in 10^9 bytes per second, of the simulation if there is one.
    #[serde(rename = "busbw_GBps")]
    pub(super) bus_gbps: Option<f64>,
    /// Bus bandwidth as a share of the rate of all links of a node.
    pub(super) of_node: Option<f64>,
    /// Bus bandwidth over the target.
    pub(super) of_target: Option<f64>,
    /// Knowledge of the candidate.
    pub(super) state: State,
    /// Reason for the place of the candidate.
    pub(super) reason: String,
    /// Command that runs the candidate; empty if there is none.
    pub(super) command: String,
}
