//! Defaults that no key of a section has.

use crate::model::jobs::job::{JobKind, JobPlan, LitmusPlan};

/// Memory of a node whose file states none, in bytes.
pub(crate) const MEMORY_BYTES: u64 = 16 << 20;

/// Job of a rack whose file states none.
pub(crate) const JOB: JobPlan =
    JobPlan { kind: JobKind::Litmus, litmus: LitmusPlan { bytes_max: 1 << 20, rounds: 1 } };
