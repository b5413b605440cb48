//! Options of racks of processes. A program that uses this crate fills them in; the command does so from its
//! arguments.

use std::net::SocketAddr;
use std::path::PathBuf;

use rackloom_control::recorder::Recording;
use rackloom_control::source::{ArrayOptions, CaptureOptions, Overrides, WorkloadFile};
use rackloom_plan::WireKind;

/// Options of racks of processes, for one job and for standing racks.
#[derive(Clone, Debug, Default)]
pub struct ProcessOptions {
    /// Wire that carries the frames; that of the rack file if absent.
    pub wire: Option<WireKind>,
    /// True if all data goes in frames: GPU nodes of one server do not map each other's memory.
    pub force_wire: bool,
    /// Host whose members are started; all members if absent.
    pub host: Option<String>,
    /// True if the members' network namespaces get names for `ip netns`.
    pub netns_names: bool,
    /// Path of the fault script.
    pub faults: Option<PathBuf>,
    /// Arrays in files.
    pub arrays: ArrayOptions,
    /// Captures of frames.
    pub capture: CaptureOptions,
    /// Time series and operations that are recorded.
    pub recording: Recording,
}

/// Snapshots of a collective job.
#[derive(Clone, Debug, Default)]
pub struct CheckpointOptions {
    /// Directory to which snapshots are saved.
    pub checkpoint: Option<PathBuf>,
    /// Number of runs of the collective between two snapshots; 1 if absent.
    pub every: Option<u32>,
    /// Directory from which the newest complete set of snapshots is restored.
    pub restore: Option<PathBuf>,
}

/// Logs of supervisor and members.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// Directory with one log file per member; standard error if absent.
    pub directory: Option<PathBuf>,
    /// Level, such as `info`; the members' default if absent.
    pub level: Option<String>,
}

/// Options of a rack for the length of one job.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Path of the rack file.
    pub file: PathBuf,
    /// Values that replace those of the rack file.
    pub overrides: Overrides,
    /// Processes, wires, faults, arrays and captures.
    pub processes: ProcessOptions,
    /// Snapshots.
    pub checkpoints: CheckpointOptions,
    /// Workload that is performed instead of the job of the rack file.
    pub workload: Option<WorkloadFile>,
    /// Logs.
    pub logs: LogOptions,
    /// Command line for the report.
    pub command: String,
}

/// Options of a standing rack.
#[derive(Clone, Debug, Default)]
pub struct UpOptions {
    /// Path of the rack file.
    pub file: PathBuf,
    /// Name of the rack; that of the rack file if absent.
    pub name: Option<String>,
    /// Names of the members whose seats stay vacant, for other processes.
    pub vacant: Vec<String>,
    /// Names of the GPU nodes whose seats stay vacant and that submitted jobs cannot use before they are added.
    pub spare: Vec<String>,
    /// True if the seats of all GPU nodes stay vacant, for programs.
    pub for_programs: bool,
    /// Number of process seats of each GPU node of a rack for programs; that of the rack file if absent.
    pub process_seats: Option<u16>,
    /// Values that replace those of the rack file. Without a job here the rack runs no job.
    pub overrides: Overrides,
    /// Processes, wires, faults, arrays and captures.
    pub processes: ProcessOptions,
    /// Address at which metrics are served over HTTP; none if absent.
    pub metrics: Option<SocketAddr>,
    /// Logs. Without a directory they go to the rack's run directory.
    pub logs: LogOptions,
    /// Command line for the report.
    pub command: String,
}
