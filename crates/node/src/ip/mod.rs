//! IP over the fabric: the network interface of a program on a seat.
//!
//! The program has a network namespace with the interface `rack0`. It is one end of a virtual cable. The other end is in the namespace of the seat's
//! agent, which reads frames from it through a packet socket, sends them as messages of the fabric, and writes those that arrive. Frames cross the
//! rack's links and nothing else: no route leads out.
//!
//! Addresses follow from the number of the node: [`address_of`] and [`hardware_address_of`].

mod interface;
mod program;
mod socket;

use std::net::Ipv4Addr;

pub use interface::{Interface, create};
pub use program::{ProgramNetwork, enter};
pub use socket::{FrameSocket, HEADER_BYTES, MESSAGE_BYTES_MAX};

/// Name of the interface in the namespace of a program.
pub const INTERFACE: &str = "rack0";
/// Number of bits of an address that all nodes share.
pub const PREFIX_BITS: u8 = 16;
/// Address of the first node. The others follow.
const FIRST_ADDRESS: u32 = 0x0a52_0001;
/// First bytes of the hardware addresses of all nodes: a locally administered range.
const HARDWARE_PREFIX: [u8; 4] = [0x02, 0x52, 0x4b, 0x00];
/// Largest packet, in bytes. A frame with a packet of this size travels with its data in one message ([`rackloom_protocol::operation::messages`]).
pub const MTU: u32 = 4000;

/// Returns the address of the interface of a node: 10.82.0.1 for the first one.
#[must_use]
pub fn address_of(node: u16) -> Ipv4Addr {
    Ipv4Addr::from(FIRST_ADDRESS + u32::from(node))
}

/// Returns the number of the node with an address. `None` for addresses that no node can have.
#[must_use]
pub fn node_at(address: Ipv4Addr) -> Option<u16> {
    u32::from(address).checked_sub(FIRST_ADDRESS).and_then(|node| u16::try_from(node).ok())
}

/// Returns the hardware address of the interface of a node.
#[must_use]
pub const fn hardware_address_of(node: u16) -> [u8; 6] {
    let ([a, b, c, d], [high, low]) = (HARDWARE_PREFIX, node.to_be_bytes());
    [a, b, c, d, high, low]
}

/// Returns the number of the node with a hardware address. `None` for all other addresses, such as those of groups.
#[must_use]
pub fn node_with(address: [u8; 6]) -> Option<u16> {
    let [a, b, c, d, high, low] = address;
    ([a, b, c, d] == HARDWARE_PREFIX).then(|| u16::from_be_bytes([high, low]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_belong_to_one_node() {
        assert_eq!(address_of(0).to_string(), "10.82.0.1");
        for node in [0, 1, 254, 255, 256, 4095] {
            assert_eq!(node_at(address_of(node)), Some(node));
            assert_eq!(node_with(hardware_address_of(node)), Some(node));
        }
        for other in [Ipv4Addr::new(10, 82, 0, 0), Ipv4Addr::BROADCAST, Ipv4Addr::LOCALHOST] {
            assert_eq!(node_at(other), None, "{other}");
        }
        assert_eq!(node_with([0xff; 6]), None);
    }
}
