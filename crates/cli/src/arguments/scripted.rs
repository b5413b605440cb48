//! The option that names a fault script.

use std::path::PathBuf;

use clap::Args;

use super::headings::FAULTS;

/// Scripted faults.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FaultOptions {
    /// Fault script: faults, their times, and the expected outcome
    #[arg(long, value_name = "FILE", help_heading = FAULTS)]
    pub(crate) faults: Option<PathBuf>,
}
