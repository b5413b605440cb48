//! Transport over the fabric: requests to queue pairs of other processes.
//!
//! | operation | on the fabric |
//! |---|---|
//! | write, read, atomic operation | a put, a get, an atomic operation on the memory of the peer, under a grant |
//! | write with immediate data | puts, and then a message that completes the receive |
//! | send | a message with the data; above 4096 bytes, a message, after which the peer gets the data out of the sender's memory |
//! | datagram | a message without an answer |
//!
//! *Grants.* The peer of a queue pair checks the first access to a region as it would check a request, and answers with a grant. Later accesses need no
//! message. A grant ends with the region (the fabric refuses its number) and with the connection (the peer says so).
//!
//! *Order.* The bytes of an operation above a page are written in two steps, so that the last bytes become visible after all others.
//!
//! *Port.* It is down while no member that the seat has a link to is reached, and removed when the agent of the seat has gone.
//!
//! Reading order: `directory` · `port` · `message` · `regions` · `slots` · `transport` (requests of this process) · `incoming` and `serve` (requests of peers).

mod directory;
mod incoming;
mod message;
mod port;
mod regions;
mod serve;
mod slots;
mod transport;

pub use self::directory::{Directory, PROCESSES_MAX};
pub use self::transport::FabricTransport;
