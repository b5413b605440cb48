//! The `rackloom` command: racks from files, as processes or in virtual time.
//!
//! This is the only crate that prints or exits. Reading order: `arguments` (what may be asked) · `source` (file and
//! command line to a plan) · `supervisor` and `seat` (real processes), joined by `control` · `standing` (racks that stay)
//! · `sim` · `campaign` (many of them, under drawn faults) · `snapshots` (a job taken up again) · `check` · `experiment` (runs beside closed forms) · `calibrate` (how fast we are, beside raw loops) · `capture` and `decode` (frames in files) · `gpu` (what this machine's GPUs can do)
//! · `present`
//! and `reporting` (what is said in the end) · `exit` and `failure` (how it ends).

#![deny(clippy::print_stdout, clippy::print_stderr)] // They panic where nobody listens; `reporting` prints.

mod arguments;
#[path = "../../runtime/src/request/arrays/mod.rs"]
mod arrays;
mod calibrate;
mod campaign;
#[path = "../../runtime/src/machine/capacity.rs"]
mod capacity;
#[path = "../../runtime/src/capture/mod.rs"]
mod capture;
mod check;
#[path = "../../runtime/src/control/mod.rs"]
mod control;
mod decode;
#[path = "../../runtime/src/machine/exclusive.rs"]
mod exclusive;
#[path = "../../runtime/src/outcome/exit.rs"]
mod exit;
#[path = "../../runtime/src/outcome/expectations.rs"]
mod expectations;
mod experiment;
#[path = "../../runtime/src/outcome/failure.rs"]
mod failure;
#[path = "../../runtime/src/outcome/injected.rs"]
mod faults;
mod gpu;
#[path = "../../runtime/src/machine/here.rs"]
mod here;
#[path = "../../runtime/src/machine/interruption.rs"]
mod interruption;
#[path = "../../runtime/src/machine/logging.rs"]
mod logging;
#[path = "../../runtime/src/outcome/meta.rs"]
mod meta;
#[path = "../../runtime/src/request/overrides.rs"]
mod overrides;
mod present;
mod progress;
mod reporting;
mod schedule;
#[path = "../../runtime/src/seat/mod.rs"]
mod seat;
mod sim;
#[path = "../../runtime/src/request/snapshots/mod.rs"]
mod snapshots;
#[path = "../../runtime/src/request/source.rs"]
mod source;
#[path = "../../runtime/src/standing/mod.rs"]
mod standing;
#[path = "../../runtime/src/supervisor/mod.rs"]
mod supervisor;
mod trace;

use std::process::ExitCode;

use crate::arguments::{Command, SeatArguments};
use crate::failure::Failure;

fn main() -> ExitCode {
    let obeyed = arguments::parse().and_then(|arguments| {
        #[cfg(feature = "planted-bugs")]
        plant()?;
        log_to_stderr(&arguments.command);
        obey(arguments.command)
    });
    match obeyed {
        Ok(code) => code,
        Err(failure) => {
            failure.tell();
            failure.exit.into()
        }
    }
}

/// Have the bug that the environment names.
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

fn obey(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(arguments) => supervisor::run(&arguments).map(ExitCode::from),
        Command::Sim(arguments) => sim::run(&arguments).map(ExitCode::from),
        Command::Check(arguments) => check::run(&arguments).map(ExitCode::from),
        Command::Schedule(arguments) => schedule::run(&arguments).map(ExitCode::from),
        Command::Decode(arguments) => decode::run(&arguments).map(ExitCode::from),
        Command::Schema(arguments) => check::schema(arguments.of).map(ExitCode::from),
        Command::Up(arguments) => standing::up(&arguments).map(ExitCode::from),
        Command::Status(arguments) => standing::status(&arguments).map(ExitCode::from),
        Command::Inject(arguments) => standing::inject(&arguments).map(ExitCode::from),
        Command::Down(arguments) => standing::down(&arguments).map(ExitCode::from),
        Command::Experiment(arguments) => experiment::run(&arguments).map(ExitCode::from),
        Command::Campaign(arguments) => campaign::run(&arguments).map(ExitCode::from),
        Command::Gpu(arguments) => gpu::run(&arguments).map(ExitCode::from),
        Command::Calibrate(arguments) => calibrate::run(&arguments).map(ExitCode::from),
        Command::CalibrateLoop(arguments) => calibrate::take_loop(arguments).map(ExitCode::from),
        Command::Seat(SeatArguments { join: None }) => seat::run(),
        Command::Seat(SeatArguments { join: Some(place) }) => standing::join(&place),
        Command::Keep => standing::keep().map(ExitCode::from),
        Command::SweepNames => supervisor::sweep_names().map(ExitCode::from),
    }
}

/// Quiet unless asked; seats hear of the wish through their environment.
fn log_to_stderr(command: &Command) {
    let asked = match command {
        Command::Run(arguments) => arguments.logging.level(),
        _ => None,
    };
    let filter = match asked {
        Some(level) => tracing_subscriber::EnvFilter::new(level),
        None => tracing_subscriber::EnvFilter::try_from_env(supervisor::LOG_VARIABLE)
            .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn")),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| logging::LogWriter)
        .with_target(false)
        .log_internal_errors(false)
        .init();
}
