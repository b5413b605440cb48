//! Reasons why a row has no figure.

use std::io;

/// Reason why a figure is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MeasureError {
    /// The machine does not allow the measurement, or lacks what it needs.
    NotHere(String),
    /// A part that should work failed.
    Failed(String),
    /// The user interrupted the command.
    Interrupted,
}

impl From<io::Error> for MeasureError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<rackloom::fabric::Error> for MeasureError {
    fn from(error: rackloom::fabric::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<rackloom::memory::AllocateError> for MeasureError {
    fn from(error: rackloom::memory::AllocateError) -> Self {
        Self::Failed(error.to_string())
    }
}
