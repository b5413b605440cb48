//! Outcomes of runs: exits, failures, expectations, and the parts of a report that do not come from members.

pub mod exit;
pub mod expectations;
pub mod failure;
pub mod findings;
pub mod meta;
pub mod progress;
pub mod topology;
pub mod workload;
