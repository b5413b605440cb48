//! Arguments of `rackloom report`.

use std::path::PathBuf;

use clap::Args;

use super::headings::OUTPUT;

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// The JSON report of `run`, `sim` or `down`, or a file of points/ of a sweep
    pub(crate) file: PathBuf,
    /// Write the report as an HTML page of one file, instead of tables; "-" is standard output
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) html: Option<PathBuf>,
}
