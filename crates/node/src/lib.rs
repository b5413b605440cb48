//! One running member of the fabric: a GPU node or a switch, with real memory, real frames and the wall clock.
//!
//! The protocol core ([`rackloom_protocol`]) decides everything; this crate gives it what a core must not have:
//! frame devices ([`wires`]), bytes ([`memory`]), time ([`clock`]), sleep ([`waiting`]) and the one loop that joins
//! them ([`runtime`]). Beside the wire, members of one server may map each other's memory ([`sharing`]), and [`pool`]
//! hands out blocks of one's own. [`namespaces`] lays the cables of the packet wire; [`seat`]
//! opens what a seat of a rack of several processes is granted.
//!
//! Nothing here starts processes, prints or exits; that is the command's business.

mod arrivals;
pub mod availability;
mod barrier;
pub mod clock;
pub mod fabric;
mod favoured;
mod fetch;
pub mod hosts;
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
pub mod waiting;
mod window;
pub mod wires;

/// Devices, streams and kernels beside those of nodes.
#[cfg(feature = "gpu")]
pub use rackloom_gpu as gpu;

pub use arrivals::ArrivalWatch;
pub use clock::Clock;
pub use memory::HostMemory;
pub use runtime::Runtime;
pub use waiting::WaitPolicy;
pub use wires::{Device, Ports};

/// The examples of the page for users of the library, run with the others.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryPage;
