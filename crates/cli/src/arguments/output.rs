//! Option of the JSON report.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};

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

/// Option of the page.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PageOutput {
    /// Also write the results as an HTML page of one file, with figures and tables that can be sorted
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, value_parser = file_beside("name a file; `rackloom report REPORT.json --html -` prints the page of a report"))]
    pub(crate) html: Option<PathBuf>,
}

/// Hints for a file or a directory that is `-`.
pub(super) const NAME_A_FILE: &str = "name a file";
pub(super) const NAME_A_DIRECTORY: &str = "name a directory";

/// Returns the parser of a file or directory that is written beside the tables. It refuses `-`, because standard output has other text. Options
/// that can be standard output ([`Output::json`], `--output`, `--write`, `--html` of `report`) do not use it.
pub(super) fn file_beside(hint: &'static str) -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(move |path| match path.as_os_str() == "-" {
        true => Err(format!("standard output has other text; hint: {hint}")),
        false => Ok(path),
    })
}
