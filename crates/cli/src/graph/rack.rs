//! The picture of a plan.

use std::collections::BTreeSet;

use rackloom_drawing::chart::Unit;
use rackloom_drawing::graph::{Graph, Link, LinkState, Node, NodeKind, Shape};
use rackloom_jobs::report::{Topology, TopologyShape};
use rackloom_plan::Plan;
use rackloom_runtime::outcome::topology::topology;

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
        shape: shape(&topology(plan)),
        nodes,
        links,
        meaning: String::new(),
        group_meaning: "GPU nodes of one server".to_owned(),
    }
}

fn shape(topology: &Topology) -> Shape {
    match topology.shape {
        TopologyShape::Star => Shape::Star,
        TopologyShape::Ring => Shape::Ring,
        TopologyShape::FullMesh => Shape::FullMesh,
        TopologyShape::LeafSpine => Shape::LeafSpine,
        TopologyShape::Torus => Shape::Torus(topology.sizes.iter().map(|size| *size as usize).collect()),
        TopologyShape::Hypercube => Shape::Hypercube,
        TopologyShape::Custom => Shape::Custom,
    }
}
