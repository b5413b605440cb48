//! The command line, as types. What it says goes before what the rack file says ([`Overrides`]).
//!
//! Nothing here reads a file or judges a plan.

mod campaign;
mod complaint;
mod experiment;
mod inject;
mod job;
mod plan;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

pub(crate) use self::campaign::{CampaignArguments, Engine};
pub(crate) use self::complaint::parse;
pub(crate) use self::experiment::ExperimentArguments;
pub(crate) use self::inject::{InjectArguments, Injected};
pub(crate) use self::job::{ArrayOptions, Job, JobOptions, size};
pub(crate) use self::plan::PlanArguments;

use crate::calibrate::RawLoop;
use crate::capture::CaptureOptions;
use crate::exit::Exit;

/// Run an Ethernet-based scale-up GPU fabric, as real processes or in virtual time.
#[derive(Debug, Parser)]
#[command(name = "rackloom", version, after_help = Exit::help(), max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a rack: one process per node and switch, real memory, real frames
    #[command(after_help = Exit::help())]
    Run(RunArguments),
    /// Run the same rack in virtual time: one seed, one outcome
    #[command(after_help = Exit::help())]
    Sim(SimArguments),
    /// Run many drawn fault scripts against a rack, in virtual time or on processes, and make small what fails
    #[command(after_help = Exit::help())]
    Campaign(CampaignArguments),
    /// Print the plan of a rack file, or every mistake in it
    #[command(after_help = Exit::help())]
    Check(CheckArguments),
    /// Print the schedule of a rack's collective: who sends what to whom, and when
    #[command(after_help = Exit::help())]
    Plan(PlanArguments),
    /// Print what a capture holds, one line per frame
    #[command(after_help = Exit::help())]
    Decode(DecodeArguments),
    /// Print a JSON schema of rack files, fault scripts or reports
    Schema(SchemaArguments),
    /// Start a rack in the background; it stays until `down`
    #[command(after_help = Exit::help())]
    Up(UpArguments),
    /// Show the racks that are up: members, traffic and losses of links, live paths, active faults
    ///
    /// Rates are means over about 200 ms: the command reads all counters twice and divides the difference by the time between. Losses count
    /// from the start. A dash stands for a member that did not answer within half a second.
    #[command(after_help = Exit::help())]
    Status(StatusArguments),
    /// Let faults befall a rack that is up
    #[command(after_help = Exit::help())]
    Inject(InjectArguments),
    /// End a rack that is up
    #[command(after_help = Exit::help())]
    Down(DownArguments),
    /// Measure how far we are from what this machine can do
    #[command(after_help = Exit::help())]
    Calibrate(CalibrateArguments),
    /// Run named experiments in virtual time, each beside the closed form that it must meet
    #[command(after_help = Exit::help())]
    Experiment(ExperimentArguments),
    /// What this machine's GPUs can do
    #[command(after_help = Exit::help())]
    Gpu(GpuArguments),
    /// One take of a raw loop; started by `calibrate`
    #[command(hide = true)]
    CalibrateLoop(LoopArguments),
    /// One member of a rack; started by `run` and `up`, or by hand for a vacant seat
    #[command(hide = true)]
    Seat(SeatArguments),
    /// The supervisor of a rack that stays; started by `up`
    #[command(hide = true)]
    Keep,
    /// Wait for the end of standard input, then take away what the process that had it has named; started with `--netns-names`
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
    /// List devices, who reaches whose memory, and how memory can be shared
    #[command(after_help = Exit::help())]
    Info {
        /// Print JSON instead of tables
        #[arg(long)]
        json: bool,
    },
}

/// What a rack of processes is asked beyond its file, whether it ends by itself or stays.
#[derive(Debug, Args)]
pub(crate) struct Processes {
    /// What carries the frames
    #[arg(long, value_enum)]
    pub(crate) wire: Option<Wire>,
    /// Send everything in frames: GPU nodes of one server do not map each other's memory
    #[arg(long)]
    pub(crate) force_wire: bool,
    /// Start only what this host runs, as `hosts` of the file says; the other hosts do the same for theirs
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Name the members' network namespaces, so that `ip netns` shows them: on the packet wire, as root
    #[arg(long)]
    pub(crate) netns_names: bool,
    #[command(flatten)]
    pub(crate) faults: FaultOptions,
    #[command(flatten)]
    pub(crate) arrays: ArrayOptions,
    #[command(flatten)]
    pub(crate) capture: CaptureOptions,
}

/// Snapshots of a collective job.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CheckpointOptions {
    /// Save snapshots of the collective in this directory, from which a later run can go on
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Save after every so many runs of the collective, in place of each
    #[arg(long, value_name = "N", requires = "checkpoint", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) every: Option<u32>,
    /// Go on from the newest whole set of snapshots in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) restore: Option<PathBuf>,
}

/// What shall befall the rack.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FaultOptions {
    /// A fault script: what befalls the rack, when, and what must come of it
    #[arg(long, value_name = "FILE")]
    pub(crate) faults: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The rack file
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[command(flatten)]
    pub(crate) processes: Processes,
    #[command(flatten)]
    pub(crate) checkpoints: CheckpointOptions,
    #[command(flatten)]
    pub(crate) output: Output,
    /// Once all links are up, write who runs where (names and process ids) to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) pids: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) logging: Logging,
}

#[derive(Debug, Args)]
pub(crate) struct UpArguments {
    /// The rack file
    pub(crate) file: PathBuf,
    /// Name of the rack, in place of the file's
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// GPU nodes and switches whose seats are left for other processes to take
    #[arg(long, value_name = "MEMBER,...", value_delimiter = ',')]
    pub(crate) vacant: Vec<String>,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[command(flatten)]
    pub(crate) processes: Processes,
    #[command(flatten)]
    pub(crate) logging: Logging,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Name of the rack; all racks if absent
    pub(crate) name: Option<String>,
    /// Print JSON instead of tables, with everything that they show
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DownArguments {
    /// Name of the rack; may be absent if only one is up
    pub(crate) name: Option<String>,
    /// Every rack that is up
    #[arg(long, conflicts_with = "name")]
    pub(crate) all: bool,
    /// Only this member, which leaves in order; the rack stays, and the seat can be taken again
    #[arg(long, value_name = "MEMBER", conflicts_with_all = ["all", "json"])]
    pub(crate) seat: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateArguments {
    /// Only these rows, by the names that the table has
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Alternations between a raw loop and our own run; 5 if absent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// Try the machinery with takes too short to mean anything
    #[arg(long)]
    pub(crate) quick: bool,
    /// Instead of the rows, find the sizes at which bytes should take another way on this device (`cuda:0` if none is named), and keep them
    /// for every later node on it
    #[arg(long, value_name = "DEVICE", num_args = 0..=1, default_missing_value = "cuda:0", conflicts_with_all = ["only", "rounds", "quick"])]
    pub(crate) gpu: Option<String>,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LoopArguments {
    /// Which loop
    #[arg(value_enum)]
    pub(crate) what: RawLoop,
    /// How many records, frames or turns
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: u64,
}

#[derive(Debug, Args)]
pub(crate) struct SeatArguments {
    /// Take a vacant seat of a rack that is up
    #[arg(long, value_name = "RACK/SEAT")]
    pub(crate) join: Option<String>,
}

/// What is said off the hot path, and where.
#[derive(Debug, Args)]
pub(crate) struct Logging {
    /// Write what each member logs to a file of its own in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) log_dir: Option<PathBuf>,
    /// Log more: links and losses (-v), paths (-vv)
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl Logging {
    /// What the command line says about how much is logged; nothing if it says nothing.
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
    /// What becomes of the bytes of long transfers: moved, fingerprints in their place, or nothing
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(rackloom_plan::PayloadMode::NAMES))]
    pub(crate) payload: Option<String>,
    /// Play a trace in place of the file's job: lines of time, source, destination, bytes, kind, as comma-separated values
    #[arg(long, value_name = "FILE", conflicts_with_all = ["job", "collective", "pattern", "input", "output"])]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) faults: FaultOptions,
    #[command(flatten)]
    pub(crate) arrays: ArrayOptions,
    #[command(flatten)]
    pub(crate) capture: CaptureOptions,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What to show of a capture.
#[derive(Debug, Args)]
pub(crate) struct DecodeArguments {
    /// The capture: a pcapng file that --capture or Wireshark wrote
    pub(crate) file: PathBuf,
    /// One JSON object per frame
    #[arg(long)]
    pub(crate) json: bool,
    /// Only frames that this member sends, gets or passes on over this link
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,
    /// Only frames of this kind (data, ack, hello, heartbeat, report, credit, link-ack, ...), or that hold such an operation (store, get, ...)
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(crate::decode::kinds()), hide_possible_values = true)]
    pub(crate) kind: Option<String>,
    /// Stop after so many frames that are shown
    #[arg(long, value_name = "N")]
    pub(crate) first: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The rack file
    pub(crate) file: PathBuf,
    /// Another value for any key of the file, such as link.loss=1%; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct SchemaArguments {
    /// Of which files
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
}

#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Also write the report as JSON; "-" is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl Output {
    /// Whether standard output belongs to the JSON report.
    pub(crate) fn json_on_stdout(&self) -> bool {
        self.json.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }
}

/// What the command line says instead of the file. Seats get it beside the file's text, so they build the same plan.
#[derive(Args, Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Overrides {
    #[command(flatten)]
    pub(crate) job: JobOptions,
    /// Another value for any key of the file, such as link.loss=1% or timers.heartbeat_interval=5ms; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    #[serde(skip)]
    pub(crate) set: Vec<String>,
    /// Seed of the job's data and of every injected fault
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How lost packets are sent again
    #[arg(long, value_enum)]
    pub(crate) transport: Option<Transport>,
    /// Link-level retry on every link: whether links repeat what they lose
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true)]
    pub(crate) llr: Option<OnOff>,
    /// Share of frames lost on every link, such as 0.01 or 1%
    #[arg(long, value_name = "P", value_parser = share)]
    pub(crate) loss: Option<f64>,
    /// Share of frames with a flipped bit
    #[arg(long, value_name = "P", value_parser = share)]
    pub(crate) corrupt: Option<f64>,
    /// Share of frames that arrive twice
    #[arg(long, value_name = "P", value_parser = share)]
    pub(crate) duplicate: Option<f64>,
    /// Share of frames that arrive after a later one
    #[arg(long, value_name = "P", value_parser = share)]
    pub(crate) reorder: Option<f64>,
    /// What becomes of payloads; virtual time alone has the choice.
    #[arg(skip)]
    #[serde(default)]
    pub(crate) payload: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Wire {
    /// Rings in shared memory that carry whole Ethernet frames
    SharedMemory,
    /// Raw Ethernet frames over virtual interfaces in namespaces of the run's own
    Packet,
    /// The same frames in UDP datagrams over the loopback interface; no root, no namespaces
    Udp,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Transport {
    /// The receiver takes packets in order only; a hole re-sends everything after it
    GoBackN,
    /// Only the hole is sent again
    Selective,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OnOff {
    On,
    Off,
}

/// A share between 0 and 1, as a fraction or in per cent.
fn share(text: &str) -> Result<f64, String> {
    let (number, divisor) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let value = number
        .parse::<f64>()
        .map_err(|_| "not a number; hint: write a share such as 0.01 or 1%".to_owned())?
        / divisor;
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err("not between 0 and 1; hint: write a share such as 0.01 or 1%".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn a_share_is_a_fraction_or_per_cent() {
        assert_eq!(share("0.25"), Ok(0.25));
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("100 %"), Ok(1.0));
        for bad in ["", "%", "1.5", "-1%", "nan", "inf", "one"] {
            assert!(share(bad).is_err(), "{bad:?} was taken");
        }
    }
}
