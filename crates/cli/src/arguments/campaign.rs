//! What `rackloom campaign` may be asked.

use std::path::PathBuf;

use clap::Args;

use super::Overrides;

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
    /// Threads; one per processor if absent
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
