//! Fault scripts: faults, their targets and times, and the expected end of a run.
//!
//! A fault script (`docs/fault-scripts.md`) is read against a plan, so every name in it is a link or a member of that
//! rack (`read`, `select`). One [`FaultScheduler`] per member computes the active faults at each time. The simulator and the running
//! members use the same type. [`Conditions`] describes the faults of one direction of a link.
//!
//! This module applies no fault, evaluates no run, and reads no clock.

mod conditions;
mod draw;
mod exchange;
mod expectations;
mod frame_part;
mod kind;
mod memory;
mod queue_pair;
mod read;
mod scheduler;
mod script;
mod select;
mod shrink;
#[cfg(test)]
mod tests;
mod timeline;
mod write;

pub use crate::model::links::pick::Pick;
pub use conditions::Conditions;
pub use draw::{DrawLimits, draw};
pub use expectations::{ExpectedEnd, FaultExpectations, RequiredEvents};
pub use frame_part::FramePart;
pub use kind::{FaultKind, INJECT_OPTIONS, InjectOption};
pub use memory::{MemoryConditions, MemoryFaults};
pub use queue_pair::{QueuePairEffect, QueuePairFault};
pub use scheduler::{FaultAction, FaultScheduler};
pub use script::{Fault, FaultEvent, FaultScript, JobPosition, LinkDirection, Trigger};
pub use shrink::shrink;
pub use timeline::Timing;
