//! The device: objects, state rules and the data path, without pointers of C and without a clock.
//!
//! A call is a method of [`Engine`]; the ones that may start or repeat an operation get the time in nanoseconds. Errors are the error
//! numbers that verbs define for the call. Completions and asynchronous events appear in queues that the caller made
//! ([`CompletionQueue`], [`Events`]), which have locks of their own, so polling does not wait for an engine that copies.
//!
//! An engine does not know other processes. Requests leave it through its [`Transport`] and arrive at its [`Target`].

mod completion;
mod device;
mod events;
mod faults;
mod flights;
pub mod limits;
mod loopback;
mod memory;
mod objects;
mod queue_pair;
mod receive;
mod respond;
mod rules;
mod send;
mod transport;
mod work;

pub use completion::CompletionQueue;
pub use device::{Engine, NewQueuePair, NewShared};
pub use events::{AsyncEvent, Element, Events};
pub use flights::WINDOW;
pub use loopback::{Loopback, identifier};
pub(crate) use loopback::{addresses_of, ip_of, node_at_ip};
pub use memory::{Piece, Region, Remote};
pub(crate) use objects::check_route;
pub use rules::{Refusal, Service, State, check_transition};
pub use transport::{
    Address, Arriving, Carried, Datagram, Due, NOTE_BYTES, Notice, Operation, Outcome, Payload, PeerEvent,
    Port, Process, Request, Target, Ticket, Transport, Waiter, node_of_port, port_of, seat_of,
};
pub use work::{Data, Kind, Receive, Send, Status};
