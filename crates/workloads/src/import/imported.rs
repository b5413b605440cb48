//! Files that are read, options, and results.

use crate::error::{WorkloadError, WorkloadErrors};
use crate::import::hardware::Hardware;
use crate::machine::Machine;
use crate::model::Workload;

/// File that is read.
#[derive(Clone, Copy, Debug)]
pub struct File<'f> {
    /// Name for messages, and for the rank of a trace.
    pub name: &'f str,
    /// Content.
    pub bytes: &'f [u8],
}

/// Choices of an import.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Machine for computations of a trace without a duration.
    pub machine: Machine,
    /// Nanoseconds of one unit of `calc` in GOAL.
    pub goal_unit_ns: u64,
    /// Ranks of each dimension of the topology for which a Chakra trace was made, the fastest first. Empty if the traces name
    /// groups or use all ranks.
    pub dimensions: Vec<u32>,
}

impl Default for Options {
    /// Returns the default machine, nanoseconds in GOAL, and no dimensions.
    fn default() -> Self {
        Self { machine: Machine::default(), goal_unit_ns: 1, dimensions: Vec::new() }
    }
}

/// Result of an import.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The content.
    pub content: Content,
    /// Notes on parts that were left out or changed, each one line.
    pub notes: Vec<String>,
}

/// Content of files.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Traffic. It satisfies [`check`](crate::check()).
    Workload(Workload),
    /// Members and links.
    Hardware(Hardware),
}

impl<'f> File<'f> {
    /// Returns the content as text.
    pub(super) fn text(&self) -> Result<&'f str, WorkloadErrors> {
        core::str::from_utf8(self.bytes).map_err(|error| {
            let before = &self.bytes[..error.valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let hint = "convert the file to UTF-8, or name its format";
            WorkloadError::line(line, 1, "the line is no text", hint).of(self.name)
        })
    }

    /// Returns true if the name ends with `.json`.
    pub(super) fn is_json(&self) -> bool {
        let ending = std::path::Path::new(self.name).extension();
        ending.is_some_and(|ending| ending.eq_ignore_ascii_case("json"))
    }

    /// Returns the name without folders and without its ending, as far as it can be the name of a workload.
    pub(super) fn title(&self) -> String {
        let name = self.name.rsplit(['/', '\\']).next().unwrap_or_default();
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let stem: String = stem.chars().filter(|one| !one.is_control() && *one != '#').collect();
        stem.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_without_text_is_named() {
        let file = File { name: "a", bytes: b"x\ny\xff\n" };
        assert!(file.text().unwrap_err().to_string().starts_with("a:2:1: the line is no text"));
    }

    #[test]
    fn titles_have_no_folder_and_no_ending() {
        let title = |name| File { name, bytes: b"" }.title();
        assert_eq!([title("a/b/x.0.et"), title("x"), title("a#b .goal")], ["x.0", "x", "ab"]);
    }
}
