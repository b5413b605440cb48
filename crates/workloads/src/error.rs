//! Mistakes of a workload or of a file that is imported: place, reason and hint.
//!
//! This file finds no mistakes. It holds and formats them.

use core::fmt;

/// Most mistakes that are kept of one workload or file.
pub const ERRORS_MAX: usize = 20;

/// Position of a mistake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// No single position.
    #[default]
    Whole,
    /// Operation of a rank, both counted from 0.
    Operation {
        /// Rank.
        rank: usize,
        /// Index of the operation in the list of its rank.
        operation: usize,
    },
    /// Position in a text. Lines and columns count from 1, columns in characters.
    Line {
        /// Line.
        line: usize,
        /// Column.
        column: usize,
    },
    /// Record of a binary file, counted from 0.
    Record {
        /// Number of the record.
        record: u64,
    },
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadError {
    /// Position of the mistake.
    pub place: Place,
    /// Description, in lower case.
    pub reason: String,
    /// Correct form, or advice.
    pub hint: String,
}

/// Mistakes of one workload or file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadErrors {
    /// Name of the file or workload.
    pub origin: String,
    /// Mistakes, at least one and at most [`ERRORS_MAX`].
    pub errors: Vec<WorkloadError>,
}

impl core::error::Error for WorkloadError {}

impl core::error::Error for WorkloadErrors {}

impl WorkloadError {
    /// Returns a mistake at `place`.
    #[must_use]
    pub fn at(place: Place, reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { place, reason: reason.into(), hint: hint.into() }
    }

    /// Returns a mistake without a single position.
    #[must_use]
    pub fn whole(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::at(Place::Whole, reason, hint)
    }

    /// Returns a mistake of an operation.
    #[must_use]
    pub fn operation(
        rank: usize,
        operation: usize,
        reason: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::at(Place::Operation { rank, operation }, reason, hint)
    }

    /// Returns a mistake in a text. `line` and `column` count from 1.
    #[must_use]
    pub fn line(line: usize, column: usize, reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::at(Place::Line { line, column }, reason, hint)
    }

    /// Adds the name of the file.
    #[must_use]
    pub fn of(self, origin: &str) -> WorkloadErrors {
        WorkloadErrors { origin: origin.to_owned(), errors: vec![self] }
    }
}

impl WorkloadErrors {
    /// Returns the first [`ERRORS_MAX`] mistakes of a file.
    #[must_use]
    pub fn new(origin: &str, mut errors: Vec<WorkloadError>) -> Self {
        errors.truncate(ERRORS_MAX);
        Self { origin: origin.to_owned(), errors }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Operation { rank, operation } => write!(formatter, "rank {rank}, operation {operation}"),
            Self::Line { line, column } => write!(formatter, "{line}:{column}"),
            Self::Record { record } => write!(formatter, "record {record}"),
        }
    }
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place != Place::Whole {
            write!(formatter, "{}: ", self.place)?;
        }
        write!(formatter, "{}; hint: {}", self.reason, self.hint)
    }
}

impl fmt::Display for WorkloadErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            let gap = if index == 0 { "" } else { "\n" };
            let separator = if matches!(error.place, Place::Line { .. }) { ":" } else { ": " };
            write!(formatter, "{gap}{}{separator}{error}", self.origin)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_stands_behind_the_name_of_the_file() {
        let errors = vec![
            WorkloadError::line(3, 7, "no such rank", "write 0"),
            WorkloadError::operation(2, 5, "no receive", "add it"),
            WorkloadError::whole("no ranks", "add one"),
        ];
        assert_eq!(
            WorkloadErrors::new("w.txt", errors).to_string(),
            "w.txt:3:7: no such rank; hint: write 0\n\
             w.txt: rank 2, operation 5: no receive; hint: add it\n\
             w.txt: no ranks; hint: add one"
        );
    }

    #[test]
    fn the_number_of_mistakes_is_bounded() {
        let many = vec![WorkloadError::whole("a", "b"); 50];
        assert_eq!(WorkloadErrors::new("w", many).errors.len(), 20);
    }
}
