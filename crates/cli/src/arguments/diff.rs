//! Arguments of `rackloom diff`.

use std::path::PathBuf;

use clap::Args;

use super::Output;

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The JSON report of the run before
    #[arg(value_name = "BEFORE", required_unless_present = "before", requires = "report_after", conflicts_with_all = ["before", "after"])]
    pub(crate) report_before: Option<PathBuf>,
    /// The JSON report of the run after
    #[arg(value_name = "AFTER")]
    pub(crate) report_after: Option<PathBuf>,
    /// A report of the side before; may be repeated for repeated runs
    #[arg(long, value_name = "FILE", requires = "after")]
    pub(crate) before: Vec<PathBuf>,
    /// A report of the side after; may be repeated
    #[arg(long, value_name = "FILE", requires = "before")]
    pub(crate) after: Vec<PathBuf>,
    /// End with exit code 1 if something is worse by more than this share, such as 5%, or losses=0 for one section; may be repeated. With sections alone, only these and the verdict count
    #[arg(long, value_name = "[SECTION=]SHARE")]
    pub(crate) fail_over: Vec<String>,
    /// Maximum number of rows of a section; those that changed most are kept
    #[arg(long, value_name = "N")]
    pub(crate) rows: Option<usize>,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl DiffArguments {
    /// Returns the files of both sides.
    pub(crate) fn sides(&self) -> (Vec<&PathBuf>, Vec<&PathBuf>) {
        let before = self.report_before.iter().chain(&self.before).collect();
        (before, self.report_after.iter().chain(&self.after).collect())
    }
}
