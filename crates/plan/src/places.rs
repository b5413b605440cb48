//! Where in the file each value was written.
//!
//! Checks work on the finished plan, which knows no file; they ask here by path (`timers.heartbeat_interval`,
//! `links.n0--n1.loss`) where to point. A plan that a command line has changed is checked with no places at all.

use std::collections::{BTreeMap, BTreeSet};

use crate::mistake::Place;

/// Places by path.
#[derive(Debug, Default)]
pub(crate) struct Places {
    written: BTreeMap<String, Place>,
    broken: BTreeSet<String>,
    origins: BTreeMap<String, String>,
}

impl Places {
    /// This value stands there.
    pub(crate) fn note(&mut self, path: String, place: Place) {
        self.written.insert(path, place);
    }

    /// This value could not be read and has been complained about: the default that stands in for it must not be
    /// judged.
    pub(crate) fn note_broken(&mut self, path: String) {
        self.broken.insert(path);
    }

    /// The value of this path was inherited: it is written at that path, if anywhere.
    pub(crate) fn note_origin(&mut self, path: String, origin: String) {
        self.origins.insert(path, origin);
    }

    /// The path at which an inherited value is written, if it is.
    pub(crate) fn origin_of(&self, path: &str) -> Option<&str> {
        self.origins.get(path).map(String::as_str)
    }

    /// Where this value was written, if it was.
    pub(crate) fn find(&self, path: &str) -> Option<Place> {
        self.written.get(path).copied()
    }

    /// Whether this value is what the user meant.
    pub(crate) fn is_intact(&self, path: &str) -> bool {
        !self.broken.contains(path)
    }

    /// Whether this value and all that are written below it are what the user meant.
    pub(crate) fn is_intact_below(&self, path: &str) -> bool {
        let inside = |broken: &String| broken.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        self.is_intact(path)
            && !self.broken.range(path.to_owned()..).take_while(|broken| broken.starts_with(path)).any(inside)
    }

    /// The first of these paths that was written.
    pub(crate) fn first_written<'path>(&self, paths: &[&'path str]) -> Option<&'path str> {
        paths.iter().find(|path| self.written.contains_key(**path)).copied()
    }
}
