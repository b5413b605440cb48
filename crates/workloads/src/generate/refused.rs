//! Reasons for which a workload cannot be generated.

use crate::check::check_durations;
use crate::model::Workload;

/// Reason for which a workload cannot be generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; hint: {hint}")]
pub struct Refused {
    /// Description, in lower case.
    pub reason: String,
    /// Correct value, or advice.
    pub hint: String,
}

/// Returns the workload, unless a rank computes for longer than workloads may.
pub(super) fn within_time(workload: Workload) -> Result<Workload, Refused> {
    match check_durations(&workload) {
        Ok(()) => Ok(workload),
        Err(beyond) => {
            Err(Refused::new(beyond.reason, "use a smaller model, or a machine with higher rates"))
        }
    }
}

impl Refused {
    /// Returns a reason with advice.
    pub(super) fn new(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { reason: reason.into(), hint: hint.into() }
    }
}
