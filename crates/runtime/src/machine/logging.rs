//! Log lines on standard error, which `--log-dir` redirects to a file.
//!
//! A write error must not end a run. The first one is kept, so that it can be reported once.

use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

static FIRST_ERROR: OnceLock<String> = OnceLock::new();

/// Standard error that keeps its first write error.
pub struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stderr().write(bytes).inspect_err(keep)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush().inspect_err(keep)
    }
}

/// Keeps the first error. A closed reader is not an error.
fn keep(error: &io::Error) {
    if !matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) {
        let _ = FIRST_ERROR.set(error.to_string());
    }
}

/// Returns the first error of writing this process's log.
pub fn first_error() -> Option<&'static str> {
    FIRST_ERROR.get().map(String::as_str)
}
