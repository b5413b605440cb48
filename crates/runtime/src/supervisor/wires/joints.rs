//! Ports of a member, with the link and the neighbour at each.

use rackloom_plan::Plan;
use rackloom_protocol::{NodeId, Plane, PortId};

/// Port of a member, and the other end of its link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joint {
    pub(crate) port: PortId,
    pub(crate) plane: Plane,
    pub(crate) neighbour: NodeId,
    pub(crate) neighbour_port: PortId,
}

/// Returns the ports of a member, in order.
pub(crate) fn joints(plan: &Plan, node: NodeId) -> Vec<Joint> {
    let edges = plan.links.iter().map(|link| link.edge);
    let mut joints: Vec<_> = edges
        .filter_map(|edge| {
            let (port, neighbour, neighbour_port) = match node {
                _ if edge.a == node => (edge.a_port, edge.b, edge.b_port),
                _ if edge.b == node => (edge.b_port, edge.a, edge.a_port),
                _ => return None,
            };
            Some(Joint { port, plane: edge.plane, neighbour, neighbour_port })
        })
        .collect();
    joints.sort_by_key(|joint| joint.port);
    joints
}
