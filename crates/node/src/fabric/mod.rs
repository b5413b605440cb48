//! The public API: a node of a fabric, its memory, and what it can do to the memory of others.
//!
//! [`Fabric::local`] puts a whole rack into this process and gives one [`Node`] per GPU node. A node has [`Region`]s,
//! which peers reach by an address of (node, region, offset, key), and operations, which are [`Request`]s:
//!
//! ```
//! # use rackloom::fabric::{Fabric, Queue, RegionOptions};
//! # let plan = rackloom::fabric::Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "example")?;
//! # let fabric = Fabric::local(&plan)?;
//! # let [near, far] = fabric.nodes() else { unreachable!() };
//! let counter = far.allocate(RegionOptions::new(1, 0x5eed), 8)?;
//! // Block until it is over; this thread drives the node meanwhile.
//! let old = near.fetch_add(counter.address(0), rackloom::fabric::Width::Eight, 5).wait()?;
//! assert_eq!(old, 0);
//! // Or submit, and find the completion in a queue under a number of one's own.
//! let queue = Queue::with_capacity(16);
//! near.fetch_add(counter.address(0), rackloom::fabric::Width::Eight, 5).submit(&queue, 42)?;
//! let completion = loop {
//!     if let Some(completion) = near.poll(&queue) { break completion }
//! };
//! assert_eq!((completion.context, completion.result?.value), (42, 5));
//! // Or `.await` it, on any executor.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to | take |
//! |---|---|
//! | read a rack file | [`Plan::parse`], whose error names every mistake with its place |
//! | be all nodes of a rack, or one of many processes | [`Fabric::local`], [`Node::join`] |
//! | have memory, ours or your own | [`Node::allocate`], [`Node::register`], [`Node::register_raw`] |
//! | have memory of a GPU, ours or your own | [`Node::allocate_on_device`], [`Node::register_on_device`] |
//! | end an operation by waiting, awaiting, a queue, or not at all | [`Request::wait`], `.await`, [`Request::submit`], [`Request::posted`] |
//! | have many share frames | [`Node::batch`] |
//! | issue and poll in a loop, at the least price | [`Node::drive`] |
//! | let kernels begin operations | `Node::command_queue` |
//! | order what becomes visible, wait for all of it | [`Node::fence`], [`Node::flush`] |
//! | do collectives on slices | [`Group`] |
//! | know what a node does and waits for | [`Node::counters`], [`Node::waiting_for`] |
//!
//! Levels of completion: *accepted* (posted: the core has it), *visible* (everything else: the bytes are at their target). Every type says
//! whether threads may share it; all handles are `Send` and `Sync`. There is no global state: fabrics in one process share nothing.
//!
//! Every operation that names a peer ends with [`Error::PeerLost`] when no path to the peer is left, or with
//! [`Error::PeerLeft`] if the peer has said that it would leave. The bytes of
//! regions and of numbers in them are as in this machine's memory; all offsets and lengths are in bytes.
//!
//! Nodes form a [`Group`] to do collectives on slices. `docs/decisions/public-api.md` tells why it all is as it is.
//! A process takes a seat of a standing rack of other processes with [`Node::join`].

mod activity;
mod attendant;
mod background;
mod batch;
mod bytes;
mod core;
mod counters;
mod deaths;
mod driver;
mod element;
mod engine;
mod error;
mod faults;
mod group;
mod handled;
mod held;
#[cfg(feature = "gpu")]
mod initiated;
mod join;
mod node;
mod notices;
mod on_device;
mod order;
mod posted;
mod queue;
mod rack;
mod region;
mod report;
mod request;
mod table;
mod uses;
mod wake_thread;

pub use crate::memory::DeviceChoice;
pub use batch::Batch;
pub use counters::NodeCounters;
pub use driver::{Driver, Store};
pub use element::{Element, Number};
pub use error::Error;
pub use group::{Group, GroupOptions, GroupRequest};
#[cfg(feature = "gpu")]
pub use initiated::CommandQueue;
pub use node::Node;
pub use queue::{Completion, Queue};
pub use rack::Fabric;
pub use rackloom_collectives::{Algorithm, Collective, ElementType, ReduceOperation};
pub use rackloom_plan::{Plan, PlanError};
pub use rackloom_protocol::{
    Access, Condition, Key, NodeId, OperationError, OperationId, RegionId, RemoteAddress, Signal, SignalKind,
    Width,
};
pub use region::{Region, RegionOptions, Slice};
pub use request::{Outcome, Received, Request};
pub use table::Ended;
