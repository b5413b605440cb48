//! Reason for a refusal, in two parts that front ends show in different ways.

use core::fmt;

/// Message and hint of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Description, in lower case.
    pub message: String,
    /// Correct value, or advice.
    pub hint: String,
}

impl Reason {
    /// Returns a reason.
    #[must_use]
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

/// Displays both parts in one line.
impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}; hint: {}", self.message, self.hint)
    }
}
