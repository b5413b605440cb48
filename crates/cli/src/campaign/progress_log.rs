//! Progress of a campaign in a file, so that an interrupted campaign can be continued.
//!
//! A run adds one line when it ends, `NUMBER pass` or `NUMBER fail`. An incomplete line is ignored.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::failure::Failure;

/// File of the progress, if there is one.
pub(super) struct ProgressLog(Option<Mutex<File>>);

impl ProgressLog {
    /// Opens the file. Returns the numbers that have passed as well.
    pub(super) fn open(path: Option<&Path>) -> Result<(Self, BTreeSet<u64>), Failure> {
        let Some(path) = path else { return Ok((Self(None), BTreeSet::new())) };
        let failure = |error: std::io::Error| {
            Failure::bad_input(format!("cannot keep the list of runs: {error}"))
                .at_path(path)
                .hint("name a file in a folder that exists and that you may write to")
        };
        let file = OpenOptions::new().create(true).read(true).append(true).open(path).map_err(failure)?;
        let text = std::fs::read_to_string(path).map_err(failure)?;
        let mut progress_log = Self(Some(Mutex::new(file)));
        if !text.is_empty() && !text.ends_with('\n') {
            // An incomplete line at the end of the file must not damage the next line.
            progress_log.end_line().map_err(failure)?;
        }
        Ok((progress_log, passed_in(&text)))
    }

    fn end_line(&mut self) -> std::io::Result<()> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        file.get_mut().unwrap_or_else(PoisonError::into_inner).write_all(b"\n")
    }

    /// Records the end of a run. A write error is ignored: the run is repeated later.
    pub(super) fn note(&self, number: u64, is_pass: bool) {
        let Some(file) = &self.0 else { return };
        let verdict = if is_pass { "pass" } else { "fail" };
        let line = format!("{number} {verdict}\n");
        let _ = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
}

fn passed_in(text: &str) -> BTreeSet<u64> {
    let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
    complete.lines().filter_map(|line| line.strip_suffix(" pass")?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_lines_of_passed_runs_count() {
        assert_eq!(passed_in("1 pass\n2 fail\nrubbish\n3 pass\n4 pass"), BTreeSet::from([1, 3]));
        assert_eq!(passed_in("17 pass"), BTreeSet::new());
    }
}
