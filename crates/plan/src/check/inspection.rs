//! State of one check of a plan, and functions that report mistakes.

use std::collections::BTreeSet;

use crate::model::jobs::job::JobPlan;
use crate::model::plan::Plan;
use crate::read::mistake::{Complaint, Mistake, Source};
use crate::read::positions::Positions;
use crate::setting::section::{Section, Visit};
use crate::setting::table::Key;
use crate::setting::value::Shown;

/// Selects if the job must fit into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    Judged,
    /// Not checked, because the caller replaces the job or its size.
    Open,
}

/// State of one check of a plan.
pub(super) struct Inspection<'run> {
    pub(super) plan: &'run Plan,
    /// All jobs that the file names. More than one is a mistake that has been reported.
    pub(super) jobs: &'run [JobPlan],
    pub(super) positions: &'run Positions,
    pub(super) source: &'run Source<'run>,
    pub(super) fit: Fit,
    pub(super) mistakes: Vec<Mistake>,
    /// Paths of values that are out of their range. Checks that depend on them are skipped.
    pub(super) outside: BTreeSet<String>,
    /// True if a node has less memory than the job's input and output.
    pub(super) job_is_too_large: bool,
}

impl<'run> Inspection<'run> {
    pub(super) const fn new(
        plan: &'run Plan,
        jobs: &'run [JobPlan],
        positions: &'run Positions,
        source: &'run Source<'run>,
        fit: Fit,
    ) -> Self {
        Self {
            plan,
            jobs,
            positions,
            source,
            fit,
            mistakes: Vec::new(),
            outside: BTreeSet::new(),
            job_is_too_large: false,
        }
    }

    /// Reports a mistake at the first of these paths that is written in the file.
    pub(super) fn complain(&mut self, paths: &[&str], complaint: Complaint) {
        let position = self.positions.first_written(paths).and_then(|path| self.positions.find(path));
        let mistake = self.source.mistake(position, complaint);
        // A common profile of many links is reported once.
        if !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }

    /// Returns true if all of these values could be read and are in their ranges.
    pub(super) fn intact(&self, paths: &[&str]) -> bool {
        paths.iter().all(|path| self.positions.is_intact(path) && !self.outside.contains(*path))
    }

    /// Returns true if this value and all values below it could be read and are in their ranges.
    pub(super) fn intact_below(&self, path: &str) -> bool {
        self.positions.is_intact_below(path) && !self.outside.iter().any(|outside| outside.starts_with(path))
    }

    /// Reports all numbers of a section that are outside of the ranges of their keys.
    pub(super) fn ranges_of(&mut self, section: &impl Section) {
        self.ranges(section, &|_, key| section_path(section, key));
    }

    /// Reports all numbers of a section that are outside of the ranges of their keys, for a section with several positions. `path_of`
    /// returns the path of a key below the table.
    pub(super) fn ranges(&mut self, section: &impl Section, path_of: &dyn Fn(&Self, &str) -> String) {
        self.ranges_in(|visit| section.visit(visit), path_of);
    }

    /// Reports all visited numbers that are outside of the ranges of their keys.
    pub(super) fn ranges_in(
        &mut self,
        visit: impl FnOnce(&mut dyn Visit),
        path_of: &dyn Fn(&Self, &str) -> String,
    ) {
        let mut ranges = Ranges::default();
        visit(&mut ranges);
        for (key, below, number) in ranges.outside {
            self.within(&path_of(self, &below), key, number);
        }
    }

    /// Reports a number outside of the range of its key. Returns true if it is inside.
    pub(super) fn within(&mut self, path: &str, key: &Key, number: impl Into<u64>) -> bool {
        let Some(complaint) = key.beyond_range(path, number.into()) else { return true };
        if self.intact(&[path]) {
            self.complain(&[path], complaint);
            self.outside.insert(path.to_owned());
        }
        false
    }
}

fn section_path<T: Section>(_: &T, key: &str) -> String {
    T::TABLE.path_of(key)
}

/// Numbers outside of the ranges of their keys, with paths below the section.
#[derive(Default)]
struct Ranges {
    outside: Vec<(&'static Key, String, u64)>,
    path: Vec<&'static str>,
}

impl Visit for Ranges {
    fn value(&mut self, key: &'static Key, value: &dyn Shown, _: bool) {
        let Some(number) = value.number() else { return };
        if !key.has_in_range(number) {
            let path: Vec<&str> = self.path.iter().copied().chain([key.name]).collect();
            self.outside.push((key, path.join("."), number));
        }
    }

    /// Names and addresses have no range.
    fn of_link(&mut self, _: &'static Key, _: usize, _: &dyn Shown) {}

    fn open(&mut self, key: &'static Key) {
        self.path.push(key.name);
    }

    fn close(&mut self) {
        self.path.pop();
    }
}
