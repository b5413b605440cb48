//! What `rackloom campaign` may be asked.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Overrides;

/// What plays the scripts of a campaign.
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
    /// How many fault scripts are drawn and run
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) runs: u64,
    /// Number of the first script; each has its own, and is the same whenever it is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) first: u64,
    /// What plays the scripts
    #[arg(long, value_enum, default_value_t)]
    pub(crate) engine: Engine,
    /// With processes: faults that begin at a time begin so many times later than in virtual time; if absent, as many times as a run without
    /// faults takes longer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) time_scale: Option<u64>,
    /// How many run at once; one per processor if absent, and one where they are processes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Write each failing script, made small, to a file of its own in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) export: Option<PathBuf>,
    /// Note in this file what has run, and leave out what it says has passed before
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    /// Go on after so many failures
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) failures_max: u64,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
}
