//! Memory of a node that peers may access.

pub(super) mod bytes;
pub(super) mod device_memory;
pub(super) mod element;
pub(super) mod pooled;
pub(super) mod region;
pub(super) mod word;
