//! Positions of values in the file, by path.
//!
//! Checks work on the finished plan, which holds no positions. They look a position up here by path (`timers.heartbeat_interval`,
//! `links.n0--n1.loss`). The table is empty for a plan that a command line has changed.

use std::collections::{BTreeMap, BTreeSet};

use crate::read::mistake::Position;

/// Positions by path.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    written: BTreeMap<String, Position>,
    broken: BTreeSet<String>,
    origins: BTreeMap<String, String>,
}

impl Positions {
    /// Records the position of a value.
    pub(crate) fn note(&mut self, path: String, position: Position) {
        self.written.insert(path, position);
    }

    /// Records that a value could not be read and that a mistake was reported. Its default must not be checked.
    pub(crate) fn note_broken(&mut self, path: String) {
        self.broken.insert(path);
    }

    /// Records that the value of `path` is inherited from the path `origin`.
    pub(crate) fn note_origin(&mut self, path: String, origin: String) {
        self.origins.insert(path, origin);
    }

    /// Returns the path that a value is inherited from, or `None` if it is not inherited.
    pub(crate) fn origin_of(&self, path: &str) -> Option<&str> {
        self.origins.get(path).map(String::as_str)
    }

    /// Returns the position of a value, or `None` if the file does not state it.
    pub(crate) fn find(&self, path: &str) -> Option<Position> {
        self.written.get(path).copied()
    }

    /// Returns true if the value could be read.
    pub(crate) fn is_intact(&self, path: &str) -> bool {
        !self.broken.contains(path)
    }

    /// Returns true if the value and all values below it could be read.
    pub(crate) fn is_intact_below(&self, path: &str) -> bool {
        let inside = |broken: &String| broken.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        self.is_intact(path)
            && !self.broken.range(path.to_owned()..).take_while(|broken| broken.starts_with(path)).any(inside)
    }

    /// Returns the first of these paths that the file states.
    pub(crate) fn first_written<'path>(&self, paths: &[&'path str]) -> Option<&'path str> {
        paths.iter().find(|path| self.written.contains_key(**path)).copied()
    }
}
