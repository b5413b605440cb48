//! The public API: nodes of a fabric, their memory, and operations on the memory of other nodes.
//!
//! [`Fabric::local`] runs a whole rack in this process and gives one [`Node`] per GPU node. A node has [`Region`]s, which peers address by
//! (node, region, offset, key). Operations are [`Request`]s:
//!
//! ```
//! # use rackloom::fabric::{Fabric, Queue, RegionOptions};
//! # let plan = rackloom::fabric::Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "example")?;
//! # let fabric = Fabric::local(&plan)?;
//! # let [initiator, target] = fabric.nodes() else { unreachable!() };
//! let counter = target.allocate(RegionOptions::new(1, 0x5eed), 8)?;
//! // Block until the operation completes. This thread drives the node meanwhile.
//! let old = initiator.fetch_add::<u64>(counter.address(0), 5).wait()?;
//! assert_eq!(old, 0);
//! // Or submit it. The completion arrives in a queue, with a context number of the caller's choice.
//! let queue = Queue::with_capacity(16);
//! initiator.fetch_add::<u64>(counter.address(0), 5).submit(&queue, 42)?;
//! let completion = loop {
//!     if let Some(completion) = initiator.poll(&queue) { break completion }
//! };
//! assert_eq!((completion.context, completion.result?.value), (42, 5));
//! // Or `.await` it, on any executor.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | read a rack file | [`Plan::parse`], whose error lists every mistake with its line |
//! | run all nodes of a rack in one process, or one node of a rack of processes | [`Fabric::local`], [`Node::join`] |
//! | run as a rank of a job on a standing rack | [`JobSeat`] |
//! | allocate memory, or register memory of your own | [`Node::allocate`], [`Node::register`], [`Node::register_raw`] |
//! | allocate many small blocks | [`Node::pool`] |
//! | allocate or register memory of a GPU | [`Node::allocate_on_device`], [`Node::register_on_device`] |
//! | complete an operation by blocking, by `.await`, through a queue, or without completion | [`Request::wait`], `.await`, [`Request::submit`], [`Request::posted`] |
//! | begin an operation now, and test it, wait for it or cancel it later | [`Request::start`], [`wait_any`], [`wait_all`] |
//! | await the next completion of a queue, or watch it with `epoll` | [`Queue::next`], [`Queue::descriptor`] |
//! | let several operations share frames | [`Node::batch`] |
//! | issue and poll in a loop at the lowest cost | [`Node::drive`] |
//! | let kernels begin operations | `Node::command_queue` |
//! | map a region of a peer of the same server | [`Node::map_peer`], [`Region::map_peer`] |
//! | order operations, or wait until they are visible | [`Node::fence`], [`Node::flush`] |
//! | run collectives on slices | [`Group`] |
//! | see what a node does and waits for | [`Node::counters`], [`Node::waiting_for`] |
//!
//! There are two levels of completion. *Accepted*: the core has taken the operation (posted operations). *Visible*: the bytes are at their
//! target (all others). All handles are `Send` and `Sync`; each type documents its threading. There is no global state: fabrics in one
//! process share nothing.
//!
//! An operation that names a peer ends with [`Error::PeerLost`] when no path to the peer is left, and with [`Error::PeerLeft`] if the peer
//! announced its departure. Regions hold bytes in the byte order of this machine. All offsets and lengths are in bytes.
//!
//! `docs/decisions/public-api.md` gives the reasons of this design.

mod allocations;
mod batch;
mod completion;
mod composite;
mod counters;
mod driver;
mod engine;
mod error;
mod group;
#[cfg(feature = "gpu")]
mod initiated;
mod leak_listener;
mod local;
mod memory;
mod memory_pool;
mod node;
mod on_device;
mod pending;
mod pool;
mod queue;
mod rack;
mod report;
mod request;
mod seat;
mod seat_control;
#[cfg(feature = "gpu")]
mod stream_events;
mod switches;

pub use crate::memory::DeviceChoice;
pub use allocations::{PointerAttributes, RegionHandle};
pub use batch::Batch;
pub use completion::{Completion, Ended};
pub use composite::{CompositeRequest, Strided};
pub use counters::NodeCounters;
pub use driver::Driver;
pub use engine::order::Store;
pub use error::{Error, Invalid};
pub use group::{Group, GroupOptions, GroupRequest, PersistentCollective, Rechoice, Reducer, Reduction};
#[cfg(feature = "gpu")]
pub use initiated::CommandQueue;
pub use local::peer_region::{PeerAccess, PeerRegion};
pub use memory::element::{Element, Number};
pub use memory::region::{Region, RegionOptions, Slice};
pub use memory::word::Word;
pub use memory_pool::MemoryPool;
pub use node::{Node, SeatBefore};
pub use pending::{Pending, wait_all, wait_any};
pub use pool::NodePool;
pub use queue::{Next, Queue};
pub use rack::Fabric;
pub use rackloom_collectives::adapt::Cause as RechoiceCause;
pub use rackloom_collectives::{Algorithm, Collective, ElementType, ReduceOperation};
pub use rackloom_plan::faults::{QueuePairEffect, QueuePairFault};
pub use rackloom_plan::{Plan, PlanError};
pub use rackloom_protocol::{
    Access, Condition, InvalidCommand, Key, NodeId, OperationError, OperationId, RegionId, RemoteAddress,
    Signal, SignalKind, Tenant, Width,
};
pub use request::{Outcome, Received, Request};
pub use seat::job::JobSeat;
#[cfg(feature = "gpu")]
pub use stream_events::{KernelAccess, StreamEvent};
