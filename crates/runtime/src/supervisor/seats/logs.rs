//! Logs of members: one file per member, or the supervisor's standard error.
//!
//! A member logs to its standard error and opens no file. No frame causes a log line.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::outcome::failure::Failure;

const HINT: &str = "logs need a directory in which this user can make files, on a disk with free space";

/// Destination and level of the logs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logs {
    directory: Option<PathBuf>,
    level: Option<String>,
}

impl Logs {
    /// Makes the directory, if there is one.
    pub(crate) fn new(directory: Option<&Path>, level: Option<&str>) -> Result<Self, Failure> {
        if let Some(directory) = directory {
            std::fs::create_dir_all(directory).map_err(|error| {
                Failure::could_not_start("cannot make the directory of logs", error)
                    .at_path(directory)
                    .hint(HINT)
            })?;
        }
        Ok(Self { directory: directory.map(Path::to_owned), level: level.map(str::to_owned) })
    }

    /// Makes an empty log of this name; `None` if logs go to standard error.
    pub(crate) fn of_member(&self, name: &str) -> Result<Option<File>, Failure> {
        let Some(directory) = &self.directory else { return Ok(None) };
        let path = directory.join(format!("{name}.log"));
        let failed = |error| {
            Failure::could_not_start(format!("cannot make the log of {name}"), error)
                .at_path(&path)
                .hint(HINT)
        };
        File::create(&path).map(Some).map_err(failed)
    }

    /// Opens the log of this name to append to it; `None` if logs go to standard error.
    pub(crate) fn of_successor(&self, name: &str) -> io::Result<Option<File>> {
        let append = |directory: &PathBuf| {
            File::options().append(true).create(true).open(directory.join(format!("{name}.log")))
        };
        self.directory.as_ref().map(append).transpose()
    }

    /// Returns the level that the options set.
    pub(crate) fn level(&self) -> Option<&str> {
        self.level.as_deref()
    }
}
