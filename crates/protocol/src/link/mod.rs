//! One neighbour: sequence, credits, heartbeat, state.

pub mod counters;
pub mod state;
