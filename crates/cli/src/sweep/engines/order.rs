//! Sweep as an engine gets it.

use std::path::{Path, PathBuf};

use crate::arguments::SweepArguments;

/// Most elements of an array job, within the default limit of Slurm (`MaxArraySize` 1001). A larger grid has several points per element.
const ELEMENTS_MAX: u64 = 1_000;

/// Sweep as an engine gets it.
#[derive(Debug)]
pub(super) struct Order<'a> {
    /// Directory of the sweep, as an absolute path.
    pub(super) directory: PathBuf,
    /// This program, as an absolute path.
    pub(super) program: PathBuf,
    /// Number of points.
    pub(super) points: u64,
    pub(super) options: &'a SweepArguments,
}

impl Order<'_> {
    /// Returns the number of elements of an array job.
    pub(super) fn elements(&self) -> u64 {
        self.points.clamp(1, ELEMENTS_MAX)
    }
}

/// Quotes a text for a POSIX shell.
pub(super) fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
