//! Members: sizes, memory, and whether everybody can reach everybody.

use std::collections::VecDeque;

use rackloom_protocol::wire::control::{REPORT_BYTES, REPORT_ENTRY_BYTES};
use rackloom_protocol::wire::layout::FABRIC;
use rackloom_protocol::{MemberRole, NodeId};

use crate::check::Inspection;
use crate::mistake::{Complaint, quoted};
use crate::plan::{JobKind, MemberPlan};
use crate::quantity::{Unit, shown};

const MEMORY_BYTES_MIN: u64 = 4 << 10;
const MEMORY_BYTES_MAX: u64 = 64 << 30;

pub(super) fn check(check: &mut Inspection<'_>) {
    let plan = check.plan;
    if plan.endpoint_count() < 2 {
        let message = format!("a rack has at least two nodes, found {}", plan.endpoint_count());
        check.complain(&["shape"], Complaint::new(message));
    }
    for member in plan.members.iter().filter(|member| member.role == MemberRole::Endpoint) {
        memory(check, member);
    }
    let neighbours = neighbours(check);
    reports(check, &neighbours);
    for (member, reached) in plan.members.iter().zip(reached_from_first(&neighbours)) {
        if !reached {
            let first = quoted(&plan.members[0].name);
            let message = format!("{} cannot be reached from {first}", quoted(&member.name));
            let hint = "every member needs a path of links to every other";
            check
                .complain(&[&format!("member.{}", member.name), "shape"], Complaint::new(message).hint(hint));
        }
    }
}

fn memory(check: &mut Inspection<'_>, member: &MemberPlan) {
    let own = format!("nodes.{}.memory", member.name);
    // One complaint per place: at the node's own line if it has one, else at the default.
    let path = check.places.first_written(&[&own]).unwrap_or("defaults.memory").to_owned();
    let range = MEMORY_BYTES_MIN..=MEMORY_BYTES_MAX;
    if !check.within(&path, member.memory_bytes, range, Unit::Bytes) || !check.intact(&[&path]) {
        return;
    }
    let job = check.plan.job;
    let needed = u64::from(job.bytes_max);
    if job.kind == JobKind::Litmus && check.intact(&["job.litmus.bytes_max"]) && needed > member.memory_bytes
    {
        let message = format!(
            "the litmus moves {} at once, more than the {} of `{path}`",
            shown(needed, Unit::Bytes),
            shown(member.memory_bytes, Unit::Bytes)
        );
        check.complain(&[&path, "job.litmus.bytes_max"], Complaint::new(message));
    }
}

/// Neighbours of each member.
fn neighbours(check: &Inspection<'_>) -> Vec<Vec<NodeId>> {
    let mut neighbours = vec![Vec::new(); check.plan.members.len()];
    for link in &check.plan.links {
        neighbours[link.edge.a.index()].push(link.edge.b);
        neighbours[link.edge.b.index()].push(link.edge.a);
    }
    neighbours
}

/// A member reports the state of all its links in one frame.
fn reports(check: &mut Inspection<'_>, neighbours: &[Vec<NodeId>]) {
    let room =
        usize::from(check.plan.frame_bytes_max).saturating_sub(FABRIC + REPORT_BYTES) / REPORT_ENTRY_BYTES;
    let most = neighbours.iter().zip(&check.plan.members).max_by_key(|(links, _)| links.len());
    let Some((links, member)) = most else { return };
    if links.len() > room && check.intact(&["frame_bytes_max"]) {
        let message = format!(
            "{} has {} links; a frame of {} reports at most {room}",
            quoted(&member.name),
            links.len(),
            shown(check.plan.frame_bytes_max.into(), Unit::Bytes)
        );
        let hint = "raise `frame_bytes_max`, or spread the nodes over more switches";
        check.complain(&["frame_bytes_max", "shape"], Complaint::new(message).hint(hint));
    }
}

/// Whether a path of links leads from the first member to each.
fn reached_from_first(neighbours: &[Vec<NodeId>]) -> Vec<bool> {
    let mut reached = vec![false; neighbours.len()];
    let mut waiting = VecDeque::new();
    if let Some(first) = reached.first_mut() {
        *first = true;
        waiting.push_back(NodeId(0));
    }
    while let Some(member) = waiting.pop_front() {
        for neighbour in &neighbours[member.index()] {
            if !std::mem::replace(&mut reached[neighbour.index()], true) {
                waiting.push_back(*neighbour);
            }
        }
    }
    reached
}
