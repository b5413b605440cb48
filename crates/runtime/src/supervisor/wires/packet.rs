//! Cables between namespaces, and the names of their interfaces.
//!
//! An interface in a member's namespace is named after its port. A later cable for this port gets another
//! name, because the kernel removes the old one some time after the death of the process, with its namespace.

use std::collections::BTreeMap;

use rackloom::hosts::{HostLink, HostLinkError, open_link};
use rackloom::namespaces::{Cable, CableEnd, network_namespace_of};
use rackloom_plan::Plan;
use rackloom_protocol::wire::address::mac;
use rackloom_protocol::{NodeId, Plane, PortId};

use crate::machine::here::Here;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;

/// Ethernet header, which does not count towards an interface's MTU.
const ETHERNET_HEADER_BYTES: u32 = 14;
/// Bound of the numbers of takeovers, so that the name of an interface stays within the kernel's 15 bytes.
const TAKEOVERS_MAX: u32 = 1_000_000;

/// State of the packet wire in the supervisor.
pub(crate) struct PacketWiring {
    /// Network namespace in which the rack was started. No member may be in it.
    pub(crate) outside: (u64, u64),
    /// Ends of links to other hosts that have not been taken, by member and port.
    outlets: Outlets,
    /// Part of the rack that this host runs.
    pub(crate) here: Here,
    /// Number of takeovers so far, modulo [`TAKEOVERS_MAX`].
    takeovers: u32,
    /// Number of the last takeover of each member's seat. Members of the start are absent.
    takeover_of: BTreeMap<NodeId, u32>,
}

impl PacketWiring {
    /// Opens the links to other hosts. Call it in the namespace in which the rack was started: only that one
    /// reaches other hosts.
    pub(crate) fn new(plan: &Plan, here: &Here) -> Result<Self, Failure> {
        let outside = network_namespace_of(std::process::id())
            .map_err(|error| Failure::could_not_start("cannot distinguish network namespaces", error))?;
        let outlets = here.host.map_or(Ok(BTreeMap::new()), |host| outlets(plan, host));
        let outlets = outlets.map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string()))?;
        Ok(Self { outside, outlets, here: here.clone(), takeovers: 0, takeover_of: BTreeMap::new() })
    }

    /// Takes the end of a link to another host, with the name of its interface. Call it once per port.
    pub(crate) fn take_outlet(&mut self, node: NodeId, port: PortId) -> Option<(String, HostLink)> {
        self.outlets.remove(&(node, port))
    }

    /// Returns a number for the interfaces of the next takeover.
    pub(crate) fn next_takeover(&mut self) -> u32 {
        self.takeovers = (self.takeovers + 1) % TAKEOVERS_MAX;
        self.takeovers
    }

    /// Records the number of the takeover by which a member got its seat.
    pub(crate) fn set_takeover(&mut self, node: NodeId, takeover: u32) {
        self.takeover_of.insert(node, takeover);
    }

    /// Returns the number of the takeover by which a member got its seat; 0 for a member of the start.
    pub(crate) fn takeover_of(&self, node: NodeId) -> u32 {
        self.takeover_of.get(&node).copied().unwrap_or_default()
    }
}

type Outlets = BTreeMap<(NodeId, PortId), (String, HostLink)>;

fn outlets(plan: &Plan, host: usize) -> Result<Outlets, HostLinkError> {
    let host = &plan.hosts[host];
    let mut outlets = BTreeMap::new();
    for (index, edge) in plan.links.iter().map(|link| link.edge).enumerate() {
        let Some(interface) = host.interface_of(index).filter(|_| plan.joins_hosts(&edge)) else { continue };
        for (node, port, neighbour) in [(edge.a, edge.a_port, edge.b), (edge.b, edge.b_port, edge.a)] {
            if host.nodes.contains(&node) {
                let (mine, theirs) = (mac(node, edge.plane), mac(neighbour, edge.plane));
                let link = open_link(interface, plan.wire_bytes_max(), mine, theirs)?;
                outlets.insert((node, port), (interface.to_owned(), link));
            }
        }
    }
    Ok(outlets)
}

/// Returns the name of a port's first interface in its member's namespace.
pub(crate) fn first_interface(port: PortId) -> String {
    format!("port{}", port.0)
}

/// Returns the name of a port's interface after a takeover.
pub(crate) fn later_interface(port: PortId, takeover: u32) -> String {
    format!("port{}x{takeover}", port.0)
}

/// Returns the cables of a rack that starts. There is no cable to a vacant seat.
pub(crate) fn cables(plan: &Plan, pids: &[Option<u32>]) -> Vec<Cable> {
    let end = |node: NodeId, port: PortId, plane: Plane| {
        Some(cable_end(pids[node.index()]?, first_interface(port), node, plane))
    };
    let edges = plan.links.iter().map(|link| link.edge);
    edges
        .filter_map(|edge| {
            let ends = [end(edge.a, edge.a_port, edge.plane)?, end(edge.b, edge.b_port, edge.plane)?];
            Some(Cable { ends, mtu: mtu(plan) })
        })
        .collect()
}

pub(crate) fn cable_end(process: u32, interface: String, node: NodeId, plane: Plane) -> CableEnd {
    CableEnd { process, interface, address: mac(node, plane) }
}

pub(crate) fn mtu(plan: &Plan) -> u32 {
    u32::from(plan.wire_bytes_max()) - ETHERNET_HEADER_BYTES
}
