//! The `rackloom` command: racks from files, as processes or in virtual time.
//!
//! This is the only crate that prints or exits. Reading order: `arguments` (what may be asked) · `source` (file and
//! command line to a plan) · `supervisor` and `seat` (real processes), joined by `control` · `sim` · `check` · `present`
//! and `reporting` (what is said in the end) · `exit` and `failure` (how it ends).

mod arguments;
mod check;
mod control;
mod exit;
mod failure;
mod faults;
mod present;
mod reporting;
mod seat;
mod sim;
mod source;
mod supervisor;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};
use crate::failure::Failure;

fn main() -> ExitCode {
    log_to_stderr();
    match obey(Arguments::parse().command) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit.into()
        }
    }
}

fn obey(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(arguments) => supervisor::run(&arguments).map(ExitCode::from),
        Command::Sim(arguments) => sim::run(&arguments).map(ExitCode::from),
        Command::Check(arguments) => check::run(&arguments).map(ExitCode::from),
        Command::Seat => seat::run(),
    }
}

/// Quiet unless asked; seats inherit the wish through the environment.
fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("RACKLOOM_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_target(false).init();
}
