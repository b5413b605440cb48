//! The closed forms that runs are held against.
//!
//! Each function states its inputs by name and unit and computes one formula. None sees a plan, a simulator or a
//! measurement; headers are summed here from what is published, and not taken from the code that accounts for them.

pub mod balance;
pub mod bisection;
pub mod blocking;
pub mod buffer;
pub mod collective;
pub mod congestion;
pub mod credits;
pub mod device;
pub mod failure;
pub mod latency;
pub mod pause;
pub mod retry;
pub mod wire;
