//! A seat of a rack of several processes: what it is granted, and how it opens that.
//!
//! The command starts seats and hands out vacant ones; the library takes vacant ones ([`crate::fabric::Node::join`]). Both
//! speak the same lines (`docs/control-socket.md`) and open the same wires, so it is here once. This is for these two and
//! follows them; programs use [`crate::fabric`].

pub mod answer;
mod conduct;
pub mod descriptors;
mod grant;
pub mod place;
pub mod wires;

pub use conduct::{FaultLine, FaultNotices, FaultPlayer};
pub use grant::{Grant, NewCable, Outlet, SharedMemoryPort, UdpOutlet};
