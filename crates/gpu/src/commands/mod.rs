//! Commands from kernels to the host: a ring in pinned memory that kernels fill and the host serves.
//!
//! A thread of a kernel takes a *ticket* (a counter in device memory, which the host never sees). The ticket names a slot and a round:
//! slot `ticket % slots`, round `ticket / slots`. Each slot has one state word:
//!
//! | state | set by | meaning | followed by |
//! |---|---|---|---|
//! | empty | initial state | never used | published(0) |
//! | published(r) | the thread with the ticket | the command of round r can be read | done(r) or freed(r) |
//! | done(r, status) | the host | the command has ended; the value can be read | published(r + 1), once the thread has seen it |
//! | freed(r) | the host | the command was posted, and no thread waits for its end | published(r + 1) |
//! | closed | the host | the ring is not served any more | nothing |
//!
//! The side that writes a state has written before it, visibly for both sides, the data that the state announces. So a command is never
//! read half-written, and a slot is never written over before its end was seen. The host takes commands in the order of tickets and may
//! end them in any order.
//!
//! Nothing in here needs a GPU: every word of the ring is an atomic of 8 bytes, and [`HostKernel`] does in Rust what
//! `crates/gpu/kernels/rackloom.cuh` does on a device. This module does not interpret commands, and does not know who owns which memory.
//!
//! Reading order: `command` (requests and results) · `words` (layout) · `ring` (the host) · `host_kernel` (the kernels) ·
//! `meeting` (their waits and barriers).

mod command;
mod host_kernel;
mod meeting;
mod numbered;
mod ring;
mod words;

pub use self::command::{ANY_PEER, Command, CommandKind, POSTED, SIGNAL, SIGNAL_ADDS, Status};
pub use self::host_kernel::HostKernel;
pub use self::meeting::{HostTeam, HostWords};
pub use self::ring::{CommandRing, QueueArgument};
pub use self::words::SLOTS_MAX;

#[cfg(test)]
mod tests;
