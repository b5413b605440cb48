//! Verbs without RDMA hardware: the device `rackloom0`, its objects, their state rules and the data path.
//!
//! Five parts, the lowest first. `layout` has the structures of the ABI and nothing else. `engine` is the device: a state machine that
//! gets calls and the time, and that fills completion queues; it reaches other queue pairs through a [`engine::Transport`]. `fabric` is the
//! transport to other processes. `cm` manages connections. `abi` has the exported functions: they check pointers, convert structures and call the engine of the process.
//!
//! Reading order: `layout` · `engine/rules.rs` (state rules) · `engine/transport.rs` · `engine/send.rs` and `engine/respond.rs` (data path) · `cm` · `fabric` ·
//! `abi/guard.rs` · one file per kind of object.
//!
//! `docs/decisions/verbs.md` has the list of calls and limits.
//!
//! # Safety
//! Every exported function is unsafe. A pointer is null, or it comes from this library and its object is not destroyed, or it points to memory of
//! the program with the structure that the manual page of the function names. Memory of a region stays mapped until the region is deregistered.
//!
//! The attribute `unsafe(no_mangle)` is needed so that programs find the functions. It is sound as long as the process loads no other library of this name.

#![allow(clippy::missing_safety_doc, reason = "the rule for all functions is above")]

pub mod abi;
pub mod cm;
pub mod engine;
pub mod fabric;
pub mod layout;
