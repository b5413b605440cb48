//! Text and failures on standard error.

use std::io::{self, ErrorKind, Write};
use std::path::Path;

pub(crate) use rackloom_runtime::outcome::failure::Failure;

use crate::terminal;

/// Remedy for a file that cannot be written.
const NAME_A_FILE: &str = "name a file in a folder that exists and that you may write to";

/// Returns the failure of a result that could not be written. `what` names it: `the page`.
pub(crate) fn cannot_write(what: &str, error: &io::Error, path: &Path) -> Failure {
    let hint = full_device(error).unwrap_or(NAME_A_FILE);
    Failure::could_not_start(format!("cannot write {what}"), error).at_path(path).hint(hint)
}

/// Returns the failure of a file that cannot be opened or written. A full device is a fault of the machine, and anything else a mistake of the
/// command line.
pub(crate) fn cannot_write_file(error: &io::Error, path: &Path) -> Failure {
    match full_device(error) {
        Some(_) => cannot_write("this file", error, path),
        None => {
            Failure::bad_input(format!("cannot write this file: {error}")).at_path(path).hint(NAME_A_FILE)
        }
    }
}

/// Returns the failure of standard output.
pub(crate) fn cannot_print(error: impl Into<io::Error>) -> Failure {
    let error = error.into();
    let hint = full_device(&error);
    let failure = Failure::could_not_start("cannot print", error);
    hint.into_iter().fold(failure, |failure, hint| failure.hint(format!("{hint}, for standard output")))
}

/// Returns the remedy for a device without space; `None` for other errors.
fn full_device(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::StorageFull => Some("the device is full: free space on it, or name a file on another one"),
        ErrorKind::QuotaExceeded => {
            Some("your quota is used up: free space, or name a file on another device")
        }
        _ => None,
    }
}

/// Prints a message on standard error, wrapped and in colour on a terminal. An error of the write is ignored: `rackloom ... 2>&1
///
/// head` closes standard error, and there is no other output for a message.
pub(crate) fn print_to_stderr(text: &str) {
    let _ = io::stderr().write_all(format!("{}\n", terminal::message(text)).as_bytes());
}

/// Prints a failure on standard error.
pub(crate) fn print(failure: &Failure) {
    print_to_stderr(&failure.with_heading());
}
