//! The experiments, by their number.

mod buffers;
mod efficiency;
mod losses;
mod racks;

use crate::experiment::Experiment;

/// Returns all experiments.
#[must_use]
pub fn all() -> &'static [&'static Experiment] {
    const ALL: &[&Experiment] = &[
        &efficiency::size_sweep::SIZE_SWEEP,
        &efficiency::packing::PACKING,
        &efficiency::packing_latency::PACKING_LATENCY,
        &losses::loss_sweep::LOSS_SWEEP,
        &losses::exact_drop::EXACT_DROP,
        &losses::black_hole::BLACK_HOLE,
        &losses::replay_buffer::REPLAY_BUFFER,
        &buffers::credit_sweep::CREDIT_SWEEP,
        &buffers::blocked_class::BLOCKED_CLASS,
        &losses::lost_credits::LOST_CREDITS,
        &buffers::deadlock::DEADLOCK,
        &racks::heartbeat::HEARTBEAT,
        &racks::path_loss::PATH_LOSS,
        &racks::all_reduce::ALL_REDUCE,
        &losses::fetch_add_storm::FETCH_ADD_STORM,
        &efficiency::outstanding_loads::OUTSTANDING_LOADS,
        &racks::patterns::PATTERNS,
        &racks::path_policies::PATH_POLICIES,
        &buffers::pfc_headroom::PFC_HEADROOM,
        &buffers::head_of_line::HEAD_OF_LINE,
        &buffers::shared_buffer::SHARED_BUFFER,
        &losses::bit_errors::BIT_ERRORS,
        &buffers::two_tenants::TWO_TENANTS,
        &racks::rechoice::RECHOICE,
        &efficiency::packing_load::PACKING_LOAD,
        &racks::bisection::BISECTION,
        &efficiency::device_paths::DEVICE_PATHS,
        &racks::reduction_time::REDUCTION_TIME,
        &buffers::incast::INCAST,
        &racks::in_switch::IN_SWITCH,
    ];
    ALL
}

/// Returns the experiment with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Experiment> {
    all().iter().copied().find(|experiment| experiment.name == name)
}
