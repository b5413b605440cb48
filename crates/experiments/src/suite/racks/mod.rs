//! Experiments about whole racks: detection of deaths, paths, patterns of traffic and collectives.

pub(super) mod all_reduce;
pub(super) mod bisection;
pub(super) mod heartbeat;
pub(super) mod in_switch;
pub(super) mod path_loss;
pub(super) mod path_policies;
pub(super) mod patterns;
pub(super) mod rechoice;
pub(super) mod reduction_time;
