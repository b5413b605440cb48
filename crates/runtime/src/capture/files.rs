//! Names of capture files: several parts per link while the rack runs, one file per link afterwards.
//!
//! A part is a complete capture: the parts of a killed rack can be read without joining them. Parts of other
//! runs in the same directory stay unchanged.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use rackloom_capture::{Heading, ReadError, join};
use rackloom_plan::Plan;

use crate::outcome::failure::Failure;

/// Capture files of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureFiles {
    pub(super) directory: PathBuf,
    /// Number of the run, unique on this machine.
    pub(super) run: u64,
    pub(super) bytes_max: u64,
}

/// File of one link that one process has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Both ends of the link, as `n0-p0--n1-p1`.
    pub link: String,
    /// Path of the file.
    pub path: PathBuf,
}

impl CaptureFiles {
    /// Returns the files of a run that writes them.
    #[must_use]
    pub fn of_run(directory: &Path, run: u64) -> Self {
        Self { directory: directory.to_owned(), run, bytes_max: u64::MAX }
    }

    /// Returns the directory of the files.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the files that the processes of the run have made so far.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn parts(&self) -> io::Result<Vec<Part>> {
        let middle = format!(".part-{:x}-", self.run);
        let part = |name: &String| {
            let (link, _) = name.split_once(&middle)?;
            Some(Part { link: link.to_owned(), path: self.directory.join(name) })
        };
        Ok(self.names()?.iter().filter_map(part).collect())
    }

    /// Returns the path of the part of a link that this process writes.
    pub(super) fn part(&self, heading: &Heading, process: u64) -> PathBuf {
        self.directory.join(format!("{}{process:x}.pcapng", self.part_stem(heading)))
    }

    /// Joins the parts of each link into one file. Returns notes for the user. Parts that cannot be joined remain.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn join(&self, plan: &Plan) -> Result<Vec<String>, Failure> {
        let parts = self.names().map_err(|error| cannot_join(error, &self.directory))?;
        let mut notes = Vec::new();
        for heading in (0..plan.links.len()).filter_map(|edge| Heading::of(plan, edge as u16)) {
            let stem = self.part_stem(&heading);
            let mine: Vec<_> = parts.iter().filter(|name| name.starts_with(&stem)).collect();
            let mine: Vec<_> = mine.into_iter().map(|name| self.directory.join(name)).collect();
            notes.extend(self.join_link(&heading, &mine)?);
        }
        Ok(notes)
    }

    fn join_link(&self, heading: &Heading, parts: &[PathBuf]) -> Result<Vec<String>, Failure> {
        let path = self.directory.join(file_name(&heading.link));
        let joined = || -> Result<_, ReadError> {
            let mut inputs = parts.iter().map(File::open).collect::<io::Result<Vec<_>>>()?;
            let mut output = BufWriter::new(File::create(&path)?);
            join(heading, &mut inputs, &mut output, self.bytes_max)
        };
        let joined = joined().map_err(|error| cannot_join(error, &path))?;
        // A part that cannot be removed costs only space: its frames are in the joined file.
        parts.iter().for_each(|part| drop(std::fs::remove_file(part)));
        let mut notes = Vec::new();
        if joined.full {
            notes.push(format!(
                "the capture {} is full; --capture-bytes allows more",
                file_name(&heading.link)
            ));
        }
        if joined.torn {
            notes.push(format!(
                "the capture {} lacks the frames that a killed process had not written",
                heading.link
            ));
        }
        Ok(notes)
    }

    /// Returns the common beginning of the names of a link's parts.
    fn part_stem(&self, heading: &Heading) -> String {
        format!("{}.part-{:x}-", safe(&heading.link), self.run)
    }

    /// Returns the names in the directory, sorted.
    fn names(&self) -> io::Result<Vec<String>> {
        let entries = std::fs::read_dir(&self.directory)?;
        let mut names: Vec<_> = entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<_>>()?;
        names.sort_unstable();
        Ok(names)
    }
}

fn cannot_join(error: impl std::fmt::Display, path: &Path) -> Failure {
    Failure::could_not_start("cannot write the captures", error)
        .at_path(path)
        .hint("the parts that were written while the rack ran are still there, and can be read as they are")
}

/// Returns the name of a link's file.
fn file_name(link: &str) -> String {
    format!("{}.pcapng", safe(link))
}

/// Replaces the characters that a member's name may contain and a file name may not.
fn safe(link: &str) -> String {
    let is_safe = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    link.chars().map(|letter| if is_safe(letter) { letter } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_link_lies_within_the_directory() {
        assert_eq!(file_name("n0-p0--n1-p1"), "n0-p0--n1-p1.pcapng");
        assert_eq!(file_name("../a b-p0--n1-p1"), ".._a_b-p0--n1-p1.pcapng");
    }
}
