//! `rackloom workload`, and the workload of `sim` and `run`: files become a workload in the text format of this project.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rackloom_control::source::{ComputeMode, WorkloadFile};
use rackloom_jobs::Job;
use rackloom_jobs::workload::Prepared;
use rackloom_plan::{Plan, printable};
use rackloom_protocol::NodeId;
use rackloom_runtime::request::workload::TEXT_BYTES_MAX;
use rackloom_workloads::generate::{self, Degrees, Schedule};
use rackloom_workloads::import::{self, Content, Format, Imported, Options};
use rackloom_workloads::{Machine, Workload, text};

use crate::arguments::{
    CheckWorkloadArguments, DegreeOptions, GenerateArguments, Generated, GivenModel, ImportArguments, Output,
    WorkloadCommand,
};
use crate::bounded::{self, Unread};
use crate::exit::Exit;
use crate::failure::{Failure, cannot_write_file, print_to_stderr};
use crate::files::Files;
use crate::present;
use crate::reporting;

/// Maximum length of a file, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Runs a command about workloads.
pub(crate) fn run(command: &WorkloadCommand) -> Result<Exit, Failure> {
    match command {
        WorkloadCommand::Generate(arguments) => show(&generated(arguments)?, arguments.output.as_deref()),
        WorkloadCommand::Import(arguments) => import_files(arguments),
        WorkloadCommand::Check(CheckWorkloadArguments { files }) => {
            show(&workload(read(files, None, &Options::default())?)?, None)
        }
    }
}

/// Returns the workload of these files for a request; `None` if there are none.
pub(crate) fn file(files: &[PathBuf], compute: ComputeMode) -> Result<Option<WorkloadFile>, Failure> {
    let Some(first) = files.first() else { return Ok(None) };
    let contents = contents(files)?;
    let workload = workload(imported(files, &contents, None, &Options::default())?)?;
    // The user's own text keeps its lines, for mistakes that only the rack reveals.
    let own = match &contents[..] {
        [only] if Format::of_content(only) == Some(Format::Rackloom) => str::from_utf8(only).ok(),
        _ => None,
    };
    let text = own.filter(|own| own.len() <= TEXT_BYTES_MAX).map(str::to_owned);
    let text = text.unwrap_or_else(|| text::write(&workload));
    let name = first.display().to_string();
    Ok(Some(WorkloadFile { name, text, compute }))
}

/// Returns the job of each rank in virtual time.
pub(crate) fn jobs(plan: &Plan, workload: &Arc<Prepared>) -> Vec<Box<dyn Job>> {
    let ranks = (0..plan.endpoint_count()).map(|rank| NodeId(rank as u16));
    let job =
        |rank| rackloom_jobs::perform_workload(plan, rank, plan.settings.seed, workload, ComputeMode::Sleep);
    ranks.map(job).collect()
}

/// Prints the table of a workload, and writes its text.
fn show(workload: &Workload, output: Option<&Path>) -> Result<Exit, Failure> {
    if let Some(path) = output {
        write(path, &text::write(workload))?;
    }
    print(&present::workload(workload))
}

fn print(text: &str) -> Result<Exit, Failure> {
    reporting::print_text(&Output { json: None }, text.trim_end())?;
    Ok(Exit::Pass)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| cannot_write_file(&error, path))
}

/// Reads files of other tools. Files that describe hardware become a rack file.
fn import_files(arguments: &ImportArguments) -> Result<Exit, Failure> {
    let ImportArguments { files, format, goal_unit_ns, dimensions, machine, output } = arguments;
    Files::default().reads("a file of the workload", files).writes("--output", output).must_differ()?;
    let format = format.as_deref().and_then(Format::from_name);
    let options =
        Options { machine: (*machine).into(), goal_unit_ns: *goal_unit_ns, dimensions: dimensions.clone() };
    match read(files, format, &options)? {
        Content::Workload(workload) => show(&workload, output.as_deref()),
        Content::Hardware(hardware) => {
            let text = hardware.to_rack_yaml();
            let Some(path) = output else {
                reporting::print_data(text.trim_end())?;
                return Ok(Exit::Pass);
            };
            write(path, &text)?;
            print(&format!(
                "{}: {} nodes, {} switches, {} links",
                hardware.name,
                hardware.nodes.len(),
                hardware.switches.len(),
                hardware.links.len()
            ))
        }
    }
}

/// Generates a workload.
fn generated(arguments: &GenerateArguments) -> Result<Workload, Failure> {
    let DegreeOptions { data, tensor, pipeline, expert, micro_batches, schedule, tokens } =
        &arguments.degrees;
    let GivenModel { model, defaults } = &arguments.model;
    if !defaults.is_empty() {
        print_to_stderr(&format!(
            "note: --model leaves out numbers, which have their defaults: {}",
            defaults.join(",")
        ));
    }
    let machine = Machine::from(arguments.machine);
    let schedule = Schedule::from_name(schedule).unwrap_or(Schedule::OneForwardOneBackward);
    let degrees = Degrees {
        data: *data,
        tensor: *tensor,
        pipeline: *pipeline,
        expert: *expert,
        micro_batches: *micro_batches,
        schedule,
    };
    if arguments.kind != Generated::Training {
        must_be_tensor_parallel(&degrees)?;
    }
    let generated = match arguments.kind {
        Generated::Training => generate::training(model, &machine, &degrees),
        Generated::Prefill => generate::prefill(model, &machine, *tensor),
        Generated::Decode => generate::decode(model, &machine, *tensor, *tokens),
    };
    generated.map_err(|refused| Failure::bad_input(refused.reason).hint(refused.hint))
}

/// Checks that inference is divided among ranks in one dimension only.
fn must_be_tensor_parallel(degrees: &Degrees) -> Result<(), Failure> {
    let alone = Degrees { tensor: degrees.tensor, ..Degrees::default() };
    if *degrees == alone {
        return Ok(());
    }
    let what = "inference is divided by --tp alone";
    Err(Failure::bad_input(what).hint("leave --dp, --pp, --ep, --micro-batches and --schedule out"))
}

/// Reads files of one workload or rack. Prints notes on parts that were left out.
fn read(files: &[PathBuf], format: Option<Format>, options: &Options) -> Result<Content, Failure> {
    imported(files, &contents(files)?, format, options)
}

fn contents(files: &[PathBuf]) -> Result<Vec<Vec<u8>>, Failure> {
    files.iter().map(|file| bytes(file)).collect()
}

/// Returns the workload or rack of files with these contents. Prints notes on parts that were left out.
fn imported(
    files: &[PathBuf],
    contents: &[Vec<u8>],
    format: Option<Format>,
    options: &Options,
) -> Result<Content, Failure> {
    // The names stand in messages and in the names of workloads.
    let names: Vec<_> =
        files.iter().map(|file| printable(&file.display().to_string()).into_owned()).collect();
    let inputs: Vec<_> =
        names.iter().zip(contents).map(|(name, bytes)| import::File { name, bytes }).collect();
    let Imported { content, notes } = import::read(&inputs, format, options).map_err(|errors| {
        let text = errors.to_string();
        // One mistake has its remedy in a line of its own.
        if errors.errors.len() == 1 {
            Failure::of_line(Exit::BadInput, &text)
        } else {
            Failure::bad_input(text)
        }
    })?;
    notes.iter().for_each(|note| print_to_stderr(&format!("note: {note}")));
    Ok(content)
}

/// Returns the workload of a content.
fn workload(content: Content) -> Result<Workload, Failure> {
    match content {
        Content::Workload(workload) => Ok(workload),
        Content::Hardware(hardware) => {
            let what = format!("{} has nodes and links, and no workload", hardware.name);
            let hint =
                "name a file of operations; `rackloom workload import` writes a rack file from this one";
            Err(Failure::bad_input(what).hint(hint))
        }
    }
}

/// Reads a file of a workload.
///
/// # Errors
/// It cannot be read, or is too large.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    bounded::read(path, FILE_BYTES_MAX).map_err(|unread| match unread {
        Unread::System(error) => Failure::bad_input(format!("cannot read the workload: {error}"))
            .at_path(path)
            .hint("`rackloom workload generate --help` makes one"),
        Unread::TooLarge(lengths) => {
            let hint = "cut it: most traces repeat one iteration, and one is enough for its time; or record fewer ranks";
            Failure::bad_input(lengths.text("a file of a workload")).at_path(path).hint(hint)
        }
    })
}
