//! Distances between the members of a plan, in links.

use std::collections::VecDeque;

use rackloom_protocol::NodeId;

use crate::model::plan::Plan;

/// Neighbours of each member, one entry per link.
pub(crate) type Neighbours = [Vec<NodeId>];

/// Returns the neighbours of each member.
pub(crate) fn neighbours(plan: &Plan) -> Vec<Vec<NodeId>> {
    let mut neighbours = vec![Vec::new(); plan.members.len()];
    for link in &plan.links {
        neighbours[link.edge.a.index()].push(link.edge.b);
        neighbours[link.edge.b.index()].push(link.edge.a);
    }
    neighbours
}

/// Returns the number of links on the shortest path from one member to each, or `None` if there is no path.
pub(crate) fn from(neighbours: &Neighbours, source: NodeId) -> Vec<Option<u64>> {
    search(neighbours, source, |_, _| true, |_| false)
}

/// Searches breadth first, over links that `passes` permits, until `ends`.
pub(crate) fn search(
    neighbours: &Neighbours,
    source: NodeId,
    passes: impl Fn(NodeId, NodeId) -> bool,
    ends: impl Fn(NodeId) -> bool,
) -> Vec<Option<u64>> {
    let mut hops = vec![None; neighbours.len()];
    let mut waiting = VecDeque::new();
    if let Some(first) = hops.get_mut(source.index()) {
        *first = Some(0);
        waiting.push_back((source, 0));
    }
    while let Some((member, distance)) = waiting.pop_front() {
        if ends(member) {
            break;
        }
        for neighbour in &neighbours[member.index()] {
            if hops[neighbour.index()].is_none() && passes(member, *neighbour) {
                hops[neighbour.index()] = Some(distance + 1);
                waiting.push_back((*neighbour, distance + 1));
            }
        }
    }
    hops
}
