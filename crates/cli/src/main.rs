//! The `rackloom` command: racks from files, as processes or in virtual time.
//!
//! This is the only crate that prints or exits. Racks of processes are in `crates/runtime`; this crate has
//! arguments, presentation, and commands that use other crates.
//!
//! Reading order: `arguments` · `run` and `standing` (racks of processes) · `submitted` (jobs on racks that are up) · `exec` (programs on seats) · `sim` · `campaign` (many runs
//! under faults) · `sweep` (many runs over a grid of values) · `recommend` · `check`, `graph`, `report`, `diff`, `schedule` and `workload` · `experiment` · `calibrate` · `decode` (frames in files) · `capture` (frames of a rack that is up) ·
//! `top` (live view) · `gpu` · `init`, `completion` and `man` (help in a shell) · `terminal` · `present`, `reporting` and `recorded` (output) · `files`, `exit` and `failure`.

#![deny(clippy::print_stdout, clippy::print_stderr)] // They panic if the reader has closed the pipe; `reporting` prints.

mod arguments;
mod bounded;
mod calibrate;
mod campaign;
mod capture;
mod check;
mod completion;
mod decode;
mod diff;
mod exec;
mod exit;
mod experiment;
mod failure;
mod files;
mod gpu;
mod graph;
mod init;
mod man;
mod present;
mod progress;
mod recommend;
mod recorded;
mod report;
mod report_file;
mod reporting;
mod run;
mod schedule;
mod sim;
mod simulated_links;
mod standing;
mod submitted;
mod sweep;
mod tally;
mod terminal;
mod time_limit;
mod top;
mod trace;
mod workload;

use std::process::ExitCode;

use rackloom_runtime::machine::logging::LogWriter;
use rackloom_runtime::machine::program::Program;
use rackloom_runtime::run::{LOG_VARIABLE, sweep_names};
use rackloom_runtime::seat;
use rackloom_runtime::standing::join;
use rackloom_runtime::standing::programs::agent;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use crate::arguments::{Command, SeatArguments};
use crate::failure::Failure;

fn main() -> ExitCode {
    completion::answer_shell();
    terminal::measure_output();
    let result = arguments::parse().and_then(|arguments| {
        #[cfg(feature = "planted-bugs")]
        plant()?;
        log_to_stderr(&arguments.command);
        run_command(arguments.command)
    });
    match result {
        Ok(code) => code,
        Err(failure) => {
            failure::print(&failure);
            failure.exit.into()
        }
    }
}

/// Activates the bug that the environment names.
#[cfg(feature = "planted-bugs")]
fn plant() -> Result<(), Failure> {
    use rackloom_protocol::planted::{PlantedBug, plant};
    let Ok(name) = std::env::var("RACKLOOM_PLANT") else { return Ok(()) };
    let bug = PlantedBug::ALL.into_iter().find(|bug| bug.name() == name);
    let names = PlantedBug::ALL.map(PlantedBug::name).join(", ");
    bug.map(|bug| plant(Some(bug))).ok_or_else(|| {
        Failure::bad_input(format!("there is no bug `{name}` to plant")).hint(format!("there are {names}"))
    })
}

fn run_command(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(arguments) => run::run(&arguments).map(ExitCode::from),
        Command::Sim(arguments) => sim::run(&arguments).map(ExitCode::from),
        Command::Sweep(arguments) => sweep::run(&arguments).map(ExitCode::from),
        Command::Recommend(arguments) => recommend::run(&arguments).map(ExitCode::from),
        Command::Check(arguments) => check::run(&arguments).map(ExitCode::from),
        Command::Graph(arguments) => graph::run(&arguments).map(ExitCode::from),
        Command::Report(arguments) => report::run(&arguments).map(ExitCode::from),
        Command::Diff(arguments) => diff::run(&arguments).map(ExitCode::from),
        Command::Schedule(arguments) => schedule::run(&arguments).map(ExitCode::from),
        Command::Workload(arguments) => workload::run(&arguments.command).map(ExitCode::from),
        Command::Decode(arguments) => decode::run(&arguments).map(ExitCode::from),
        Command::Schema(arguments) => check::schema(arguments.of).map(ExitCode::from),
        Command::Up(arguments) => standing::up(&arguments).map(ExitCode::from),
        Command::Status(arguments) => standing::status(&arguments).map(ExitCode::from),
        Command::Top(arguments) => top::run(&arguments).map(ExitCode::from),
        Command::Events(arguments) => standing::events(&arguments).map(ExitCode::from),
        Command::Inject(arguments) => standing::inject(&arguments).map(ExitCode::from),
        Command::Heal(arguments) => standing::heal(&arguments).map(ExitCode::from),
        Command::Job(arguments) => submitted::run(&arguments).map(ExitCode::from),
        Command::Exec(arguments) => exec::run(&arguments),
        Command::Env(arguments) => exec::environment(&arguments).map(ExitCode::from),
        Command::Down(arguments) => standing::down(&arguments).map(ExitCode::from),
        Command::Experiment(arguments) => experiment::run(&arguments).map(ExitCode::from),
        Command::Campaign(arguments) => campaign::run(&arguments).map(ExitCode::from),
        Command::Gpu(arguments) => gpu::run(&arguments).map(ExitCode::from),
        Command::Capture(arguments) => capture::run(&arguments).map(ExitCode::from),
        Command::Extcap(arguments) => capture::extcap(&arguments).map(ExitCode::from),
        Command::Init(arguments) => init::run(&arguments).map(ExitCode::from),
        Command::Completions(arguments) => completion::print(&arguments.shell).map(ExitCode::from),
        Command::Man(arguments) => man::run(&arguments).map(ExitCode::from),
        Command::Calibrate(arguments) => calibrate::run(&arguments).map(ExitCode::from),
        Command::Seat(SeatArguments { join: None }) => seat::run().map(ExitCode::from),
        Command::Seat(SeatArguments { join: Some(seat) }) => join(&seat).map(ExitCode::from),
        Command::Keep => standing::keep().map(ExitCode::from),
        Command::Agent { detached } => agent(&Program::current(), detached).map(ExitCode::from),
        Command::SweepNames => sweep_names().map(ExitCode::from),
    }
}

/// Sets up logging: warnings only, unless an option or the environment sets a level. Seats get the level
/// through their environment.
fn log_to_stderr(command: &Command) {
    let level = match command {
        Command::Run(arguments) => arguments.logging.level(),
        _ => None,
    };
    let level = level.map(str::to_owned).or_else(|| std::env::var(LOG_VARIABLE).ok());
    let filter = level.and_then(|level| level.parse::<Targets>().ok());
    let filter = filter.unwrap_or_else(|| Targets::new().with_default(LevelFilter::WARN));
    let layer = fmt::layer()
        .with_writer(|| LogWriter)
        .with_target(false)
        .log_internal_errors(false)
        .with_filter(filter);
    tracing_subscriber::registry().with(layer).init();
}
