//! The experiments, by their number.

mod all_reduce;
mod bit_errors;
mod black_hole;
mod blocked_class;
mod credit_sweep;
mod deadlock;
mod exact_drop;
mod fetch_add_storm;
mod head_of_line;
mod heartbeat;
mod loss_sweep;
mod lost_credits;
mod outstanding_loads;
mod packing;
mod packing_latency;
mod path_loss;
mod path_policies;
mod patterns;
mod pfc_headroom;
mod replay_buffer;
mod shared_buffer;
mod size_sweep;

use crate::experiment::Experiment;

/// Returns all experiments.
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
        &credit_sweep::CREDIT_SWEEP,
        &blocked_class::BLOCKED_CLASS,
        &lost_credits::LOST_CREDITS,
        &deadlock::DEADLOCK,
        &heartbeat::HEARTBEAT,
        &path_loss::PATH_LOSS,
        &all_reduce::ALL_REDUCE,
        &fetch_add_storm::FETCH_ADD_STORM,
        &outstanding_loads::OUTSTANDING_LOADS,
        &patterns::PATTERNS,
        &path_policies::PATH_POLICIES,
        &pfc_headroom::PFC_HEADROOM,
        &head_of_line::HEAD_OF_LINE,
        &shared_buffer::SHARED_BUFFER,
        &bit_errors::BIT_ERRORS,
    ];
    ALL
}

/// Returns the experiment with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Experiment> {
    all().iter().copied().find(|experiment| experiment.name == name)
}
