//! Text and failures on standard error.

use std::io::{self, Write};

pub(crate) use rackloom_runtime::outcome::failure::Failure;

use crate::terminal;

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
