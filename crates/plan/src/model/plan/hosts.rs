//! Hosts of the members and links of a plan.

use std::net::SocketAddrV4;

use rackloom_protocol::{Edge, NodeId};

use crate::model::links::wire::WireKind;
use crate::model::members::hosts::HostPlan;
use crate::model::plan::Plan;

impl Plan {
    /// Returns the host with this name, or `None`.
    #[must_use]
    pub fn host_named(&self, name: &str) -> Option<&HostPlan> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// Returns the host that runs a member, or `None` in a rack of one machine.
    #[must_use]
    pub fn host_of(&self, member: NodeId) -> Option<&HostPlan> {
        self.hosts.iter().find(|host| host.nodes.contains(&member))
    }

    /// Returns true if a link joins two hosts.
    #[must_use]
    pub fn joins_hosts(&self, edge: &Edge) -> bool {
        match (self.host_of(edge.a), self.host_of(edge.b)) {
            (Some(a), Some(b)) => a.name != b.name,
            _ => false,
        }
    }

    /// Returns the medium of a link between real processes. A link to a process of a GPU node is in shared memory if the rack is,
    /// and else a pair of datagram sockets: a seat on the other wires sleeps on descriptors, and its process may be in any network
    /// namespace.
    #[must_use]
    pub fn wire_of(&self, edge: &Edge) -> WireKind {
        if self.is_process_link(edge) {
            if self.settings.wire.has_rings() { self.settings.wire } else { WireKind::Udp }
        } else if self.joins_hosts(edge) {
            self.settings.wire.properties().between_hosts
        } else {
            self.settings.wire
        }
    }

    /// Returns address and port of a link on a host, by edge index. The port is equal at both ends.
    #[must_use]
    pub fn udp_address(&self, host: &HostPlan, edge: usize) -> Option<SocketAddrV4> {
        let port = usize::from(self.settings.udp_port) + 1 + edge;
        Some(SocketAddrV4::new(host.address_of(edge)?, u16::try_from(port).ok()?))
    }
}
