//! Checks members: sizes, memory, quotas, and reachability.

use rackloom_protocol::wire::control::{REPORT_BYTES, REPORT_ENTRY_BYTES};
use rackloom_protocol::wire::layout::FABRIC;
use rackloom_protocol::{MemberRole, NodeId};

use crate::check::hops;
use crate::check::inspection::{Fit, Inspection};
use crate::check::objections::size_paths;
use crate::model::defaults;
use crate::model::members::member::{MemberPlan, TenantPlan};
use crate::model::plan::distances::{self, Neighbours};
use crate::read::mistake::{Complaint, quoted};
use crate::schema;
use crate::setting::quantity::{Unit, shown};

pub(super) fn check(check: &mut Inspection<'_>) {
    let plan = check.plan;
    if plan.endpoint_count() < 2 && check.intact(&["shape"]) {
        let message = format!("a rack has at least two nodes, found {}", plan.endpoint_count());
        check.complain(&["shape"], Complaint::about(message).hint("name more nodes; a switch is none"));
    }
    for member in plan.members.iter().filter(|member| member.role == MemberRole::Endpoint) {
        memory(check, member);
    }
    for tenant in &plan.tenants {
        quota(check, tenant);
    }
    let neighbours = distances::neighbours(plan);
    reports(check, &neighbours);
    if reach(check, &neighbours) && check.intact(&["shape"]) {
        hops::check(check, &neighbours);
    }
}

/// Returns true if every member can be reached from every other.
fn reach(check: &mut Inspection<'_>, neighbours: &Neighbours) -> bool {
    let plan = check.plan;
    // A member without a link is reported itself, and not as unreachable from the others.
    let first = neighbours.iter().position(|links| !links.is_empty()).unwrap_or(0);
    let mut reached = vec![false; neighbours.len()];
    reached_from(neighbours, first, &mut reached);
    for (index, member) in plan.members.iter().enumerate() {
        // A link with an unknown end may have been meant to lead to any member.
        if !check.intact(&[&format!("member.{}.links", member.name)]) {
            reached_from(neighbours, index, &mut reached);
        }
    }
    for (index, member) in plan.members.iter().enumerate().filter(|(index, _)| !reached[*index]) {
        let name = quoted(&member.name);
        let message = match neighbours[index].is_empty() {
            true => format!("{name} has no link"),
            false => format!("{name} cannot be reached from {}", quoted(&plan.members[first].name)),
        };
        let hint = "every member needs a path of links to every other";
        check.complain(&[&format!("member.{}", member.name), "shape"], Complaint::about(message).hint(hint));
    }
    reached.iter().all(|reached| *reached)
}

/// Marks the members that can be reached from this member.
fn reached_from(neighbours: &Neighbours, member: usize, reached: &mut [bool]) {
    if reached.get(member).is_none_or(|reached| *reached) {
        return;
    }
    let hops = distances::from(neighbours, NodeId(member as u16));
    reached.iter_mut().zip(hops).for_each(|(reached, hops)| *reached |= hops.is_some());
}

fn memory(check: &mut Inspection<'_>, member: &MemberPlan) {
    // One mistake per position: where the size is written, else at the default.
    let origin = check.positions.origin_of(&format!("nodes.{}.memory", member.name));
    let path = origin.unwrap_or("defaults.memory").to_owned();
    let Some(key) = schema::DEFAULTS.find("memory") else { return };
    if !check.within(&path, key, member.memory_bytes) || !check.intact(&[&path]) {
        return;
    }
    let sized_by = size_paths(check.plan.job.kind);
    let mut paths = vec![path.as_str(), "job"];
    paths.extend(sized_by.iter().map(String::as_str));
    let needed = check.plan.memory_needed_by_job();
    let is_whole = check.intact(&paths) && check.intact(&["shape"]);
    if check.fit == Fit::Judged && is_whole && needed > member.memory_bytes {
        check.job_is_too_large = true;
        let whose = match check.positions.find(&path) {
            Some(_) => format!("of `{path}`"),
            None if member.memory_bytes == defaults::MEMORY_BYTES => "that a node has by default".to_owned(),
            None => "that a node has".to_owned(),
        };
        let message = format!(
            "the {} takes {} at once, more than the {} {whose}",
            check.plan.job.kind.name(),
            shown(needed, Unit::Bytes),
            shown(member.memory_bytes, Unit::Bytes)
        );
        let hint = "raise `defaults.memory`, or give the job smaller sizes";
        // The word `job` is no position of a size, because its default sizes are not written.
        let paths: Vec<&str> = paths.into_iter().filter(|path| *path != "job").collect();
        check.complain(&paths, Complaint::about(message).hint(hint));
    }
}

/// The memory of a tenant's nodes must stay within its quota.
fn quota(check: &mut Inspection<'_>, quota: &TenantPlan) {
    let number = quota.tenant.0;
    let key = format!("tenants.{number}");
    let path = format!("{key}.memory_max");
    let endpoints = check.plan.members.iter().filter(|member| member.role == MemberRole::Endpoint);
    let seats: Vec<&MemberPlan> = endpoints.filter(|member| member.tenant == quota.tenant).collect();
    let memory_bytes: u64 = seats.iter().map(|member| member.memory_bytes).fold(0, u64::saturating_add);
    let names = crate::read::listed(seats.iter().map(|member| member.name.as_str()));
    if seats.is_empty() && !check.intact(&["shape"]) {
        // Which nodes belong to the tenant is not known.
    } else if seats.is_empty() {
        let complaint = Complaint::about(format!("no node is of tenant {number}"));
        check.complain(
            &[&key],
            complaint.hint("a node's `tenant` stands under `nodes`, `groups` or `defaults`"),
        );
    } else if check.intact(&[&path]) && memory_bytes > quota.memory_max_bytes {
        let message = format!(
            "the nodes of tenant {number} ({names}) have {} of memory, more than its `memory_max` of {}",
            shown(memory_bytes, Unit::Bytes),
            shown(quota.memory_max_bytes, Unit::Bytes)
        );
        check.complain(&[&path], Complaint::about(message).hint("raise the quota, or give the nodes less"));
    }
}

/// A member reports the state of all its links in one frame.
fn reports(check: &mut Inspection<'_>, neighbours: &Neighbours) {
    let links_max = usize::from(check.plan.settings.frame_bytes_max).saturating_sub(FABRIC + REPORT_BYTES)
        / REPORT_ENTRY_BYTES;
    let most = neighbours.iter().zip(&check.plan.members).max_by_key(|(links, _)| links.len());
    let Some((links, member)) = most else { return };
    if links.len() > links_max && check.intact(&["frame_bytes_max"]) {
        let message = format!(
            "{} has {} links; a frame of {} reports at most {links_max}",
            quoted(&member.name),
            links.len(),
            shown(check.plan.settings.frame_bytes_max.into(), Unit::Bytes)
        );
        let hint = "raise `frame_bytes_max`, or spread the nodes over more switches";
        check.complain(&["frame_bytes_max", "shape"], Complaint::about(message).hint(hint));
    }
}
