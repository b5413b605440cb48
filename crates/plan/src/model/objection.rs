//! Objections to a plan by crates above this one.
//!
//! A plan holds collectives and algorithms as names. The crates that implement them decide which combinations are possible and
//! how much working space they need. They pass a function to [`crate::Plan::parse_judged`], which receives the finished plan.
//! Its objections are shown among the other mistakes of the file, at the position of the value.
//!
//! This file checks no plan.

use core::fmt;

use rackloom_collectives::Reason;

/// Subject of an objection. It determines the position that a message points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Job, or choice of the collective.
    Collective,
    /// Choice of the algorithm.
    Algorithm,
    /// Memory of the node that has least of it, compared with the sizes of the job.
    Memory,
    /// Assignment of nodes to tenants.
    Tenants,
}

/// Reason why the job of a plan is not possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// Subject of the objection.
    pub about: Subject,
    /// Description, in lower case.
    pub message: String,
    /// Correct value, or advice.
    pub hint: String,
}

impl Objection {
    /// Returns the objection of a crate that refuses the job for this reason.
    #[must_use]
    pub fn new(about: Subject, Reason { message, hint }: Reason) -> Self {
        Self { about, message, hint }
    }
}

impl core::error::Error for Objection {}

impl fmt::Display for Objection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}; hint: {}", self.message, self.hint)
    }
}
