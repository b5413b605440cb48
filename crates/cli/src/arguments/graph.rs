//! Arguments of `rackloom graph`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::headings::OUTPUT;

#[derive(Debug, Args)]
pub(crate) struct GraphArguments {
    /// The rack file
    pub(crate) file: PathBuf,
    /// Colour links by their use, and mark faults, from the JSON report of a run of this rack
    #[arg(long, value_name = "REPORT.json")]
    pub(crate) report: Option<PathBuf>,
    /// Replace the value of any key of the rack file, such as star.planes=2; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Format of the picture
    #[arg(long, help_heading = OUTPUT, value_enum, default_value_t)]
    pub(crate) format: GraphFormat,
    /// Write the picture to this file; standard output if absent, or "-"
    #[arg(short, long, help_heading = OUTPUT, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// A picture for browsers and documents
    #[default]
    Svg,
    /// Text for Graphviz
    Dot,
    /// Text for Mermaid
    Mermaid,
}
