//! Transport within one process: a request is executed at once on the objects of its sender's process.
//!
//! Devices do the same for two queue pairs of one port. Requests to other nodes have no answer, and datagrams to them are lost.

use std::net::Ipv4Addr;

use rackloom::ip::address_of;

use super::transport::{Carried, Operation, Outcome, Request, Target, Transport};
use crate::layout::Gid;

/// Loopback transport of a node.
#[derive(Clone, Copy, Debug)]
pub struct Loopback {
    node: u32,
    addresses: [Gid; 2],
}

impl Loopback {
    /// Returns the transport of a node.
    #[must_use]
    pub fn new(node: u32) -> Self {
        Self { node, addresses: addresses_of(node) }
    }
}

/// Returns the EUI-64 identifier of a node: a locally administered one.
#[must_use]
pub fn identifier(node: u32) -> u64 {
    0x0252_4b00_0000_0000 | (u64::from(node) + 1)
}

/// Returns the IPv4 address of a node: of its first port, that of the seat's network interface; of another port, one that no interface has.
pub(crate) fn ip_of(node: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(address_of(0)).wrapping_add(node))
}

/// Returns the node with an IPv4 address. `None` for addresses that no node can have.
pub(crate) fn node_at_ip(address: Ipv4Addr) -> Option<u32> {
    let node = u32::from(address).checked_sub(u32::from(address_of(0)))?;
    (node >> 24 == 0).then_some(node)
}

/// Returns the addresses of a node's port: a link-local one, and an IPv4 address in the form of IPv6. The second spares NCCL a search in sysfs.
pub(crate) fn addresses_of(node: u32) -> [Gid; 2] {
    let mut local = [0; 16];
    local[..2].copy_from_slice(&[0xfe, 0x80]);
    local[8..].copy_from_slice(&identifier(node).to_be_bytes());
    let mut mapped = [0; 16];
    mapped[10..12].copy_from_slice(&[0xff, 0xff]);
    mapped[12..].copy_from_slice(&ip_of(node).octets());
    [local, mapped]
}

impl Transport for Loopback {
    fn own_node(&self) -> u32 {
        self.node
    }

    fn addresses(&self, port: u8) -> &[Gid] {
        if port == 1 { &self.addresses } else { &[] }
    }

    fn node_of(&self, address: &Gid) -> Option<u32> {
        self.addresses.contains(address).then_some(self.node)
    }

    fn carry(&mut self, request: Request, target: &mut dyn Target) -> Carried {
        Carried::Done(if request.to.node == Some(self.node) {
            target.execute(&request)
        } else if matches!(request.operation, Operation::Datagram { .. }) {
            Outcome::Done
        } else {
            Outcome::NoAnswer
        })
    }
}
