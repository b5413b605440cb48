//! State of one check of a plan, and functions that report mistakes.

use std::collections::BTreeSet;

use crate::model::job::JobPlan;
use crate::model::plan::Plan;
use crate::read::mistake::{Complaint, Mistake, Source};
use crate::read::positions::Positions;
use crate::schema::Table;
use crate::setting::quantity::shown;

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

    /// Reports a value outside the declared range of its key. Returns true if it is inside.
    pub(super) fn within(&mut self, table: &Table, key: &str, value: impl Into<u64>) -> bool {
        self.within_at(&table.path_of(key), table, key, value)
    }

    /// Reports a value outside the declared range of its key, for a table with several positions. Returns true if it is inside.
    pub(super) fn within_at(&mut self, path: &str, table: &Table, key: &str, value: impl Into<u64>) -> bool {
        let value = value.into();
        let (least, most, unit) = table.range_of(key);
        let fine = (least..=most).contains(&value);
        if self.intact(&[path]) && !fine {
            let range = match most {
                u64::MAX => format!("below {}", shown(least, unit)),
                most => format!("outside {} to {}", shown(least, unit), shown(most, unit)),
            };
            let hint = match most {
                u64::MAX => format!("write at least {}", shown(least, unit)),
                most => format!("write {} to {}", shown(least, unit), shown(most, unit)),
            };
            let complaint = Complaint::about(format!("`{path}` is {}, {range}", shown(value, unit)));
            self.complain(&[path], complaint.hint(hint));
            self.outside.insert(path.to_owned());
        }
        fine
    }
}
