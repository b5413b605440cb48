//! Training steps with one kind of parallelism each.

use crate::generate::degrees::Degrees;
use crate::generate::model::Model;
use crate::generate::refused::Refused;
use crate::generate::training::training;
use crate::machine::Machine;
use crate::model::Workload;

/// Returns a step of replicas that process different tokens and reduce the gradients of each layer.
///
/// # Errors
///
/// Returns the number that is out of range.
pub fn data_parallel(model: &Model, machine: &Machine, ranks: u32) -> Result<Workload, Refused> {
    training(model, machine, &Degrees { data: ranks, ..Degrees::default() })
}

/// Returns a step of ranks that divide each matrix and reduce the hidden state four times per layer.
///
/// # Errors
///
/// Returns the number that is out of range.
pub fn tensor_parallel(model: &Model, machine: &Machine, ranks: u32) -> Result<Workload, Refused> {
    training(model, machine, &Degrees { tensor: ranks, ..Degrees::default() })
}

/// Returns a step of stages that alternate between forward and backward passes of micro-batches.
///
/// # Errors
///
/// Returns the number that is out of range.
pub fn pipeline_parallel(
    model: &Model,
    machine: &Machine,
    stages: u32,
    micro_batches: u32,
) -> Result<Workload, Refused> {
    training(model, machine, &Degrees { pipeline: stages, micro_batches, ..Degrees::default() })
}

/// Returns a step of ranks that hold one expert of each layer each, and exchange tokens four times per layer.
///
/// # Errors
///
/// Returns the number that is out of range.
pub fn expert_parallel(model: &Model, machine: &Machine, ranks: u32) -> Result<Workload, Refused> {
    training(model, machine, &Degrees { expert: ranks, ..Degrees::default() })
}
