//! One running member of the fabric: a GPU node or a switch, with real memory, real frames and the wall clock.
//!
//! The protocol core ([`rackloom_protocol`]) makes all decisions and performs no input or output. This crate adds frame devices ([`wires`]), bytes
//! ([`memory`]), time ([`clock`]), sleep ([`waiting`]), and the loop that joins them ([`runtime`]). Members of one server may map one another's
//! memory instead of using the wire ([`sharing`]). [`pool`] allocates blocks of a node's own memory. [`namespaces`] creates the virtual cables of the
//! packet wire. [`ip`] is the network interface of a program on a seat. [`seat`] opens the devices that a seat of a rack of several processes is granted.
//!
//! This crate starts no processes, prints nothing and never exits. The command-line program does that.

mod arrivals;
pub mod availability;
mod barrier;
mod biased_lock;
#[cfg(test)]
mod biased_lock_tests;
pub mod clock;
mod copying;
pub mod fabric;
mod fetch;
pub mod hosts;
pub mod ip;
mod mapping;
pub mod memory;
pub mod namespaces;
pub mod pool;
pub mod runtime;
pub mod seal;
pub mod seat;
pub mod sharing;
mod slack;
mod stopwatch;
mod sync;
pub mod waiting;
mod window;
pub mod wires;

/// Memory, streams and kernels of GPUs that belong to no node.
#[cfg(feature = "gpu")]
pub use rackloom_gpu as gpu;

pub use arrivals::ArrivalWatch;
pub use clock::Clock;
pub use memory::HostMemory;
pub use runtime::Runtime;
pub use waiting::WaitPolicy;
pub use wires::{Device, Ports};

/// Examples of the library's user documentation, run as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryPage;
