//! Experiments about lost and wrong frames: retransmission, replay, and effects that happen exactly once.

pub(super) mod bit_errors;
pub(super) mod black_hole;
pub(super) mod exact_drop;
pub(super) mod fetch_add_storm;
pub(super) mod loss_sweep;
pub(super) mod lost_credits;
pub(super) mod replay_buffer;
