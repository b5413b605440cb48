//! Checks distances of members against the hop limit of frames.
//!
//! A frame crosses at most [`HOPS_MAX`] links. In a rack with no more members than that, no path is longer. In larger racks this
//! file checks the longest of all shortest paths, and the detour around each link, which a cut of that link forces. Several
//! concurrent cuts are not checked.

use rackloom_protocol::NodeId;

use crate::check::inspection::Inspection;
use crate::model::plan::distances::{Neighbours, from, search};
use crate::read::mistake::{Complaint, quoted};
use crate::schema::HOPS_MAX;

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
