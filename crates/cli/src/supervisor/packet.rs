//! Cables between namespaces: which interfaces there are, and how they are called.
//!
//! An interface of a member's namespace is named after its port. A later cable for the same port gets another name: the
//! kernel takes its time to remove the old one with the namespace of the process that died.

use rackloom::namespaces::{Cable, CableEnd};
use rackloom_plan::Plan;
use rackloom_protocol::wire::address::mac;
use rackloom_protocol::{NodeId, Plane, PortId};

/// Ethernet header, which does not count towards an interface's MTU.
const ETHERNET_HEADER_BYTES: u32 = 14;
/// So that the name of an interface stays within the kernel's 15 bytes.
const LIVES_MAX: u32 = 1_000_000;

/// What the supervisor knows about the packet wire.
pub(super) struct PacketWiring {
    /// The network namespace in which the rack was started. No member belongs there.
    pub(super) outside: (u64, u64),
    takeovers: u32,
}

impl PacketWiring {
    pub(super) fn new(outside: (u64, u64)) -> Self {
        Self { outside, takeovers: 0 }
    }

    /// What tells the cables of this takeover from all earlier ones.
    pub(super) fn next_life(&mut self) -> u32 {
        self.takeovers = (self.takeovers + 1) % LIVES_MAX;
        self.takeovers
    }
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
    u32::from(plan.frame_bytes_max) - ETHERNET_HEADER_BYTES
}
