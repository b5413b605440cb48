//! Transport of one remote node: packet numbers, retransmission, acknowledgements, deduplication.
//!
//! Each (source, destination, class) has a [`sender::Sender`] at one end and a [`receiver::Receiver`] at the other.
//! Packet numbers belong to a pair of incarnations, not to a path: a packet that is retransmitted over another path
//! keeps its number, and the receiver accepts it once. The transport does not interpret the operations in a packet.

pub mod congestion;
pub mod grants;
pub mod packet;
pub mod queue;
pub mod receiver;
pub mod round_trip;
pub mod sender;
pub mod settings;

/// Returns the distance from `from` to `to`, modulo 2^32.
#[must_use]
pub const fn distance(from: u32, to: u32) -> u32 {
    to.wrapping_sub(from)
}
