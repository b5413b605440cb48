//! Connection management: identifiers of connections, the messages between two of them, and the events that programs get.
//!
//! A connection begins with a search. The process that connects sends a search to each process of the seat that it wants to reach, and the
//! request goes to the first one that listens at the port. After that, the messages are those of the InfiniBand connection manager: request, reply,
//! ready, reject, disconnect. The fabric delivers each of them once, or reports the loss of the process.
//!
//! Nothing here reads a clock or knows a pointer of C. Calls get the time, and reach queue pairs and other processes through a [`Host`].
//!
//! Reading order: `message` · `event` · `link` (attributes of queue pairs) · `host` · `state` (the rules) · `ports` · `manager` (the calls) · `arrivals`.

mod arrivals;
mod event;
mod host;
mod link;
mod manager;
mod message;
mod ports;
mod state;

pub use event::{Child, Event, Kind};
pub use host::Host;
pub use link::{Link, attributes};
pub use manager::{Manager, Settings};
pub use message::{
    ACCEPT_DATA_BYTES, Body, Message, REASON_CONSUMER, REASON_NO_LISTENER, REJECT_DATA_BYTES,
    REQUEST_DATA_BYTES, Side,
};
pub use state::{Call, State};
