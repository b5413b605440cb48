//! The experiments, by their number.

mod all_reduce;
mod black_hole;
mod exact_drop;
mod fetch_add_storm;
mod heartbeat;
mod loss_sweep;
mod outstanding_loads;
mod packing;
mod packing_latency;
mod path_loss;
mod patterns;
mod replay_buffer;
mod size_sweep;

use crate::experiment::Experiment;

/// All experiments.
#[must_use]
pub fn all() -> &'static [&'static Experiment] {
    const ALL: &[&Experiment] = &[
        &size_sweep::SIZE_SWEEP,
        &packing::PACKING,
        &packing_latency::PACKING_LATENCY,
        &loss_sweep::LOSS_SWEEP,
        &exact_drop::EXACT_DROP,
        &black_hole::BLACK_HOLE,
        &replay_buffer::REPLAY_BUFFER,
        &heartbeat::HEARTBEAT,
        &path_loss::PATH_LOSS,
        &all_reduce::ALL_REDUCE,
        &fetch_add_storm::FETCH_ADD_STORM,
        &outstanding_loads::OUTSTANDING_LOADS,
        &patterns::PATTERNS,
    ];
    ALL
}

/// The experiment of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Experiment> {
    all().iter().copied().find(|experiment| experiment.name == name)
}
