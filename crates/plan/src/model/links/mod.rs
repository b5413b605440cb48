//! Links: cables, loss, flow control, retry and the wire that carries frames.

pub(crate) mod bit_errors;
pub(crate) mod channels;
pub(crate) mod credits;
pub mod headers;
pub(crate) mod link;
pub(crate) mod loss;
pub(crate) mod of_link;
pub(crate) mod pause;
pub(crate) mod pause_headroom;
pub(crate) mod pick;
pub(crate) mod retry;
pub(crate) mod retry_timers;
pub(crate) mod wire;
