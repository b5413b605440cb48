//! Commands that kernels give: a ring in pinned memory, which kernels fill and somebody on the host carries out.
//!
//! A thread of a kernel takes a *ticket* (a counter in device memory, which the host never sees). The ticket names a slot and a round:
//! slot `ticket % slots`, round `ticket / slots`. Each slot has one state word, which says everything:
//!
//! | state | set by | what it means | followed by |
//! |---|---|---|---|
//! | empty | nobody | never used | published(0) |
//! | published(r) | the thread with the ticket | the command of round r can be read | done(r) or freed(r) |
//! | done(r, status) | the host | it has ended; the value can be read | published(r + 1), once the thread has seen it |
//! | freed(r) | the host | it was posted, and nobody waits for its end | published(r + 1) |
//! | closed | the host | nobody serves the ring any more | nothing |
//!
//! Whoever writes a state has written before it, visibly for both sides, what the state speaks of. So a command is never read half-written,
//! and a slot is never written over before its end was seen. The host takes commands in the order of tickets; it may end them in any.
//!
//! Nothing in here is a GPU's: every word of the ring is an atomic of 8 bytes, and [`HostKernel`] does in Rust what
//! `kernels/rackloom.cuh` does on a device. What commands mean to whom, and who has which memory, is not known here.
//!
//! Reading order: `command` (what is asked, how it ends) · `words` (where it lies) · `ring` (the host) · `host_kernel` (the kernels) ·
//! `meeting` (their waits and barriers).

mod command;
mod host_kernel;
mod meeting;
mod numbered;
mod ring;
mod words;

pub use self::command::{ANYBODY, Command, CommandKind, POSTED, SIGNAL, SIGNAL_ADDS, Status};
pub use self::host_kernel::HostKernel;
pub use self::meeting::HostTeam;
pub use self::ring::{CommandRing, QueueArgument};
pub use self::words::SLOTS_MAX;

#[cfg(test)]
mod tests;
