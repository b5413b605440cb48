//! Transport over the fabric: requests to queue pairs of other processes.
//!
//! | operation | on the fabric |
//! |---|---|
//! | write, read, atomic operation | a put, a get, an atomic operation on the memory of the peer, under a grant |
//! | write with immediate data | puts, and then a message that completes the receive |
//! | send | a message with the data; above 4064 bytes, a message, after which the peer gets the data out of the sender's memory |
//! | datagram | a message without an answer |
//!
//! *Grants.* The peer of a queue pair checks the first access to a region as it would check a request, and answers with a grant. Later accesses need no
//! message. A grant ends with the region (the fabric refuses its number) and with the connection (the peer says so).
//!
//! *Order.* A queue pair has a window of requests in flight. Messages are numbered, and executed in the order of their numbers. Writes become visible in
//! their order, and the last bytes of a write after all others of it.
//!
//! *Port.* It is down while no member that the seat has a link to is reached, and removed when the agent of the seat has gone. A device with a port per
//! plane has an endpoint and a transport per port.
//!
//! Reading order: `directory` · `port` · `message` · `regions` · `slots` · `operation` · `early` · `job` · `incoming` · `transport` · `requests` (of this process)
//! · `serve` (requests of peers) · `ports` (several of them).

mod datagrams;
mod directory;
mod early;
mod incoming;
mod job;
mod message;
mod operation;
mod port;
mod ports;
mod regions;
mod requests;
mod serve;
mod slots;
mod transport;

pub use self::directory::{Directory, PROCESSES_MAX};
pub use self::ports::Ports;
pub use self::transport::FabricTransport;
