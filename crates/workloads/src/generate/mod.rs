//! Training steps and inference of a transformer, from five numbers.
//!
//! [`Model`] derives parameters, floating-point operations and bytes. A [`Machine`](crate::Machine) turns them into durations, or leaves
//! them as work for the devices of a rack.
//! [`Degrees`] divides the work among ranks. Each generator returns a workload that satisfies [`check`](crate::check()).
//!
//! `docs/workloads.md` has the formulas with their sources. The update of the parameters, dropout, normalisation and the scores of
//! attention are not part of the durations.

mod degrees;
mod groups;
mod inference;
mod list;
mod model;
mod refused;
mod schedule;
mod strategies;
mod training;

pub use degrees::{Degrees, Position};
pub use inference::{decode, prefill};
pub use model::Model;
pub use refused::Refused;
pub use schedule::Schedule;
pub use strategies::{data_parallel, expert_parallel, pipeline_parallel, tensor_parallel};
pub use training::training;

#[cfg(test)]
mod tests;
