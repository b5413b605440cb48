//! Experiments about the share of a link that is payload, and about filling a round trip.

pub(super) mod device_paths;
pub(super) mod outstanding_loads;
pub(super) mod packing;
pub(super) mod packing_latency;
pub(super) mod packing_load;
pub(super) mod size_sweep;
