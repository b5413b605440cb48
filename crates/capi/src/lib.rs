//! The C library of Rackloom: `include/rackloom.h` is made from this crate.
//!
//! A front end without logic: each function is a few lines over [`rackloom::fabric`] or `rackloom-runtime`. Objects are handles
//! (`handles`), results are codes (`codes`), and no panic leaves a call (`guard`).
//!
//! Reading order: `codes` · `guard` · `handles` · `pointers` · one file per area of the header.
//!
//! # Safety
//! Every function with a pointer among its arguments is unsafe. Unless its description says more, a pointer is null, or it points to
//! memory of the described length that is valid for the access, does not change during the call unless the function changes it, and is not
//! accessed by other threads in a conflicting manner meanwhile. A text ends with a zero. A structure with a field `size` has as many bytes as that says.
//!
//! The attribute `unsafe(no_mangle)` is needed so that C finds the functions. It is sound because all names begin with `rackloom_`, so they replace no
//! symbol of another library.

#![allow(clippy::missing_safety_doc, reason = "the rule for all functions is above")]

pub mod allocation;
pub mod block_pool;
mod callback;
mod codes;
pub mod command_queue;
pub mod composite;
pub mod driver;
mod driving;
pub mod fabric;
pub mod group;
mod guard;
mod handles;
mod in_progress;
pub mod leaks;
pub mod library;
pub mod node;
pub mod operation;
pub mod peer_region;
pub mod pending;
mod pointers;
pub mod pool;
pub mod queue;
pub mod rack;
pub mod region;

pub use codes::{CompletionRecord, ErrorCode, RACKLOOM_ANY_NODE, Reason};
