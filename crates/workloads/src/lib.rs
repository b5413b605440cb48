//! Workloads of GPU racks as data: for each rank a graph of compute, messages and collectives.
//!
//! - [`model`]: the graph, and the checks that it can be performed.
//!
//! This crate runs nothing: the job of a workload is in `crates/jobs/src/workload`.

pub mod model;

pub use model::{Group, Operation, RankOperations, Work, Workload};
