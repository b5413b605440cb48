//! Progress of a campaign in a file, so that an interrupted campaign can be continued.
//!
//! The first line states the campaign: rack, seed and options on which results depend. A run adds one line when it ends, `NUMBER pass` or
//! `NUMBER fail`. An incomplete line is ignored.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::failure::Failure;

/// Begin of the first line.
pub(super) const BEGIN: &str = "campaign ";
/// Longest file, in bytes: ten million runs.
const FILE_BYTES_MAX: u64 = 128 << 20;

/// File of the progress, if there is one.
pub(super) struct ProgressLog(Option<Mutex<File>>);

impl ProgressLog {
    /// Opens the file. Returns the numbers that have passed as well.
    ///
    /// `campaign`: first line of the file, without line feed.
    ///
    /// # Errors
    /// The file cannot be used, or it is no list of runs of this campaign.
    pub(super) fn open(path: Option<&Path>, campaign: &str) -> Result<(Self, BTreeSet<u64>), Failure> {
        let Some(path) = path else { return Ok((Self(None), BTreeSet::new())) };
        let failure = |error: std::io::Error| {
            Failure::bad_input(format!("cannot keep the list of runs: {error}"))
                .at_path(path)
                .hint("name a file in a folder that exists and that you may write to")
        };
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path).map_err(failure)?;
        let mut text = String::new();
        (&file).take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failure)?;
        if text.is_empty() {
            text = format!("{campaign}\n");
            file.write_all(text.as_bytes()).map_err(failure)?;
        }
        must_be_of(campaign, &text).map_err(|failure| failure.at_path(path))?;
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

/// Checks that the text is a list of the runs of this campaign.
fn must_be_of(campaign: &str, text: &str) -> Result<(), Failure> {
    let hint = "name another file, or delete this one if its runs may be repeated";
    let first = text.lines().next().unwrap_or_default();
    if !first.starts_with(BEGIN) {
        return Err(Failure::bad_input("this is no list of runs of a campaign").hint(hint));
    }
    if text.len() as u64 > FILE_BYTES_MAX {
        let what = format!("the list of runs has more than {} MiB", FILE_BYTES_MAX >> 20);
        return Err(Failure::bad_input(what).hint(hint));
    }
    if first != campaign {
        let what = format!(
            "the list has the runs of another campaign: its first line is `{first}`, and this campaign is `{campaign}`"
        );
        return Err(Failure::bad_input(what).hint(hint));
    }
    Ok(())
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

    #[test]
    fn a_list_of_another_campaign_is_refused() {
        let refused = |text: &str| must_be_of("campaign a", text).err().map(|failure| failure.with_heading());
        assert_eq!(refused("campaign a\n1 pass\n"), None);
        assert!(refused("1 pass\n").is_some_and(|text| text.contains("no list of runs")));
        assert!(refused("campaign ab\n1 pass\n").is_some_and(|text| text.contains("another campaign")));
    }
}
