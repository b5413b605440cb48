//! A seat of a rack of several processes: the wires that it is granted, and how it opens them.
//!
//! The command starts seats and hands out vacant ones. The library takes vacant ones ([`crate::fabric::Node::join`]). Both use the same protocol
//! (`docs/control-socket.md`) and open the same wires, so the code is here once. This module is for these two and changes with them. Programs use
//! [`crate::fabric`].

pub mod answer;
pub mod descriptors;
mod fault_player;
pub mod report;
pub mod run_directory;
pub mod status_page;
mod status_sequence;
#[cfg(test)]
mod status_sequence_tests;
pub mod wires;

pub use fault_player::{FaultLine, FaultNotices, FaultPlayer};
pub use rackloom_control::grant::{Grant, NewCable, Outlet, SharedMemoryPort, UdpOutlet};
