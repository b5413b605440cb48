//! Clocks, latencies and timers.

pub(crate) mod clock;
pub(crate) mod stated;
pub(crate) mod timers;
pub(crate) mod timing;
pub(crate) mod transfer;
