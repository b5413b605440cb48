//! Memories of the nodes in virtual time, and the payloads of frames that refer to them.

pub(crate) mod memories;
pub(crate) mod payload;
pub(crate) mod pending_copies;
pub(crate) mod references;
pub(crate) mod seat_memory;
pub(crate) mod spans;
