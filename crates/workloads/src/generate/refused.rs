//! Reasons for which a workload cannot be generated.

/// Reason for which a workload cannot be generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; hint: {hint}")]
pub struct Refused {
    /// Description, in lower case.
    pub reason: String,
    /// Correct value, or advice.
    pub hint: String,
}

impl Refused {
    /// Returns a reason with advice.
    pub(super) fn new(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { reason: reason.into(), hint: hint.into() }
    }
}
