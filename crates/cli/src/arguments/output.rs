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

/// Option of the page.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PageOutput {
    /// Also write the results as an HTML page of one file, with figures and tables that can be sorted
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, value_parser = page_file)]
    pub(crate) html: Option<PathBuf>,
}

/// Parses the file of a page. Standard output has the tables.
fn page_file(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("standard output has the tables; hint: name a file; `rackloom report REPORT.json --html -` prints the page of a report".to_owned()),
        file => Ok(PathBuf::from(file)),
    }
}
