//! Types of the command line. Options take precedence over the rack file ([`Overrides`]).
//!
//! Doc comments of arguments are the help texts. No code here reads a file or checks a plan.

mod campaign;
mod capture;
mod complaint;
mod declared;
mod diff;
mod exec;
mod experiment;
mod graph;
mod headings;
mod inject;
mod job;
mod options;
mod output;
mod overrides;
mod recommend;
mod recording;
mod report;
mod schedule;
mod scripted;
mod shell;
mod submitted;
mod sweep;
mod workload;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use rackloom_plan::{PayloadMode, WireKind};

pub(crate) use self::campaign::{CampaignArguments, Engine, Failing, PartKind};
pub(crate) use self::capture::{CaptureArguments, ExtcapArguments};
pub(crate) use self::complaint::{parse, sim_arguments};
use self::declared::{meaning, named, summary};
pub(crate) use self::diff::DiffArguments;
pub(crate) use self::exec::{EnvArguments, ExecArguments, Net};
pub(crate) use self::experiment::ExperimentArguments;
pub(crate) use self::graph::{GraphArguments, GraphFormat};
use self::headings::{DATA, LINKS, OUTPUT, WHAT};
pub(crate) use self::inject::{InjectArguments, Injected};
pub(crate) use self::job::ArrayOptions;
pub(crate) use self::options::{command_line, command_line_with, passed_on};
use self::output::{NAME_A_DIRECTORY, NAME_A_FILE, file_beside};
pub(crate) use self::output::{Output, PageOutput};
pub(crate) use self::overrides::Overrides;
pub(crate) use self::recommend::{RecommendArguments, ShapeName, Target};
pub(crate) use self::recording::{RecordingOptions, look_interval};
pub(crate) use self::report::ReportArguments;
pub(crate) use self::schedule::ScheduleArguments;
use self::scripted::FaultOptions;
pub(crate) use self::shell::{CompletionsArguments, InitArguments, ManArguments};
pub(crate) use self::submitted::{
    AddNodeArguments, CancelArguments, JobArguments, JobCommand, ListArguments, SubmitArguments,
};
pub(crate) use self::sweep::{IMAGE, Share, SweepArguments, SweepEngine, VOLUME_CLAIM};
pub(crate) use self::workload::{
    CheckWorkloadArguments, Compute, DegreeOptions, GenerateArguments, Generated, GivenModel,
    ImportArguments, WorkloadArguments, WorkloadCommand, WorkloadOptions,
};
use crate::exit;

/// Exit codes in the help of `exec`.
const EXEC_EXITS: &str = "The exit code is that of the program, 127 if it is not found, and 126 if it cannot be run. With --seats it is that of the first \
                          seat whose program failed, and 128 + N for a program that signal N ended. Before a program has started, it is one of those that \
                          `rackloom --help` lists.";
/// Last line of the help of each command.
const EXITS: &str = "`rackloom --help` lists the exit codes.";

/// Emulate an Ethernet-based scale-up GPU fabric, as real processes or in virtual time.
#[derive(Debug, Parser)]
#[command(name = "rackloom", version = rackloom_runtime::outcome::meta::version(), after_help = exit::help(), max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a rack as processes: one per GPU node and switch, with real memory and real frames
    #[command(after_help = EXITS)]
    Run(RunArguments),
    /// Run a rack in virtual time; one seed gives one outcome
    #[command(after_help = EXITS)]
    Sim(SimArguments),
    /// Run many random fault scripts against a rack, and reduce each script that fails to its smallest form
    ///
    /// Runs perform the job of the rack file or of the options. Workloads and traces are for `sim` and `sweep`.
    #[command(after_help = EXITS)]
    Campaign(CampaignArguments),
    /// Run a rack in virtual time at every point of a grid of values, in parallel; resumable
    #[command(
        after_help = sweep::EXITS,
        mut_arg("set", |option| option.value_name("KEY=A,B,...").help(sweep::SET).long_help(sweep::SET)),
        mut_arg("algorithm", |option| option.help(sweep::ALGORITHM).long_help(sweep::ALGORITHM))
    )]
    Sweep(SweepArguments),
    /// Search for the largest rack whose collective reaches a bus bandwidth: estimates first, then simulations of the best
    #[command(after_help = recommend::EXITS)]
    Recommend(RecommendArguments),
    /// Check a rack file: print the resolved rack, or every mistake in the file
    #[command(after_help = EXITS)]
    Check(CheckArguments),
    /// Draw a rack: members and links, and with a report of a run their use and faults
    #[command(after_help = EXITS)]
    Graph(GraphArguments),
    /// Show the JSON report of a run: print its tables again, or write it as an HTML page
    #[command(after_help = EXITS)]
    Report(ReportArguments),
    /// Compare the reports of two runs, or of repeated runs: what changed, what is noise, and what is worse by more than a threshold
    #[command(after_help = EXITS)]
    Diff(DiffArguments),
    /// Print the schedule of a collective: which rank sends which part to which rank, step by step
    #[command(alias = "plan", after_help = EXITS)]
    Schedule(ScheduleArguments),
    /// Generate, import and check workloads: graphs of computations, messages and collectives
    Workload(WorkloadArguments),
    /// Print the frames of a capture, one line per frame
    #[command(after_help = EXITS)]
    Decode(DecodeArguments),
    /// Write the frames of a link of a rack that is up, as they are recorded, until Ctrl-C or the end of the rack
    #[command(after_help = EXITS)]
    Capture(CaptureArguments),
    /// Answer Wireshark, which shows links of racks that are up as interfaces
    #[command(after_help = EXITS)]
    Extcap(ExtcapArguments),
    /// Print a JSON schema of rack files, fault scripts, reports, or results of campaigns and searches
    Schema(SchemaArguments),
    /// Start a rack in the background; it stays up until `rackloom down`
    #[command(after_help = EXITS)]
    Up(UpArguments),
    /// Show racks that are up: members, traffic and losses of links, live paths, active faults
    ///
    /// Rates are means over about 200 ms: the command reads all counters twice and divides the difference by the time between. Losses count
    /// from the start of the rack. A dash stands for a member that did not answer within half a second.
    #[command(after_help = EXITS)]
    Status(StatusArguments),
    /// Watch a rack that is up in the whole terminal: links, members, faults and events; with keys to inject and to heal faults
    #[command(after_help = EXITS)]
    Top(TopArguments),
    /// Print events of a rack that is up: links that change, nodes that are lost, faults that begin and end
    ///
    /// Prints the latest events and ends; with --follow it goes on until the rack ends.
    #[command(after_help = EXITS)]
    Events(EventsArguments),
    /// Inject faults into a rack that is up
    #[command(after_help = EXITS)]
    Inject(InjectArguments),
    /// End all faults of a rack that is up, those that are still to come included
    ///
    /// Members that are dead stay dead, and revoked keys stay revoked. A member that a fault has stopped continues when the time of that fault is over.
    #[command(after_help = EXITS)]
    Heal(HealArguments),
    /// Run jobs on a rack that is up: submit, list, cancel
    Job(JobArguments),
    /// Run a program on a vacant seat of a rack that is up: the program is the GPU node
    ///
    /// An agent takes the seat and runs the node; this process becomes the program, with its process id, terminal and exit code. The seat is free
    /// again when the program has ended.
    #[command(after_help = EXEC_EXITS)]
    Exec(ExecArguments),
    /// Print the environment of a program on a seat, for a shell
    #[command(after_help = EXITS)]
    Env(EnvArguments),
    /// Take a rack down and print its report
    #[command(after_help = EXITS)]
    Down(DownArguments),
    /// Check how fast this machine is, or find the sizes at which a GPU should use another path
    #[command(after_help = EXITS)]
    Calibrate(CalibrateArguments),
    /// Run experiments in virtual time and compare each with its closed form
    #[command(after_help = EXITS)]
    Experiment(ExperimentArguments),
    /// Show the GPUs of this machine
    #[command(after_help = EXITS)]
    Gpu(GpuArguments),
    /// Write a rack file or a fault script to start from
    #[command(after_help = EXITS)]
    Init(InitArguments),
    /// Print the completions of a shell, with the names of racks that are up
    #[command(after_help = EXITS)]
    Completions(CompletionsArguments),
    /// Print the manual page, or write the pages of all commands
    #[command(after_help = EXITS)]
    Man(ManArguments),
    /// Take a vacant seat of a rack that is up, in this process
    ///
    /// Without `--join`, the command reads its start order from a socket that `run` and `up` pass to their members.
    #[command(after_help = EXITS)]
    Seat(SeatArguments),
    /// Run the supervisor of a rack that stays up; started by `up`
    #[command(hide = true)]
    Keep,
    /// Run the node of a seat beside the program that holds it; started by `exec`
    #[command(hide = true)]
    Agent {
        /// This process is the agent and does not start another one
        #[arg(long)]
        detached: bool,
    },
    /// Wait for the end of standard input, then remove the names of network namespaces; started with `--netns-names`
    #[command(hide = true)]
    SweepNames,
}

#[derive(Debug, Args)]
pub(crate) struct GpuArguments {
    #[command(subcommand)]
    pub(crate) command: GpuCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GpuCommand {
    /// List devices, which pairs reach each other's memory, and how memory can be shared
    #[command(after_help = EXITS)]
    Info {
        /// Print JSON instead of tables
        #[arg(long)]
        json: bool,
    },
}

/// Options of racks of processes, for `run` and `up`.
#[derive(Debug, Args)]
pub(crate) struct Processes {
    #[arg(
        long, help_heading = LINKS, value_name = "WIRE", value_parser = named::<WireKind>(),
        help = summary("wire"), long_help = meaning("wire")
    )]
    pub(crate) wire: Option<WireKind>,
    /// Send all data in frames: GPU nodes of one server do not map each other's memory
    #[arg(long, help_heading = LINKS)]
    pub(crate) force_wire: bool,
    /// Start only the members of this host, as listed under `hosts` in the rack file
    #[arg(long, value_name = "HOST", help_heading = LINKS)]
    pub(crate) host: Option<String>,
    /// Name the members' network namespaces, so that `ip netns` shows them; needs root and the packet wire
    #[arg(long, help_heading = LINKS)]
    pub(crate) netns_names: bool,
    #[command(flatten)]
    pub(crate) faults: FaultOptions,
    #[command(flatten)]
    pub(crate) arrays: ArrayOptions,
    #[command(flatten)]
    pub(crate) capture: CaptureOptions,
}

/// Options of captures.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CaptureOptions {
    /// Write the frames of each link to a pcapng file in this directory
    #[arg(long = "capture", help_heading = OUTPUT, value_name = "DIR", value_parser = file_beside(NAME_A_DIRECTORY))]
    pub(crate) directory: Option<PathBuf>,
    /// Largest capture of one link; 64MiB if absent
    #[arg(long = "capture-bytes", help_heading = OUTPUT, value_name = "SIZE", value_parser = capture_bytes_max, requires = "directory")]
    pub(crate) bytes_max: Option<u64>,
}

/// Parses the largest size of a capture.
fn capture_bytes_max(text: &str) -> Result<u64, String> {
    let least = rackloom_capture::recorder::BYTES_MIN;
    let bytes_max = job::size(text)?;
    if bytes_max < least {
        Err(format!("a capture needs {}KiB at least", least >> 10))
    } else {
        Ok(bytes_max)
    }
}

/// Snapshots of a collective job.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CheckpointOptions {
    /// Save snapshots of the collective in this directory; a later run can continue from them
    #[arg(long, value_name = "DIR", help_heading = DATA, value_parser = file_beside(NAME_A_DIRECTORY))]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Save a snapshot after every N runs of the collective, instead of after each
    #[arg(long, value_name = "N", help_heading = DATA, requires = "checkpoint", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) every: Option<u32>,
    /// Continue from the newest complete set of snapshots in this directory
    #[arg(long, value_name = "DIR", help_heading = DATA)]
    pub(crate) restore: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The rack file
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[command(flatten)]
    pub(crate) workload: WorkloadOptions,
    /// Computations of a workload: a node waits for their end, as without the option, or keeps a processor busy
    #[arg(long, value_name = "HOW", help_heading = WHAT, value_enum)]
    pub(crate) compute: Option<Compute>,
    #[command(flatten)]
    pub(crate) processes: Processes,
    #[command(flatten)]
    pub(crate) checkpoints: CheckpointOptions,
    #[command(flatten)]
    pub(crate) recording: RecordingOptions,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) page: PageOutput,
    /// When all links are up, write the names and process ids of all members to this file
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, value_parser = file_beside(NAME_A_FILE))]
    pub(crate) pids: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) logging: Logging,
}

/// Options of `rackloom heal`.
#[derive(Debug, Args)]
pub(crate) struct HealArguments {
    /// Name of the rack; may be absent if only one is up
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct UpArguments {
    /// The rack file
    pub(crate) file: PathBuf,
    /// Name of the rack, instead of the file's
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// GPU nodes and switches whose seats stay free for other processes
    #[arg(long, value_name = "MEMBER,...", value_delimiter = ',')]
    pub(crate) vacant: Vec<String>,
    /// GPU nodes whose seats stay free as with --vacant, and that jobs use only after `rackloom job add-node`
    #[arg(long, value_name = "NODE,...", value_delimiter = ',')]
    pub(crate) spare: Vec<String>,
    /// Leave the seats of all GPU nodes free for programs (`rackloom exec`)
    #[arg(long, value_name = "WHOSE")]
    pub(crate) seats: Option<Seats>,
    /// Process seats of each GPU node, for processes of its program that are endpoints of their own [default: `processes` of the file, or 4]
    #[arg(long = "processes", value_name = "N", requires = "seats", value_parser = clap::value_parser!(u16).range(0..=16))]
    pub(crate) process_seats: Option<u16>,
    /// Serve metrics for Prometheus at this address over HTTP, such as 127.0.0.1:9464; port 0 is any free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<std::net::SocketAddr>,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[command(flatten)]
    pub(crate) processes: Processes,
    #[command(flatten)]
    pub(crate) logging: Logging,
}

/// Holders of the seats of GPU nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Seats {
    /// Programs that `rackloom exec` starts
    Programs,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Name of the rack; all racks if absent
    pub(crate) name: Option<String>,
    /// Print JSON instead of tables, with the same content
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the status again after each interval of 10ms or more, until it is interrupted or no rack is up. JSON is then one line per status
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, default_missing_value = "1s", value_parser = look_interval)]
    pub(crate) watch: Option<u64>,
}

/// Options of `rackloom top`.
#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    /// Name of the rack; may be absent if only one is up
    pub(crate) name: Option<String>,
    /// Time between two looks at the rack, 10ms or more
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = look_interval)]
    pub(crate) interval: u64,
}

/// Options of `rackloom events`.
#[derive(Debug, Args)]
pub(crate) struct EventsArguments {
    /// Name of the rack; may be absent if only one is up
    pub(crate) name: Option<String>,
    /// Go on with events as they happen
    #[arg(long)]
    pub(crate) follow: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DownArguments {
    /// Name of the rack; may be absent if only one is up
    pub(crate) name: Option<String>,
    /// Take every rack down
    #[arg(long, conflicts_with = "name")]
    pub(crate) all: bool,
    /// Make only this member leave; the rack stays up, and the seat is vacant
    #[arg(long, value_name = "MEMBER", conflicts_with_all = ["all", "json"])]
    pub(crate) seat: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateArguments {
    /// Instead of the check, find the sizes at which this device (`cuda:0` if absent) should use another path for data, and store them for later
    /// runs on this machine
    #[arg(long, value_name = "DEVICE", num_args = 0..=1, default_missing_value = "cuda:0")]
    pub(crate) gpu: Option<String>,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SeatArguments {
    /// Take this vacant seat of a rack that is up
    #[arg(long, value_name = "RACK/SEAT")]
    pub(crate) join: Option<String>,
}

/// Options of logs.
#[derive(Debug, Args)]
pub(crate) struct Logging {
    /// Write each member's log to a file in this directory
    #[arg(long, value_name = "DIR", help_heading = OUTPUT, value_parser = file_beside(NAME_A_DIRECTORY))]
    pub(crate) log_dir: Option<PathBuf>,
    /// Log more: links and losses (-v), paths (-vv)
    #[arg(short, long, action = ArgAction::Count, help_heading = OUTPUT)]
    pub(crate) verbose: u8,
}

impl Logging {
    /// Returns the log level that the command line sets, or `None` if it sets none.
    pub(crate) fn level(&self) -> Option<&'static str> {
        match self.verbose {
            0 => None,
            1 => Some("info"),
            _ => Some("debug"),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SimArguments {
    /// The rack file
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[arg(
        long, help_heading = DATA, value_name = "MODE", value_parser = named::<PayloadMode>(),
        help = summary("payload"), long_help = meaning("payload")
    )]
    pub(crate) payload: Option<PayloadMode>,
    /// Replay a trace instead of the file's job; CSV with the columns time, source, destination, bytes, kind
    #[arg(long, value_name = "FILE", help_heading = WHAT, conflicts_with_all = ["job", "collective", "pattern", "input", "output", "files"])]
    pub(crate) trace: Option<PathBuf>,
    /// Number of threads that compute the members. The results do not depend on it. By default one, and from 512 members on one per processor
    #[arg(long, value_name = "NUMBER", help_heading = WHAT, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) threads: Option<u8>,
    #[command(flatten)]
    pub(crate) workload: WorkloadOptions,
    #[command(flatten)]
    pub(crate) faults: FaultOptions,
    #[command(flatten)]
    pub(crate) arrays: ArrayOptions,
    #[command(flatten)]
    pub(crate) capture: CaptureOptions,
    #[command(flatten)]
    pub(crate) recording: RecordingOptions,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) page: PageOutput,
}

/// Options of `rackloom decode`.
#[derive(Debug, Args)]
pub(crate) struct DecodeArguments {
    /// The capture: a pcapng file written by --capture or Wireshark, or a pcap file; `-` is standard input
    pub(crate) file: PathBuf,
    /// Print one JSON object per frame
    #[arg(long)]
    pub(crate) json: bool,
    /// Show only frames that this member sends, receives or forwards
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,
    /// Show only frames of this kind (data, ack, hello, heartbeat, report, credit, link-ack, ...) or with this operation (store, get, ...)
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(crate::decode::kinds()), hide_possible_values = true)]
    pub(crate) kind: Option<String>,
    /// Stop after N shown frames
    #[arg(long, value_name = "N")]
    pub(crate) first: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The rack file
    pub(crate) file: PathBuf,
    /// Replace the value of any key of the rack file, such as link.loss=1%; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct SchemaArguments {
    /// Kind of file
    #[arg(value_enum, default_value = "racks")]
    pub(crate) of: SchemaOf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// Rack files
    Racks,
    /// Fault scripts
    Faults,
    /// JSON reports of `run`, `sim` and `down`
    Report,
    /// JSON results of `campaign`
    Campaign,
    /// JSON results of `campaign --exhaustive`
    Exhaustive,
    /// JSON results of `recommend`
    Recommend,
    /// JSON results of `diff`
    Diff,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }
}
