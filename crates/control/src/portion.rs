//! Progress of a job in pieces.

use serde::{Deserialize, Serialize};

/// Progress of a rank's part of a job, counted in pieces that matter to a user: runs, phases, measurements.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Portion {
    /// Number of completed pieces.
    pub done: u64,
    /// Number of all pieces.
    pub total: u64,
}
