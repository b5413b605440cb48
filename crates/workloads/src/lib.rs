//! Workloads of GPU racks as data: for each rank a graph of compute, messages and collectives.
//!
//! - [`model`]: the graph.
//! - [`check()`]: the checks that a workload can be performed.
//! - [`text`]: the text format.
//! - [`machine`]: computations from flops and bytes.
//! - [`generate`]: training steps and inference of a transformer.
//! - [`mod@import`]: files of other tools.
//!
//! This crate runs nothing: the job of a workload is in `crates/jobs/src/workload`.
#![deny(unsafe_code)]

pub mod check;
pub mod error;
pub mod generate;
pub mod import;
mod located;
pub mod machine;
pub mod model;
mod ranks;
pub mod text;
mod tokens;

pub use check::{check, check_durations};
pub use error::{Place, WorkloadError, WorkloadErrors};
pub use machine::{Machine, Rates};
pub use model::{Group, Operation, RankOperations, Work, Workload};
