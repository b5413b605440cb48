//! Forwarding: links, routes and transit of one member, below both the endpoint and the switch.
//!
//! [`forwarder`] is the state and handles received frames. `departures` builds frames that leave, `egress` has the queues of
//! a port, `arbiter` and `choice` choose channels and ports. `neighbours` follows link state changes. `retries` and
//! `pauses` connect the rules of the link with frames.

mod arbiter;
mod choice;
mod credit_waits;
pub mod departures;
pub mod egress;
pub mod forwarder;
mod in_order;
mod leaving;
mod marks;
mod neighbours;
pub mod outgoing;
mod pauses;
mod port_set;
mod retries;
mod shared_buffer;
mod start;
mod start_phase;
pub mod waits;
