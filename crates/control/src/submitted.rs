//! Jobs that users submit to a standing rack: the submission, the status of jobs, and the account of each tenant.
//!
//! `docs/decisions/jobs-on-a-standing-rack.md` defines what such a job is. Its programs find their seats in the environment variables
//! named here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Environment variable: name of the rack.
pub const RACK_VARIABLE: &str = "RACKLOOM_RACK";
/// Environment variable: seat of the process.
pub const SEAT_VARIABLE: &str = "RACKLOOM_SEAT";
/// Environment variable: IP address of the seat, in a rack with IP over the fabric.
pub const ADDRESS_VARIABLE: &str = "RACKLOOM_ADDRESS";
/// Environment variable: number of the job.
pub const JOB_VARIABLE: &str = "RACKLOOM_JOB";
/// Environment variable: rank of the process in the job.
pub const RANK_VARIABLE: &str = "RACKLOOM_RANK";
/// Environment variable: number of ranks of the job.
pub const RANKS_VARIABLE: &str = "RACKLOOM_RANKS";
/// Environment variable: seats of the job in the order of their ranks, separated by commas.
pub const SEATS_VARIABLE: &str = "RACKLOOM_SEATS";
/// Environment variable: numbers of these nodes in the plan, separated by commas.
pub const NODES_VARIABLE: &str = "RACKLOOM_NODES";
/// Environment variable: bytes of memory that the node may register with the fabric.
pub const MEMORY_VARIABLE: &str = "RACKLOOM_MEMORY";

/// Longest time that a job may run if it states none, in nanoseconds: 24 hours.
pub const TIME_MAX_NS: u64 = 24 * 3600 * 1_000_000_000;

/// Job of a request: a program that the rack starts once on each of the job's nodes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// Program to start. A name without `/` is searched in the `PATH` of the rack's supervisor.
    pub program: String,
    /// Arguments of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Working directory of the processes, absolute.
    pub directory: PathBuf,
    /// Variables in addition to the environment of the rack's supervisor.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Names of the nodes, in the order of the ranks. Empty if the job states a count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// Number of nodes, if the job names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// Tenant of the nodes; that of the named nodes if absent, and 0 without names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<u16>,
    /// Bytes that each node may register with the fabric; the memory of the node if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Longest time from start to end, in nanoseconds; [`TIME_MAX_NS`] if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_max_ns: Option<u64>,
    /// Directory for the output of the processes, absolute; one beside the rack's logs if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<PathBuf>,
}

/// Number of a job of a request or an answer.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct JobNumber {
    /// Number of the job. The first job of a rack is 1.
    pub job: u64,
}

/// State of a job.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// The job waits for nodes.
    #[default]
    Queued,
    /// The processes of the job run.
    Running,
    /// The outcome is known, and some processes or seats have not ended.
    Ending,
    /// Every process ended with code 0.
    Passed,
    /// A process failed, or the job exceeded its time.
    Failed,
    /// The user or the end of the rack cancelled the job.
    Cancelled,
}

impl JobState {
    /// Returns the name in texts and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Ending => "ending",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns true if the job has ended and its nodes are free.
    #[must_use]
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Passed | Self::Failed | Self::Cancelled)
    }
}

/// Process of a job on one node.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct RankStatus {
    /// Name of the node.
    pub node: String,
    /// Process; absent before its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// End of the process, in words; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Exit code of the process; absent while it runs, and after a signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Signal that ended the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// File with the output of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
    /// Bytes that the node has sent in data frames and moved through mapped memory, as far as it has reported them.
    pub bytes: u64,
    /// Most bytes that the node had registered at one time, as far as it has reported them.
    pub memory_high_bytes: u64,
}

/// Status of a job. Times are on the rack's clock, in nanoseconds.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct JobStatus {
    /// Number of the job.
    pub job: u64,
    /// Tenant of its nodes.
    pub tenant: u16,
    /// State of the job.
    pub state: JobState,
    /// Reason why a queued job waits, or why a job failed or was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Number of nodes.
    pub count: usize,
    /// Processes by rank; for a queued job the nodes that it names.
    pub ranks: Vec<RankStatus>,
    /// Bytes that each node may register; the memory of the node if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Longest time from start to end, in nanoseconds.
    pub time_max_ns: u64,
    /// Time of the submission.
    pub submitted_ns: u64,
    /// Time of the start; absent before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_ns: Option<u64>,
    /// Time at which its nodes became free; absent before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_ns: Option<u64>,
}

/// Account of a tenant, over all its jobs that have started.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct TenantAccount {
    /// Number of the tenant.
    pub tenant: u16,
    /// Number of jobs that have started.
    pub jobs: u64,
    /// Sum over its jobs and their nodes of the time from the job's start to its end, in nanoseconds.
    pub node_time_ns: u64,
    /// Sum of the bytes of its jobs ([`RankStatus::bytes`]).
    pub bytes: u64,
    /// Most bytes that all its nodes had registered at one time. Values of nodes are read once per second.
    pub memory_high_bytes: u64,
}

/// Use of a node by jobs.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct JobNode {
    /// Name of the node.
    pub name: String,
    /// Tenant of the node.
    pub tenant: u16,
    /// `free`, `job`, `held` (a process that is of no job holds the seat) or `spare` (not added yet).
    pub state: String,
    /// Job on the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<u64>,
}

/// Jobs, accounts and nodes of a rack.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct JobList {
    /// Jobs by number: all that have not ended, and the latest that have.
    pub jobs: Vec<JobStatus>,
    /// Accounts by tenant.
    pub tenants: Vec<TenantAccount>,
    /// GPU nodes of this host, in the plan's order.
    pub nodes: Vec<JobNode>,
}
