//! The picture of a plan. The shape follows from the links: a plan has the members and links of a shape, and not its name.

use std::collections::BTreeSet;

use rackloom_drawing::chart::Unit;
use rackloom_drawing::graph::{Graph, Link, LinkState, Node, NodeKind, Shape};
use rackloom_plan::Plan;

/// Returns the picture of a plan.
pub(super) fn graph(plan: &Plan) -> Graph {
    let node = |member: &rackloom_plan::MemberPlan| Node {
        name: member.name.clone(),
        kind: if member.role.is_switch() { NodeKind::Switch } else { NodeKind::Node },
        group: if member.role.is_switch() { String::new() } else { member.server.clone() },
        is_failed: false,
    };
    let nodes: Vec<Node> = plan.members.iter().map(node).collect();
    let rates: BTreeSet<Option<u64>> = plan.links.iter().map(|link| link.profile.rate_bits_per_s).collect();
    let rate = |bits_per_s: Option<u64>| match bits_per_s {
        Some(rate) => Unit::named("bit/s").text(rate as f64),
        None => "no rate".to_owned(),
    };
    let links: Vec<Link> = plan
        .links
        .iter()
        .map(|link| Link {
            ends: (link.edge.a.index(), link.edge.b.index()),
            name: format!("{}, {}", link.name, rate(link.profile.rate_bits_per_s)),
            // One rate for all is in the note.
            label: if rates.len() > 1 { rate(link.profile.rate_bits_per_s) } else { String::new() },
            value: None,
            state: LinkState::Good,
        })
        .collect();
    let count = |count: usize, word: &str, plural: &str| match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        count => Some(format!("{count} {plural}")),
    };
    let switches = nodes.iter().filter(|node| node.kind == NodeKind::Switch).count();
    let of_all = match rates.first() {
        Some(Some(only)) if rates.len() == 1 => format!(" of {}", rate(Some(*only))),
        _ => String::new(),
    };
    let parts = [
        count(nodes.len() - switches, "GPU node", "GPU nodes"),
        count(switches, "switch", "switches"),
        count(links.len(), "link", "links").map(|links| links + &of_all),
    ];
    Graph {
        title: plan.name.clone(),
        note: parts.into_iter().flatten().collect::<Vec<_>>().join(", "),
        shape: shape(plan),
        nodes,
        links,
        meaning: String::new(),
        group_meaning: "GPU nodes of one server".to_owned(),
    }
}

/// Returns the shape of the plan's links.
fn shape(plan: &Plan) -> Shape {
    let nodes = plan.members.iter().filter(|member| !member.role.is_switch()).count();
    let switches = plan.members.len() - nodes;
    if switches > 0 {
        let is_switch = |node: rackloom_protocol::NodeId| plan.members[node.index()].role.is_switch();
        let joins_switches = plan.links.iter().any(|link| is_switch(link.edge.a) && is_switch(link.edge.b));
        return if joins_switches { Shape::LeafSpine } else { Shape::Star };
    }
    let sizes = torus(plan);
    if sizes.len() > 1 && sizes.iter().product::<usize>() == nodes {
        return if sizes.iter().all(|size| *size == 2) { Shape::Hypercube } else { Shape::Torus(sizes) };
    }
    if plan.links.len() >= nodes * nodes.saturating_sub(1) / 2 { Shape::FullMesh } else { Shape::Ring }
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

    #[test]
    fn the_shape_of_each_kind_of_rack_is_found() {
        let of = |shape_text: &str| {
            let text = format!("name: r\nshape: {{{shape_text}}}\n");
            shape(&Plan::parse(&text, "rack").expect("a plan"))
        };
        assert_eq!(of("ring: {nodes: 8}"), Shape::Ring);
        assert_eq!(of("full-mesh: {nodes: 5}"), Shape::FullMesh);
        assert_eq!(of("star: {nodes: 4, planes: 2}"), Shape::Star);
        assert_eq!(of("torus: {x: 4, y: 3}"), Shape::Torus(vec![4, 3]));
        assert_eq!(of("torus: {x: 4, y: 2, z: 2}"), Shape::Torus(vec![4, 2, 2]));
        assert_eq!(of("hypercube: {dimensions: 3}"), Shape::Hypercube);
        assert_eq!(of("leaf-spine: {leaves: 2, nodes_per_leaf: 4, spines: 2}"), Shape::LeafSpine);
    }
}
