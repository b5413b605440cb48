//! Topology of a plan for its report. The shape follows from the links: a plan has the members and links of a shape, and not its name.

use std::collections::BTreeSet;

use rackloom_jobs::report::{Topology, TopologyLink, TopologyMember, TopologyShape};
use rackloom_plan::Plan;

/// Returns the topology of a plan.
#[must_use]
pub fn topology(plan: &Plan) -> Topology {
    let member = |member: &rackloom_plan::MemberPlan| TopologyMember {
        is_switch: member.role.is_switch(),
        server: if member.role.is_switch() { String::new() } else { member.server.clone() },
    };
    let link = |link: &rackloom_plan::LinkPlan| TopologyLink {
        name: link.name.clone(),
        a: link.edge.a.0,
        b: link.edge.b.0,
        a_port: link.edge.a_port.0,
        b_port: link.edge.b_port.0,
        rate_bits_per_s: link.profile.rate_bits_per_s,
    };
    let (shape, sizes) = shape(plan);
    Topology {
        shape,
        sizes: sizes.into_iter().map(|size| size as u32).collect(),
        members: plan.members.iter().map(member).collect(),
        links: plan.links.iter().map(link).collect(),
    }
}

/// Returns the shape of the plan's links, and the sizes of a torus.
fn shape(plan: &Plan) -> (TopologyShape, Vec<usize>) {
    use TopologyShape::{FullMesh, Hypercube, LeafSpine, Ring, Star, Torus};

    let nodes = plan.members.iter().filter(|member| !member.role.is_switch()).count();
    let switches = plan.members.len() - nodes;
    if switches > 0 {
        let is_switch = |node: rackloom_protocol::NodeId| plan.members[node.index()].role.is_switch();
        let joins_switches = plan.links.iter().any(|link| is_switch(link.edge.a) && is_switch(link.edge.b));
        return (if joins_switches { LeafSpine } else { Star }, Vec::new());
    }
    let sizes = torus(plan);
    if sizes.len() > 1 && sizes.iter().product::<usize>() == nodes {
        let is_cube = sizes.iter().all(|size| *size == 2);
        return if is_cube { (Hypercube, Vec::new()) } else { (Torus, sizes) };
    }
    (if plan.links.len() >= nodes * nodes.saturating_sub(1) / 2 { FullMesh } else { Ring }, Vec::new())
}

/// Returns the sizes of the torus of which the links state the dimensions: of each dimension, the members that its links join with
/// the first one.
fn torus(plan: &Plan) -> Vec<usize> {
    let dimensions = plan.links.iter().map(|link| link.dimension).max().map_or(0, |most| most + 1);
    let size = |dimension: u8| {
        let links = || plan.links.iter().filter(move |link| link.dimension == dimension);
        let mut reached = BTreeSet::from([0]);
        loop {
            let before = reached.len();
            for link in links() {
                let (a, b) = (link.edge.a.index(), link.edge.b.index());
                if reached.contains(&a) != reached.contains(&b) {
                    reached.extend([a, b]);
                }
            }
            if reached.len() == before {
                return before;
            }
        }
    };
    (0..dimensions).map(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use TopologyShape::{FullMesh, Hypercube, LeafSpine, Ring, Star, Torus};

    #[test]
    fn the_shape_of_each_kind_of_rack_is_found() {
        let of = |shape_text: &str| {
            let text = format!("name: r\nshape: {{{shape_text}}}\n");
            shape(&Plan::parse(&text, "rack").expect("a plan"))
        };
        assert_eq!(of("ring: {nodes: 8}"), (Ring, vec![]));
        assert_eq!(of("full-mesh: {nodes: 5}"), (FullMesh, vec![]));
        assert_eq!(of("star: {nodes: 4, planes: 2}"), (Star, vec![]));
        assert_eq!(of("torus: {x: 4, y: 3}"), (Torus, vec![4, 3]));
        assert_eq!(of("torus: {x: 4, y: 2, z: 2}"), (Torus, vec![4, 2, 2]));
        assert_eq!(of("hypercube: {dimensions: 3}"), (Hypercube, vec![]));
        assert_eq!(of("leaf-spine: {leaves: 2, nodes_per_leaf: 4, spines: 2}"), (LeafSpine, vec![]));
    }
}
