//! Everything from which supervisor and seats build the same plan: the text of the rack file, and the options that replace its values.
//!
//! Seats receive the text and not a path: the file may change while the rack starts. Arrays are too large for that; seats open
//! them again.

use std::path::PathBuf;

use rackloom_plan::{Sizes, WireKind};
use rackloom_protocol::RetransmissionMode;
use serde::{Deserialize, Serialize};

use crate::key::KeyLocation;

/// Request for a rack, as it crosses process boundaries.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Source {
    /// Name of the rack file, for messages.
    pub name: String,
    /// Text of the rack file.
    pub text: String,
    /// Search location of the rack's key.
    #[serde(default)]
    pub key: KeyLocation,
    /// Command line that named the file.
    #[serde(default)]
    pub command: String,
    /// Values that replace those of the rack file.
    pub overrides: Overrides,
    /// Wire, instead of the file's.
    pub wire: Option<Wire>,
    /// True if all data goes in frames.
    #[serde(default)]
    pub force_wire: bool,
    /// Host of which the members are started; all members if absent.
    #[serde(default)]
    pub host: Option<String>,
    /// True if the members' network namespaces get names for `ip netns`.
    #[serde(default)]
    pub netns_names: bool,
    /// Name of the rack, if it is not the file's.
    pub rack: Option<String>,
    /// Directories of the user's arrays and of the results.
    pub arrays: ArrayOptions,
    /// Captures of frames.
    #[serde(default)]
    pub capture: CaptureOptions,
    /// Fault script.
    #[serde(default)]
    pub faults: Option<FaultFile>,
    /// Snapshots to save and to restore.
    #[serde(default)]
    pub snapshots: SnapshotOrders,
}

/// Fault script, as text for the same reasons as the rack file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct FaultFile {
    /// Name of the file, for messages.
    pub name: String,
    /// Text of the file.
    pub text: String,
}

/// Values that replace those of the rack file. Members receive them with the text of the file, so that all build the same plan.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Overrides {
    /// The job.
    pub job: JobOptions,
    /// Assignments `KEY=VALUE` to keys of the rack file. They are applied to its text.
    #[serde(skip)]
    pub set: Vec<String>,
    /// Seed of the job's data and of every random fault.
    pub seed: Option<u64>,
    /// Retransmission of lost packets, end to end.
    pub transport: Option<Transport>,
    /// Link-level retry on every link.
    pub llr: Option<OnOff>,
    /// Share of frames lost on every link, from 0 to 1.
    pub loss: Option<f64>,
    /// Share of frames in which a bit is flipped, from 0 to 1.
    pub corrupt: Option<f64>,
    /// Share of frames that arrive twice, from 0 to 1.
    pub duplicate: Option<f64>,
    /// Share of frames that arrive after a later frame, from 0 to 1.
    pub reorder: Option<f64>,
    /// Payload mode of long transfers. It applies to virtual time only.
    #[serde(default)]
    pub payload: Option<String>,
}

/// Values that replace those of the rack file's job.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct JobOptions {
    /// Kind of job.
    pub job: Option<Job>,
    /// Name of the collective.
    pub collective: Option<String>,
    /// Name of the reduction operator.
    pub op: Option<String>,
    /// Name of the type of one element.
    pub element: Option<String>,
    /// Names of the collective's algorithms.
    pub algorithm: Option<Vec<String>>,
    /// Name of the collective's root node.
    pub root: Option<String>,
    /// Name of a collective's reaction to lost ranks.
    pub on_loss: Option<String>,
    /// Name of the traffic pattern.
    pub pattern: Option<String>,
    /// Number of messages of each flow.
    pub messages: Option<u32>,
    /// Size of the array or of one message, in bytes.
    pub bytes: Option<u64>,
    /// Range of sizes.
    pub sizes: Option<SizeRange>,
    /// Number of measured runs of each size.
    pub repetitions: Option<u32>,
    /// Number of runs of each size before the measured ones.
    pub warm_up: Option<u32>,
}

/// Kinds of jobs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Job {
    /// Every kind of operation between every ordered pair of nodes.
    Litmus,
    /// One collective over all nodes.
    Collective,
    /// Latency of single operations.
    Latency,
    /// Bandwidth of many operations.
    Bandwidth,
    /// Many concurrent messages between the nodes of a pattern.
    Traffic,
    /// No job.
    None,
}

/// Range of sizes that grow by a factor.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct SizeRange {
    /// Smallest size, in bytes.
    pub from_bytes: u64,
    /// Largest size, in bytes.
    pub to_bytes: u64,
    /// Ratio of one size to the previous one.
    pub factor: u32,
}

/// Directories of arrays in files.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ArrayOptions {
    /// Directory of the ranks' arrays.
    pub input: Option<PathBuf>,
    /// Directory of the ranks' results.
    pub output: Option<PathBuf>,
}

/// Captures of frames.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CaptureOptions {
    /// Directory of the captures; no captures if absent.
    pub directory: Option<PathBuf>,
    /// Largest capture of one link, in bytes.
    pub bytes_max: Option<u64>,
}

/// Snapshots that seats save and restore.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct SnapshotOrders {
    /// Directory to which snapshots are saved, and number of runs between two of them.
    pub save: Option<(PathBuf, u32)>,
    /// Directory of the snapshots to restore, and their identity.
    pub restore: Option<(PathBuf, SnapshotSet)>,
}

/// A set of snapshots, one of each rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SnapshotSet {
    /// Number of runs of the collective that were complete.
    pub number: u64,
    /// Number of times that the job had been restored, plus one.
    pub epoch: u64,
}

/// Transport of the frames between members.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// Rings in shared memory that carry whole Ethernet frames.
    SharedMemory,
    /// Raw Ethernet frames over virtual interfaces in network namespaces.
    Packet,
    /// Ethernet frames in UDP datagrams.
    Udp,
}

/// Retransmission of lost packets, end to end.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// The receiver accepts packets in order only.
    GoBackN,
    /// Only missing packets are retransmitted.
    Selective,
}

/// A feature that is switched on or off.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnOff {
    /// Switched on.
    On,
    /// Switched off.
    Off,
}

impl From<SizeRange> for Sizes {
    fn from(SizeRange { from_bytes, to_bytes, factor }: SizeRange) -> Self {
        Self { from_bytes, to_bytes, factor }
    }
}

impl From<Wire> for WireKind {
    fn from(wire: Wire) -> Self {
        match wire {
            Wire::SharedMemory => Self::SharedMemory,
            Wire::Packet => Self::Packet,
            Wire::Udp => Self::Udp,
        }
    }
}

impl From<Transport> for RetransmissionMode {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::GoBackN => Self::GoBackN,
            Transport::Selective => Self::Selective,
        }
    }
}
