//! Texts and failures on standard error.

use std::io::{self, Write};

pub(crate) use rackloom_runtime::outcome::failure::Failure;

/// Prints a line on standard error. A closed standard error is no failure: `rackloom ... 2>&1 | head` closes it, and there is no other place
/// for a message.
pub(crate) fn say_aside(text: &str) {
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Prints a failure on standard error.
pub(crate) fn print(failure: &Failure) {
    say_aside(&failure.with_heading());
}
