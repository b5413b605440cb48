//! Arguments of `rackloom campaign`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::headings::OUTPUT;
use super::output::Output;
use super::overrides::Overrides;

/// The engine that runs the fault scripts of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// Virtual time
    #[default]
    Sim,
    /// Real processes
    Processes,
}

#[derive(Debug, Args)]
pub(crate) struct CampaignArguments {
    /// The rack file
    pub(crate) file: PathBuf,
    /// Number of random fault scripts to run
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) runs: u64,
    /// Number of the first script; a script follows from its number and the rack
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) first: u64,
    /// Engine that runs the scripts
    #[arg(long, value_enum, default_value_t)]
    pub(crate) engine: Engine,
    /// With processes: factor by which start times of faults are later than in virtual time; if absent, the measured ratio of run times without
    /// faults
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) time_scale: Option<u64>,
    /// Number of runs at the same time; if absent, one per processor in virtual time and one with processes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Write each failing script, in its smallest form, to a file in this directory
    #[arg(long, help_heading = OUTPUT, value_name = "DIR")]
    pub(crate) export: Option<PathBuf>,
    /// Record results in this file, and skip scripts that it records as passed
    #[arg(long, help_heading = OUTPUT, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    /// Stop after this number of failures
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) failures_max: u64,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
}
