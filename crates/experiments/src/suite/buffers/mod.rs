//! Experiments about credits, pauses and queues: how much buffer a link or a switch needs, and how classes block each other.

pub(super) mod blocked_class;
pub(super) mod credit_sweep;
pub(super) mod deadlock;
pub(super) mod head_of_line;
pub(super) mod incast;
pub(super) mod pfc_headroom;
pub(super) mod shared_buffer;
pub(super) mod two_tenants;
