//! Hosts: a rack that several machines run together, each its own share.
//!
//! All machines read the same file, so all agree on members, links and epoch; what differs is whom each one starts. A
//! link whose ends run on different hosts leaves the machine at an interface that the file names, and is a packet wire
//! whatever the wire within the hosts is; on the udp wire it leaves at an address, for a port that follows from the link's
//! number, and may cross routers. A file without hosts is a rack of one machine.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use rackloom_protocol::{Edge, NodeId};

use crate::plan::{Plan, WireKind};

/// One machine, and what it runs.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Name, unique in the rack.
    pub name: String,
    /// Who runs there.
    pub members: Vec<NodeId>,
    /// Where links to other hosts leave.
    pub interface: Option<String>,
    /// Where single links leave instead, by edge index.
    pub interfaces: BTreeMap<usize, String>,
    /// Where links to other hosts leave on the udp wire, and where the host is found.
    pub address: Option<Ipv4Addr>,
    /// Where single links leave instead, by edge index.
    pub addresses: BTreeMap<usize, Ipv4Addr>,
}

impl HostPlan {
    /// The interface at which a link leaves, by edge index, if it is named.
    #[must_use]
    pub fn interface_of(&self, edge: usize) -> Option<&str> {
        self.interfaces.get(&edge).or(self.interface.as_ref()).map(String::as_str)
    }

    /// The address at which a link leaves, by edge index, if it is named.
    #[must_use]
    pub fn address_of(&self, edge: usize) -> Option<Ipv4Addr> {
        self.addresses.get(&edge).copied().or(self.address)
    }
}

impl Plan {
    /// The host with this name.
    #[must_use]
    pub fn host_named(&self, name: &str) -> Option<&HostPlan> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// The host that runs a member; `None` in a rack of one machine.
    #[must_use]
    pub fn host_of(&self, member: NodeId) -> Option<&HostPlan> {
        self.hosts.iter().find(|host| host.members.contains(&member))
    }

    /// Whether a link joins two hosts.
    #[must_use]
    pub fn joins_hosts(&self, edge: &Edge) -> bool {
        match (self.host_of(edge.a), self.host_of(edge.b)) {
            (Some(a), Some(b)) => a.name != b.name,
            _ => false,
        }
    }

    /// What carries the frames of a link between real processes.
    #[must_use]
    pub fn wire_of(&self, edge: &Edge) -> WireKind {
        match self.wire {
            WireKind::Udp => WireKind::Udp,
            _ if self.joins_hosts(edge) => WireKind::Packet,
            wire => wire,
        }
    }

    /// Where a link is found on a host, by edge index: its port is the same at both ends.
    #[must_use]
    pub fn udp_place(&self, host: &HostPlan, edge: usize) -> Option<SocketAddrV4> {
        let port = usize::from(self.udp_port) + 1 + edge;
        Some(SocketAddrV4::new(host.address_of(edge)?, u16::try_from(port).ok()?))
    }
}
