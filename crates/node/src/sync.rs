//! Types and functions with which threads synchronise in the files that `crates/models` checks.
//!
//! `crates/models` compiles these files a second time, with a module of this name that takes the types from `loom`. Here they are those of the
//! standard library, so the compiled code is the same as without this module.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Mutex, MutexGuard};
pub(crate) use std::thread::yield_now;
