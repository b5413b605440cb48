//! Option of the JSON report.

use std::path::PathBuf;

use clap::Args;

use super::headings::OUTPUT;

#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Also write the report as JSON to this file; "-" is standard output
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) json: Option<PathBuf>,
}

impl Output {
    /// Returns whether the JSON report goes to standard output.
    pub(crate) fn json_on_stdout(&self) -> bool {
        self.json.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }
}
