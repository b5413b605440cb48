//! Cables between namespaces: which interfaces there are, and how they are called.
//!
//! An interface of a member's namespace is named after its port. A later cable for the same port gets another name: the
//! kernel takes its time to remove the old one with the namespace of the process that died.

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
/// So that the name of an interface stays within the kernel's 15 bytes.
const LIVES_MAX: u32 = 1_000_000;

/// What the supervisor knows about the packet wire.
pub(super) struct PacketWiring {
    /// The network namespace in which the rack was started. No member belongs there.
    pub(super) outside: (u64, u64),
    /// Ends of links to other hosts that have not been handed out, by member and port.
    outlets: Outlets,
    /// Whose share this is.
    pub(super) here: Here,
    takeovers: u32,
    /// In which life each member is whose seat was taken over; the others are in their first.
    lives: BTreeMap<NodeId, u32>,
}

impl PacketWiring {
    /// To be called where the rack was started: other hosts are reached from there alone.
    pub(super) fn new(plan: &Plan, here: &Here) -> Result<Self, Failure> {
        let outside = network_namespace_of(std::process::id())
            .map_err(|error| Failure::could_not_start("cannot tell network namespaces", error))?;
        let outlets = here.host.map_or(Ok(BTreeMap::new()), |host| outlets(plan, host));
        let outlets = outlets.map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string()))?;
        Ok(Self { outside, outlets, here: here.clone(), takeovers: 0, lives: BTreeMap::new() })
    }

    /// The end of a link to another host, and its interface. To be asked once per port.
    pub(super) fn take_outlet(&mut self, node: NodeId, port: PortId) -> Option<(String, HostLink)> {
        self.outlets.remove(&(node, port))
    }

    /// What tells the cables of this takeover from all earlier ones.
    pub(super) fn next_life(&mut self) -> u32 {
        self.takeovers = (self.takeovers + 1) % LIVES_MAX;
        self.takeovers
    }

    /// This takeover is the one by which a member sits where it does.
    pub(super) fn sits_since(&mut self, node: NodeId, life: u32) {
        self.lives.insert(node, life);
    }

    /// Which takeover that was; zero for who has sat there from the beginning.
    pub(super) fn life_of(&self, node: NodeId) -> u32 {
        self.lives.get(&node).copied().unwrap_or_default()
    }
}

type Outlets = BTreeMap<(NodeId, PortId), (String, HostLink)>;

fn outlets(plan: &Plan, host: usize) -> Result<Outlets, HostLinkError> {
    let host = &plan.hosts[host];
    let mut outlets = BTreeMap::new();
    for (index, edge) in plan.links.iter().map(|link| link.edge).enumerate() {
        let Some(interface) = host.interface_of(index).filter(|_| plan.joins_hosts(&edge)) else { continue };
        for (node, port, neighbour) in [(edge.a, edge.a_port, edge.b), (edge.b, edge.b_port, edge.a)] {
            if host.members.contains(&node) {
                let (mine, theirs) = (mac(node, edge.plane), mac(neighbour, edge.plane));
                let link = open_link(interface, plan.wire_bytes_max(), mine, theirs)?;
                outlets.insert((node, port), (interface.to_owned(), link));
            }
        }
    }
    Ok(outlets)
}

/// The name of a port's first interface within its member's namespace.
pub(super) fn first_interface(port: PortId) -> String {
    format!("port{}", port.0)
}

/// The name of a later one.
pub(super) fn later_interface(port: PortId, life: u32) -> String {
    format!("port{}x{life}", port.0)
}

/// The cables of a rack that starts. A vacant seat has no process, and no cable leads there.
pub(super) fn cables(plan: &Plan, pids: &[Option<u32>]) -> Vec<Cable> {
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

pub(super) fn cable_end(process: u32, interface: String, node: NodeId, plane: Plane) -> CableEnd {
    CableEnd { process, interface, address: mac(node, plane) }
}

pub(super) fn mtu(plan: &Plan) -> u32 {
    u32::from(plan.wire_bytes_max()) - ETHERNET_HEADER_BYTES
}
