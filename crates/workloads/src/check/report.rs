//! Mistakes that are found, up to a bound.

use crate::error::{ERRORS_MAX, Place, WorkloadError};

/// Mistakes in the order in which they are found.
#[derive(Debug, Default)]
pub(super) struct Report {
    errors: Vec<WorkloadError>,
}

impl Report {
    /// Adds a mistake, unless the report is full.
    pub(super) fn add(&mut self, error: WorkloadError) {
        if !self.is_full() {
            self.errors.push(error);
        }
    }

    /// Returns true if no further mistake is kept.
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() >= ERRORS_MAX
    }

    /// Returns the mistakes in the order of ranks and operations, if there are any.
    pub(super) fn finish(mut self) -> Result<(), Vec<WorkloadError>> {
        self.errors.sort_by_key(|error| match error.place {
            Place::Operation { rank, operation } => (rank, operation),
            _ => (0, 0),
        });
        if self.errors.is_empty() { Ok(()) } else { Err(self.errors) }
    }
}
