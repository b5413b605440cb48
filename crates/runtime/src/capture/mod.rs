//! Captures: the frames of each link, in files.
//!
//! Each process writes what its own ends of links see into files of its own, so no process waits for another, and the files of a killed
//! process remain. When the rack has ended, its starter joins the files of each link into one.
//!
//! `files` has the names of files during and after the run. `writer` has the thread that writes, so that no
//! frame waits for the disk. `crates/capture` defines the contents of a file.

mod files;
mod writer;

pub use self::files::{CaptureFiles, Part};
pub use self::writer::{CaptureWriter, FrameSink, WhenFull};

use rackloom_control::source::CaptureOptions;

use crate::outcome::failure::Failure;

/// Default of the largest capture of one link, in bytes.
const BYTES_MAX_DEFAULT: u64 = 64 << 20;

/// Returns the options with an absolute directory. Seats and supervisors run in other directories than the command.
///
/// # Errors
/// The directory has no absolute path.
pub fn absolute(options: &CaptureOptions) -> Result<CaptureOptions, Failure> {
    let directory = options.directory.as_deref().map(std::path::absolute).transpose();
    let directory = directory.map_err(|error| Failure::bad_input(error.to_string()))?;
    Ok(CaptureOptions { directory, bytes_max: options.bytes_max })
}

/// Makes the directory, before anything starts.
///
/// # Errors
/// The directory cannot be made.
pub fn make_directory(options: &CaptureOptions) -> Result<(), Failure> {
    let Some(directory) = &options.directory else { return Ok(()) };
    std::fs::create_dir_all(directory).map_err(|error| {
        Failure::bad_input(format!("cannot make the directory of captures: {error}"))
            .at_path(directory)
            .hint("name a folder that you may write to")
    })
}

/// Returns the files of one run's captures, or `None` without captures. `run` is a number that no other run
/// on this machine has.
#[must_use]
pub fn files_of(options: &CaptureOptions, run: u64) -> Option<CaptureFiles> {
    let directory = options.directory.clone()?;
    Some(CaptureFiles { directory, run, bytes_max: options.bytes_max.unwrap_or(BYTES_MAX_DEFAULT) })
}
