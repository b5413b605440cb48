//! Exported functions of `libibverbs.so.1`, by kind of object.
//!
//! A function checks pointers, converts structures, and calls the engine of the process (`process`). Results and panics pass `guard`. The
//! list of exported names and their versions is `crates/verbs/ibverbs/libibverbs.map`.

mod acknowledgements;
pub mod address;
pub mod cm;
pub mod completion;
mod context;
pub mod device;
pub mod domain;
pub mod event;
mod guard;
pub mod post;
mod process;
pub mod query;
pub mod queue_pair;
pub mod refused;
pub mod shared;
pub mod sysfs;
pub mod text;

pub use process::{NODES_VARIABLE, RACK_VARIABLE, RANK_VARIABLE, SEAT_VARIABLE};
