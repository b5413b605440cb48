//! Bridges as hubs: one per plane in the supervisor's namespace, and a cable from it to each member.
//!
//! A bridge needs no process and exists as long as the namespace. A process that takes a seat later gets new
//! cables to these bridges. Its neighbours keep theirs.

use rackloom::namespaces::{Bridge, BridgeCable, connect_to_bridges, create_bridges};
use rackloom_plan::Plan;
use rackloom_protocol::{NodeId, Plane};

use super::interfaces::{cable_end, mtu};
use super::joints::joints;
use super::unavailable::no_packet_wire;
use crate::outcome::failure::Failure;

/// Returns the name of a member's interface in a plane. `takeover`: number of the process that took the seat;
/// 0 for the first one.
pub(crate) fn interface(plane: Plane, takeover: u32) -> String {
    match takeover {
        0 => format!("plane{}", plane.0),
        takeover => format!("plane{}x{takeover}", plane.0),
    }
}

/// Makes the bridges, and the cables to all started members. It blocks: call it outside of asynchronous code.
pub(crate) fn connect(plan: &Plan, pids: &[Option<u32>]) -> Result<(), Failure> {
    let planes = planes(plan, NodeId(0));
    let bridges: Vec<_> = planes.iter().map(|plane| bridge(plan, *plane)).collect();
    let present = (0..).zip(pids).filter_map(|(node, pid)| Some((NodeId(node), (*pid)?)));
    let cables: Vec<_> = present
        .flat_map(|(node, pid)| planes.iter().map(move |plane| cable(plan, node, pid, *plane, 0)))
        .collect();
    create_bridges(&bridges)
        .and_then(|()| connect_to_bridges(&cables))
        .map_err(|error| no_packet_wire(&error))
}

/// Returns the cables for a process that takes a seat. `takeover` is unique in the rack and not zero.
pub(crate) fn later_cables(plan: &Plan, node: NodeId, pid: u32, takeover: u32) -> Vec<BridgeCable> {
    planes(plan, node).into_iter().map(|plane| cable(plan, node, pid, plane, takeover)).collect()
}

/// Returns the planes, each with a bridge. Every member has a port in each.
fn planes(plan: &Plan, node: NodeId) -> Vec<Plane> {
    let joints = joints(plan, node).into_iter();
    let joints = joints.filter(|joint| plan.node_of_process(joint.neighbour).is_none());
    let mut planes: Vec<_> = joints.map(|joint| joint.plane).collect();
    planes.sort_unstable();
    planes.dedup();
    planes
}

fn bridge(plan: &Plan, plane: Plane) -> Bridge {
    Bridge { name: interface(plane, 0), mtu: mtu(plan) }
}

fn cable(plan: &Plan, node: NodeId, pid: u32, plane: Plane, takeover: u32) -> BridgeCable {
    let port = match takeover {
        0 => format!("m{}p{}", node.0, plane.0),
        takeover => format!("m{}p{}x{takeover}", node.0, plane.0),
    };
    let end = cable_end(pid, interface(plane, takeover), node, plane);
    BridgeCable { bridge: bridge(plan, plane), port, end }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_has_a_cable_to_the_bridge_of_each_plane() {
        let text = "name: b\nshape: {star: {nodes: 3, planes: 2, switch: bridge}}\nwire: packet\n";
        let plan = Plan::parse(text, "test").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(planes(&plan, NodeId(2)), [Plane(0), Plane(1)]);
        let names = |takeover| {
            let cables = later_cables(&plan, NodeId(2), 7, takeover).into_iter();
            cables.map(|cable| (cable.bridge.name, cable.port, cable.end.interface)).collect::<Vec<_>>()
        };
        let named = |names: [&str; 3]| names.map(str::to_owned).into();
        assert_eq!(names(0), [named(["plane0", "m2p0", "plane0"]), named(["plane1", "m2p1", "plane1"])]);
        assert_eq!(names(3)[1], named(["plane1", "m2p1x3", "plane1x3"]));
        let longest = cable(&plan, NodeId(4095), 1, Plane(11), 999_999);
        assert!(
            longest.port.len() <= 15 && longest.end.interface.len() <= 15,
            "the kernel limits names to 15 bytes"
        );
    }
}
