//! Hosts: machines that run parts of one rack.
//!
//! All machines read the same file, so they have equal members, links and epoch. Each machine starts its own members. A link whose
//! ends run on different hosts leaves the machine at an interface that the file names. It is a packet wire even if the wire within the
//! hosts is another one. On the udp wire it leaves at an address instead. Its port follows from the link's number, and it may cross
//! routers. A file without hosts is a rack of one machine.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use rackloom_protocol::{Edge, NodeId};

use crate::plan::{Plan, WireKind};

/// Describes one machine and the members that it runs.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Name, unique in the rack.
    pub name: String,
    /// Members that the host runs.
    pub members: Vec<NodeId>,
    /// Interface of links to other hosts.
    pub interface: Option<String>,
    /// Interfaces of single links, by edge index. They replace `interface`.
    pub interfaces: BTreeMap<usize, String>,
    /// Address of links to other hosts on the udp wire, and address of the host's supervisor.
    pub address: Option<Ipv4Addr>,
    /// Addresses of single links, by edge index. They replace `address`.
    pub addresses: BTreeMap<usize, Ipv4Addr>,
}

impl HostPlan {
    /// Returns the interface of a link, by edge index, or `None` if the file names none.
    #[must_use]
    pub fn interface_of(&self, edge: usize) -> Option<&str> {
        self.interfaces.get(&edge).or(self.interface.as_ref()).map(String::as_str)
    }

    /// Returns the address of a link, by edge index, or `None` if the file names none.
    #[must_use]
    pub fn address_of(&self, edge: usize) -> Option<Ipv4Addr> {
        self.addresses.get(&edge).copied().or(self.address)
    }
}

impl Plan {
    /// Returns the host with this name, or `None`.
    #[must_use]
    pub fn host_named(&self, name: &str) -> Option<&HostPlan> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// Returns the host that runs a member, or `None` in a rack of one machine.
    #[must_use]
    pub fn host_of(&self, member: NodeId) -> Option<&HostPlan> {
        self.hosts.iter().find(|host| host.members.contains(&member))
    }

    /// Returns true if a link joins two hosts.
    #[must_use]
    pub fn joins_hosts(&self, edge: &Edge) -> bool {
        match (self.host_of(edge.a), self.host_of(edge.b)) {
            (Some(a), Some(b)) => a.name != b.name,
            _ => false,
        }
    }

    /// Returns the medium of a link between real processes.
    #[must_use]
    pub fn wire_of(&self, edge: &Edge) -> WireKind {
        match self.wire {
            WireKind::Udp => WireKind::Udp,
            _ if self.joins_hosts(edge) => WireKind::Packet,
            wire => wire,
        }
    }

    /// Returns address and port of a link on a host, by edge index. The port is equal at both ends.
    #[must_use]
    pub fn udp_place(&self, host: &HostPlan, edge: usize) -> Option<SocketAddrV4> {
        let port = usize::from(self.udp_port) + 1 + edge;
        Some(SocketAddrV4::new(host.address_of(edge)?, u16::try_from(port).ok()?))
    }
}
