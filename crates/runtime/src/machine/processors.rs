//! Processors on which a process may run.

use std::io;

use rustix::process::Pid;
use rustix::thread::{sched_getaffinity, sched_setaffinity};

/// Moves the calling thread, and all that it starts later, to the processors of another process.
///
/// Launchers bind a program to a processor, which the program occupies with its polls. Its agent must not inherit that.
///
/// # Errors
/// The process does not exist, or this process may use none of its processors.
pub(crate) fn share(process: u32) -> io::Result<()> {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    let process = process.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    Ok(sched_setaffinity(None, &sched_getaffinity(Some(process))?)?)
}
