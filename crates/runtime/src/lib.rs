//! Racks of processes: start, inspect, inject faults, take down.
//!
//! A rack is one supervisor and one process per member. [`run::Run`] runs a rack for the length of one job, [`standing`] starts racks in the
//! background and controls them. [`seat`] is the process of one member. A program that starts racks names a program whose hidden commands run
//! supervisors and seats ([`machine::program::Program`]); the `rackloom` command is one.
//!
//! This crate does not read arguments, print or exit. Results are values, warnings go to a [`run::RackObserver`].
//!
//! Reading order: `request` (from options and files to a plan) · `machine` (what the host provides) · `outcome` (how a run ends) · `channel`
//! (control sockets) · `supervisor` · `seat` · `run` and `standing` · `capture` (frames in files).

#![deny(clippy::print_stdout, clippy::print_stderr)] // Only the command prints.

pub mod capture;
mod channel;
pub mod machine;
pub mod outcome;
pub mod request;
pub mod run;
pub mod seat;
pub mod standing;
mod supervisor;
pub mod units;
