//! Arguments of workloads: those of `rackloom workload`, and the options of `sim` and `run`.

use std::num::{IntErrorKind, ParseIntError};
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use rackloom_control::source::ComputeMode;
use rackloom_workloads::generate::{Model, Schedule};
use rackloom_workloads::import::Format;
use rackloom_workloads::{Machine, Rates};

use super::headings::{OUTPUT, WHAT};
use super::output::{NAME_A_FILE, file_beside};

/// Numbers of a model that are not named.
const MODEL_DEFAULT: Model = Model { layers: 32, hidden: 4096, sequence: 2048, batch: 1, vocabulary: 32_000 };
/// Heading of options about the division among ranks.
const DIVISION: &str = "Division among ranks";
/// Heading of options about the machine of a rank.
const MACHINE: &str = "Machine of a rank";

/// Workload in place of the job of the rack file.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct WorkloadOptions {
    /// Perform a workload instead of the file's job: a file of `rackloom workload`, or of another tool; repeat it for a trace in
    /// several files
    #[arg(
        long = "workload", value_name = "FILE", help_heading = WHAT,
        conflicts_with_all = ["job", "collective", "pattern", "input", "output"]
    )]
    pub(crate) files: Vec<PathBuf>,
}

/// Performance of computations on processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compute {
    /// The node waits; nodes may share processors
    #[default]
    Sleep,
    /// The node keeps a processor busy; needs a processor for each node
    Spin,
}

impl From<Compute> for ComputeMode {
    fn from(compute: Compute) -> Self {
        match compute {
            Compute::Sleep => Self::Sleep,
            Compute::Spin => Self::Spin,
        }
    }
}

/// Options of `rackloom workload`.
#[derive(Debug, Args)]
pub(crate) struct WorkloadArguments {
    #[command(subcommand)]
    pub(crate) command: WorkloadCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadCommand {
    /// Generate a training step or inference of a transformer
    #[command(after_help = super::EXITS)]
    Generate(GenerateArguments),
    /// Read files of other tools, and show or write the workload
    #[command(after_help = super::EXITS)]
    Import(ImportArguments),
    /// Check a workload: print its phases, or every mistake
    #[command(after_help = super::EXITS)]
    Check(CheckWorkloadArguments),
}

/// Kinds of workloads that are generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Generated {
    /// One training step, with any combination of data, tensor, pipeline and expert parallelism
    Training,
    /// Forward pass of all prompts, with tensor parallelism
    Prefill,
    /// Forward passes of one token after the other, with tensor parallelism
    Decode,
}

/// Options of `rackloom workload generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    /// Kind of workload
    #[arg(value_enum)]
    pub(crate) kind: Generated,
    /// Transformer: layers, width of the hidden state, tokens of a sequence, sequences of a micro-batch, tokens of the vocabulary. A number that
    /// is left out has its default, and a note says so
    #[arg(
        long, value_name = "NAME=N,...", default_value = "layers=32,hidden=4096,sequence=2048,batch=1,vocabulary=32000",
        value_parser = model
    )]
    pub(crate) model: GivenModel,
    #[command(flatten)]
    pub(crate) degrees: DegreeOptions,
    #[command(flatten)]
    pub(crate) machine: MachineOptions,
    /// Write the workload to this file
    #[arg(short = 'o', long, value_name = "FILE", help_heading = OUTPUT, value_parser = file_beside(NAME_A_FILE))]
    pub(crate) output: Option<PathBuf>,
}

/// Division of the work among ranks. The product of the degrees is the number of ranks.
#[derive(Args, Clone, Debug)]
pub(crate) struct DegreeOptions {
    /// Replicas that process different tokens and reduce gradients (training)
    #[arg(long = "dp", value_name = "N", default_value_t = 1, help_heading = DIVISION, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) data: u32,
    /// Ranks that divide each matrix and reduce the hidden state
    #[arg(long = "tp", value_name = "N", default_value_t = 1, help_heading = DIVISION, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) tensor: u32,
    /// Stages that hold different layers (training)
    #[arg(long = "pp", value_name = "N", default_value_t = 1, help_heading = DIVISION, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pipeline: u32,
    /// Ranks that hold different experts, between which tokens are exchanged (training)
    #[arg(long = "ep", value_name = "N", default_value_t = 1, help_heading = DIVISION, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) expert: u32,
    /// Micro-batches of one step (training)
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = DIVISION, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) micro_batches: u32,
    /// Order of the micro-batches in a stage (training)
    #[arg(
        long, value_name = "NAME", default_value = Schedule::OneForwardOneBackward.name(), help_heading = DIVISION,
        value_parser = PossibleValuesParser::new(Schedule::ALL.map(Schedule::name))
    )]
    pub(crate) schedule: String,
    /// Tokens that follow each prompt (decode)
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = DIVISION, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) tokens: u32,
}

/// Transformer of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GivenModel {
    /// Its numbers.
    pub(crate) model: Model,
    /// Numbers that were left out, with their defaults: `batch=1`.
    pub(crate) defaults: Vec<String>,
}

/// Parses the five numbers of a transformer, such as `layers=8,hidden=1024`. Numbers that are left out have defaults.
fn model(text: &str) -> Result<GivenModel, String> {
    let mut model = MODEL_DEFAULT;
    let mut given = Vec::new();
    for assignment in text.split(',') {
        let (name, value) = assignment.split_once('=').ok_or_else(|| {
            format!("`{assignment}` has no value; hint: write it as `layers=8,hidden=1024`")
        })?;
        let name = name.trim();
        if given.contains(&name) {
            return Err(format!("`{name}` is stated twice; hint: leave one of them out"));
        }
        let number = match name {
            "layers" => &mut model.layers,
            "hidden" => &mut model.hidden,
            "sequence" => &mut model.sequence,
            "batch" => &mut model.batch,
            "vocabulary" => &mut model.vocabulary,
            other => {
                let names = "layers, hidden, sequence, batch, vocabulary";
                return Err(format!("a model has no number `{other}`; hint: its numbers are {names}"));
            }
        };
        let value = value.trim();
        *number = value.parse().map_err(|error: ParseIntError| not_a_number(name, value, &error))?;
        given.push(name);
    }
    let Model { layers, hidden, sequence, batch, vocabulary } = MODEL_DEFAULT;
    let all = [
        ("layers", layers),
        ("hidden", hidden),
        ("sequence", sequence),
        ("batch", batch),
        ("vocabulary", vocabulary),
    ];
    let defaults = all.iter().filter(|(name, _)| !given.contains(name));
    Ok(GivenModel { model, defaults: defaults.map(|(name, number)| format!("{name}={number}")).collect() })
}

/// Returns the complaint about a value that is no number, or one that is far above the range.
fn not_a_number(name: &str, value: &str, error: &ParseIntError) -> String {
    let range = Model::RANGES.into_iter().find(|(of, _)| *of == name).map(|(_, range)| range);
    match (error.kind(), range) {
        (IntErrorKind::PosOverflow, Some(range)) => {
            format!("{name} is {value}; hint: write {} to {}", range.start(), range.end())
        }
        _ => format!("`{value}` is no whole number; hint: write `{name}=8`"),
    }
}

/// Parses a rate above zero.
fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err("a rate is a number above 0; hint: write one such as 500".to_owned()),
    }
}

/// Machine of each rank, for the durations of computations.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct MachineOptions {
    /// State computations by their work, in operations and bytes, instead of durations: the device of the rack gives the durations
    #[arg(long, conflicts_with_all = ["tflops", "memory_gbps", "launch_ns"], help_heading = MACHINE)]
    pub(crate) work: bool,
    /// Floating-point operations per second that a rank attains, in 10^12
    #[arg(long, value_name = "N", default_value_t = Rates::default().flops_per_s / 1e12, help_heading = MACHINE, value_parser = rate)]
    pub(crate) tflops: f64,
    /// Bandwidth between memory and processor that a rank attains, in GB/s
    #[arg(
        long = "memory-bandwidth", value_name = "N", default_value_t = Rates::default().memory_bytes_per_s / 1e9,
        help_heading = MACHINE, value_parser = rate
    )]
    pub(crate) memory_gbps: f64,
    /// Time of each computation beside its work, in nanoseconds
    #[arg(long, value_name = "N", default_value_t = Rates::default().launch_ns, help_heading = MACHINE)]
    pub(crate) launch_ns: u64,
    /// Bytes of one element of activations, parameters and gradients
    #[arg(long, value_name = "N", default_value_t = Machine::default().element_bytes, help_heading = MACHINE, value_parser = clap::value_parser!(u64).range(1..=16))]
    pub(crate) element_bytes: u64,
}

impl From<MachineOptions> for Machine {
    fn from(options: MachineOptions) -> Self {
        let MachineOptions { work, tflops, memory_gbps, launch_ns, element_bytes } = options;
        let rates = Rates { flops_per_s: tflops * 1e12, memory_bytes_per_s: memory_gbps * 1e9, launch_ns };
        Self { rates: (!work).then_some(rates), element_bytes }
    }
}

/// Options of `rackloom workload import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Files of one workload, or of one rack
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Format of the files; by their content if absent
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Format::ALL.map(Format::name)))]
    pub(crate) format: Option<String>,
    /// Nanoseconds of one unit of `calc` in GOAL
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) goal_unit_ns: u64,
    /// Ranks of each dimension of the topology of a Chakra trace, the fastest first, such as 8,4
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub(crate) dimensions: Vec<u32>,
    #[command(flatten)]
    pub(crate) machine: MachineOptions,
    /// Write the workload, or the rack file, to this file
    #[arg(short = 'o', long, value_name = "FILE", help_heading = OUTPUT, value_parser = file_beside(NAME_A_FILE))]
    pub(crate) output: Option<PathBuf>,
}

/// Options of `rackloom workload check`.
#[derive(Debug, Args)]
pub(crate) struct CheckWorkloadArguments {
    /// Files of one workload
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_model_have_names() {
        let GivenModel { model: parsed, defaults } = model("layers=8,vocabulary=0, hidden = 64").unwrap();
        assert_eq!((parsed.layers, parsed.hidden, parsed.vocabulary, parsed.batch), (8, 64, 0, 1));
        assert_eq!(defaults, ["sequence=2048", "batch=1"]);
        for bad in ["", "layers", "layers=x", "layers=-1", "width=4", "layers=1,layers=2"] {
            assert!(model(bad).unwrap_err().contains("hint: "), "{bad}");
        }
    }

    #[test]
    fn a_number_of_a_model_that_is_too_large_is_refused_with_its_range() {
        for (name, range) in Model::RANGES {
            let error = model(&format!("{name}=999999999999999")).unwrap_err();
            let range = format!("write {} to {}", range.start(), range.end());
            assert!(error.contains(&range) && error.contains("999999999999999"), "{error}");
        }
    }
}
