//! What somebody who knows more than this crate has against a plan.
//!
//! A plan holds collectives and algorithms as names; whoever can do them knows which of them go together and how much
//! working space they take. Such a judge is handed to [`crate::Plan::parse_judged`] and sees the finished plan; what it
//! says is shown among the other mistakes of the file, at the place where the value is written.
//!
//! This file judges nothing.

use core::fmt;

/// What an objection is about, so that it can be shown where that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The job, or which collective it is.
    Collective,
    /// How the collective is done.
    Algorithm,
    /// The memory of the node that has least of it, against the sizes of the job.
    Memory,
    /// Who belongs to which tenant.
    Tenants,
}

/// Why the job of a plan cannot be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// What it is about.
    pub about: Subject,
    /// What is wrong, in lower case.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

impl Objection {
    /// From the words of an error, `what is wrong; hint: what to do`.
    #[must_use]
    pub fn from_words(about: Subject, words: &str) -> Self {
        const HINT_MISSING: &str = "docs/topology-file.md says what a job takes";
        let (message, hint) = words.split_once("; hint: ").unwrap_or((words, HINT_MISSING));
        Self { about, message: message.to_owned(), hint: hint.to_owned() }
    }
}

impl core::error::Error for Objection {}

impl fmt::Display for Objection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}; hint: {}", self.message, self.hint)
    }
}
