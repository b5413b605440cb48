//! How a run ends: outcomes, failures, expectations, and what a report holds beside the members' results.

pub mod exit;
pub mod expectations;
pub mod failure;
pub mod findings;
pub mod headway;
pub mod meta;
