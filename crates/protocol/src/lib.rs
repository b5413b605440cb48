//! Protocol core of the fabric: pure state machines without clock, sockets, threads or files.
//!
//! A member of the fabric is a GPU node's [`Endpoint`] or a [`Switch`]. The engine passes input to it
//! (`handle_frame`, `handle_command`, `handle_memory_done`, `handle_timeout`) and polls its output (`poll_memory`,
//! `poll_transmit`, `poll_release`, `poll_event`, `poll_timeout`). Time is an argument. [`drain`] fixes the order of
//! polling, so that a real process and the simulator cannot differ in it.
//!
//! Modules, in reading order: [`time`], [`ids`] · [`wire`] (bytes and values) · [`link`] (one neighbour) ·
//! [`transport`] (one remote node) · [`route`] (the graph and its tables) · [`memory`] (regions and access) ·
//! [`operation`] (store, load, bulk, atomic, signal) · [`forwarding`] (links, routes and transit of a member) ·
//! [`endpoint`] · [`switch`] · [`event`], [`error`] · [`contract`] (what an engine provides, and its order of polling).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod config;
pub mod contract;
pub mod endpoint;
pub mod error;
pub mod event;
pub mod forwarding;
pub mod ids;
pub mod inline_queue;
pub mod inspect;
pub mod link;
pub mod memory;
pub mod operation;
pub mod per_channel;
pub mod planted;
pub mod route;
pub mod switch;
pub mod time;
pub mod transmit;
pub mod transport;
pub mod wire;

pub use config::{
    CongestionControl, CreditConfig, CreditUpdates, FlushPolicy, ForwardingConfig, ForwardingPriority,
    LinkTimers, MemberConfig, OrderScope, PackingConfig, PackingMode, PathConfig, PathPolicy, PauseConfig,
    PortConfig, RequestDrain, RetransmissionMode, RetryConfig, SharedBufferConfig, TransitQueues,
    TransportConfig,
};
pub use contract::{
    Arithmetic, BatchedWires, Combine, Comparison, DirectMemory, Fill, FrameCompletion, JobMemory,
    KeptFrames, LeavingPayload, Member, Memory, Number, PayloadPath, PinnedFrames, PollSteps, Shortcuts,
    TimeoutExtensions, Wires, Write, drain,
};
pub use endpoint::{Departure, Endpoint, ListedStore};
pub use error::{CommandRefused, InvalidCommand, OperationError};
pub use event::{DropReason, Event, LinkCause};
pub use ids::*;
pub use inspect::Inspect;
pub use link::heartbeat::Overdue;
pub use link::state::LinkState;
pub use memory::{
    Access, FrameRange, LeaseId, MemoryAccess, MemoryDone, MemoryFault, MemoryRequest, MemoryToken,
    RegionConfig,
};
pub use operation::{
    Atomic, AtomicKind, Command, Completion, Condition, LocalRange, OperationId, RemoteAddress, Signal,
    SignalKind, Width,
};
pub use route::channels::{ArbiterKind, CHANNELS_MAX, ChannelConfig, Rise};
pub use route::graph::{Edge, Graph, GraphPort, MemberRole};
pub use switch::Switch;
pub use time::Instant;
pub use transmit::Following;
