//! One remote node: packet sequence, retransmission, acknowledgements, deduplication.
//!
//! Per (source, destination, class) there is a [`sender::Sender`] at one end and a [`receiver::Receiver`] at the other.
//! Packet numbers belong to the pair of lives, not to a path: a packet that is sent again over another path is still
//! the same packet, and the receiver takes it once. What the operations in a packet mean is not known here.

pub mod packet;
pub mod queue;
pub mod receiver;
pub mod round_trip;
pub mod sender;

/// Distance from `from` to `to` on the 32-bit circle of packet numbers.
#[must_use]
pub const fn distance(from: u32, to: u32) -> u32 {
    to.wrapping_sub(from)
}
