//! Checks distances of members against the hop limit of frames.
//!
//! A frame crosses at most [`HOPS_MAX`] links. In a rack with no more members than that, no path is longer. In larger racks this
//! file checks the longest of all shortest paths, and the detour around each link, which a cut of that link forces. Several
//! concurrent cuts are not checked.

use std::collections::VecDeque;

use rackloom_protocol::NodeId;

use crate::check::Inspection;
use crate::mistake::{Complaint, quoted};
use crate::plan::Plan;
use crate::schema::HOPS_MAX;

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

/// Checks a rack in which every member can be reached.
pub(super) fn check(check: &mut Inspection<'_>, neighbours: &Neighbours) {
    let plan = check.plan;
    if plan.members.len() as u64 <= HOPS_MAX + 1 {
        return;
    }
    // All members are in a tree of this height. Without one of its links it is at most two trees of that height, which
    // another link may join. If twice both heights and that link are short enough, every path and every detour is.
    let height = from(neighbours, NodeId(0)).into_iter().flatten().max().unwrap_or(0);
    if 4 * height < HOPS_MAX {
        return;
    }
    if !diameter(check, neighbours) {
        return;
    }
    for link in &plan.links {
        let (a, b) = (link.edge.a, link.edge.b);
        let parallel = neighbours[a.index()].iter().filter(|neighbour| **neighbour == b).count() > 1;
        let cut = |from: NodeId, to: NodeId| parallel || (from, to) != (a, b);
        let Some(detour) = search(neighbours, a, cut, |member| member == b)[b.index()] else { continue };
        if detour > HOPS_MAX {
            let message = format!("without {} its ends are {detour} links apart", quoted(&link.name));
            complain(check, message);
            return;
        }
    }
}

/// Returns true if no two members are too far apart.
fn diameter(check: &mut Inspection<'_>, neighbours: &Neighbours) -> bool {
    for (source, member) in (0..).zip(&check.plan.members) {
        let hops = from(neighbours, NodeId(source));
        let farthest = hops.iter().enumerate().max_by_key(|(_, hops)| **hops);
        let Some((other, hops)) = farthest.and_then(|(other, hops)| Some((other, (*hops)?))) else {
            continue;
        };
        if hops > HOPS_MAX {
            let other = &check.plan.members[other].name;
            let message = format!("{} and {} are {hops} links apart", quoted(&member.name), quoted(other));
            complain(check, message);
            return false;
        }
    }
    true
}

fn complain(check: &mut Inspection<'_>, message: String) {
    let hint = format!("a frame crosses at most {HOPS_MAX} links; add links that shorten the way");
    check.complain(&["shape"], Complaint::about(message).hint(hint));
}

/// Searches breadth first, over links that `passes` permits, until `ends`.
fn search(
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
