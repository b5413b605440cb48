//! The command line, as types. What it says goes before what the rack file says ([`Overrides`]).
//!
//! Nothing here reads a file or judges a plan.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

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
    /// Print the plan of a rack file, or every mistake in it
    #[command(after_help = Exit::help())]
    Check(CheckArguments),
    /// One member of a rack; started by `run`
    #[command(hide = true)]
    Seat,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The rack file
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// What carries the frames
    #[arg(long, value_enum)]
    pub(crate) wire: Option<Wire>,
    #[command(flatten)]
    pub(crate) output: Output,
    /// Once all links are up, write who runs where (names and process ids) to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) pids: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SimArguments {
    /// The rack file
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The rack file
    pub(crate) file: PathBuf,
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
    /// Seed of the job's data and of every injected fault
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How lost packets are sent again
    #[arg(long, value_enum)]
    pub(crate) transport: Option<Transport>,
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
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Wire {
    /// Rings in shared memory that carry whole Ethernet frames
    SharedMemory,
    /// Raw Ethernet frames over virtual interfaces in namespaces of the run's own
    Packet,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Transport {
    /// The receiver takes packets in order only; a hole re-sends everything after it
    GoBackN,
    /// Only the hole is sent again
    Selective,
}

/// A share between 0 and 1, as a fraction or in per cent.
fn share(text: &str) -> Result<f64, String> {
    let (number, divisor) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let value = number.parse::<f64>().map_err(|_| "not a number; write 0.01 or 1%".to_owned())? / divisor;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err("not between 0 and 1 (0% and 100%)".to_owned()) }
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
