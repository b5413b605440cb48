//! Arguments of commands that help in a shell: `init`, `completions`, `man`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::output::{NAME_A_DIRECTORY, file_beside};
use crate::completion;
use crate::init;

/// Options of `rackloom init`.
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// The template; a list of all if absent
    #[arg(value_parser = PossibleValuesParser::new(init::values()))]
    pub(crate) template: Option<String>,
    /// File to write; standard output if absent, or "-"
    #[arg(short, long, value_name = "FILE", requires = "template")]
    pub(crate) output: Option<PathBuf>,
    /// Replace a file that exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

/// Options of `rackloom completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_parser = PossibleValuesParser::new(completion::shells()))]
    pub(crate) shell: String,
}

/// Options of `rackloom man`.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Directory for the pages of all commands, which is created if needed; if absent, the page of `rackloom` on standard output
    #[arg(value_name = "DIR", value_parser = file_beside(NAME_A_DIRECTORY))]
    pub(crate) directory: Option<PathBuf>,
}
