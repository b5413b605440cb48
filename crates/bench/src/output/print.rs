//! Output of the tool.

use std::io::{self, Write};

use rackloom_runtime::outcome::failure::Failure;

/// Prints a text on standard output. A reader that has gone is no failure.
pub(crate) fn print_line(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(format!("{text}\n").as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::could_not_start("cannot print", error))
        }
        _ => Ok(()),
    }
}
