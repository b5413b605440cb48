//! Status of a standing rack, from its supervisor and the latest answers of its seats.

use rackloom_control::request::{ActiveFault, CaptureStatus, MemberStatus, PROCESS, PROTOCOL, RackStatus};
use rackloom_jobs::report::Verdict;
use rackloom_plan::{Expectations, JobKind};
use rackloom_protocol::{MemberRole, NodeId};

use super::links;
use crate::supervisor::Supervisor;
use crate::supervisor::rack::Seat;

/// Role of members that have memory, in a status.
pub(super) const GPU_NODE: &str = "gpu node";

/// Returns the status of the rack. Process seats are left out while they are vacant.
pub(super) fn of_rack(supervisor: &Supervisor) -> RackStatus {
    let Supervisor { plan, rack, clock, here, active_faults, fault_names, .. } = supervisor;
    let now_ns = clock.now().0;
    let graph = plan.graph();
    let is_shown = |member: usize| rack.seats[member].process_of.is_none() || !rack.seats[member].is_vacant();
    let is_edge_shown = |edge: &u16| is_shown(plan.links[usize::from(*edge)].edge.b.index());
    let has_job = plan.job.kind != JobKind::None;
    let expects = plan.expect != Expectations::default();
    let answers: Vec<_> =
        rack.seats.iter().map(|seat| seat.status.as_ref().filter(|_| seat.is_alive())).collect();
    let member = |(index, seat): (usize, &Seat)| {
        let member = &plan.members[index];
        let node = NodeId(index as u16);
        let answered = answers[index];
        let memory = answered.and_then(|status| status.memory.as_deref().cloned());
        let ports = graph.ports(node);
        let edges = || ports.iter().map(|port| port.edge).filter(is_edge_shown);
        let is_switch = member.role.is_switch();
        MemberStatus {
            name: member.name.clone(),
            role: role(member.role).to_owned(),
            pid: (!seat.is_vacant()).then_some(seat.pid),
            server: member.server.clone(),
            tenant: member.tenant.0.into(),
            state: state(seat, has_job && !is_switch).to_owned(),
            verdict: answered.and_then(|status| status.verdict).filter(|_| does_job(seat, has_job)),
            note: seat.death.clone(),
            memory_used_bytes: memory.as_ref().map(|memory| memory.used_bytes.current),
            memory_bytes: member.memory_bytes,
            memory,
            links_up: answered.map(|status| status.links_up),
            links_down: answered
                .map(|status| edges().filter(|edge| status.links_down.contains(edge)).collect())
                .unwrap_or_default(),
            links_total: edges().count(),
            uptime_ns: seat.is_alive().then(|| now_ns.saturating_sub(seat.taken_at_ns)),
            at_ns: answered.map(|status| status.at_ns),
            processor_ns: answered.map(|status| status.processor_ns),
            incarnation: answered.map(|status| status.incarnation),
            paths: links::paths_of(plan, node, answered.filter(|_| !is_switch)),
            carried: answered.and_then(|status| status.carried),
            ip: answered.and_then(|status| status.ip),
        }
    };
    let members = rack.seats.iter().enumerate().filter(|(index, _)| is_shown(*index));
    let members: Vec<_> = members.map(member).collect();
    let ends_up: usize = members.iter().filter_map(|member| member.links_up).map(usize::from).sum();
    let shown_links = (0..).zip(&plan.links).filter(|(edge, _)| is_edge_shown(edge));
    let ends: Vec<_> = shown_links.map(|(_, link)| here.ends(plan, &link.edge) as usize).collect();
    let links_total = ends.iter().filter(|ends| **ends > 0).count();
    let ends_total: usize = ends.iter().sum();
    let state = match () {
        () if rack.is_running() => "up",
        () if rack.ending.is_some() => "going",
        () => "starting",
    };
    RackStatus {
        protocol: PROTOCOL,
        name: plan.name.clone(),
        pid: std::process::id(),
        state: state.to_owned(),
        wire: plan.settings.wire.name().to_owned(),
        job: plan.job.kind.name().to_owned(),
        verdict: verdict(&rack.seats).filter(|_| has_job && !expects),
        epoch: plan.epoch,
        config_hash: format!("{:016x}", plan.config_hash),
        uptime_ns: now_ns,
        // One end of a link to another host is on this host.
        links_up: (ends_up * links_total).checked_div(ends_total).unwrap_or(0),
        links_total,
        members,
        faults: active_faults
            .iter()
            .map(|((number, member), began_ns)| ActiveFault {
                fault: *number,
                what: fault_names.get(number.wrapping_sub(1)).cloned().unwrap_or_default(),
                member: member.clone(),
                age_ns: now_ns.saturating_sub(*began_ns),
            })
            .collect(),
        links: links::of_rack(plan, here, &answers)
            .into_iter()
            .filter(|link| is_edge_shown(&link.link))
            .collect(),
        ip: supervisor.ip.clone(),
        device_ports: plan.process_ports_of(NodeId(0)).first().map(Vec::len),
        metrics: None,
        submitted: None,
        captures: supervisor
            .captures()
            .map(|files| CaptureStatus { directory: files.directory().to_owned(), run: clock.origin_ns() }),
    }
}

/// Returns true if this seat takes part in the job. The successor of a dead node does not.
fn does_job(seat: &Seat, has_job: bool) -> bool {
    has_job && seat.is_endpoint && seat.earlier_deaths.is_empty()
}

/// Returns the verdict of the job once it has ended on every node, as in the report of `down`: a node that
/// died without a report is a failure. `None` while a seat is vacant or its process has not answered.
fn verdict(seats: &[Seat]) -> Option<Verdict> {
    let endpoints = || seats.iter().filter(|seat| seat.is_endpoint && !seat.is_elsewhere());
    let of_seat = |seat: &Seat| match &seat.status {
        _ if seat.has_ended() => Some(Verdict::Fail),
        Some(status) if !seat.is_vacant() => status.verdict,
        _ => None,
    };
    if endpoints().any(|seat| of_seat(seat).is_none()) {
        return None;
    }
    let is_pass = endpoints().all(|seat| of_seat(seat) == Some(Verdict::Pass));
    Some(if is_pass { Verdict::Pass } else { Verdict::Fail })
}

const fn role(role: MemberRole) -> &'static str {
    match role {
        MemberRole::Endpoint => GPU_NODE,
        MemberRole::Switch | MemberRole::ReducingSwitch => "switch",
        MemberRole::Process | MemberRole::PinnedProcess => PROCESS,
    }
}

/// Returns the name of a member's state.
fn state(seat: &Seat, has_job: bool) -> &'static str {
    match &seat.status {
        _ if seat.is_elsewhere() => "elsewhere",
        _ if seat.is_vacant() => "vacant",
        _ if seat.has_ended() => "lost",
        None => "silent",
        Some(_) if !seat.is_up() => "starting",
        Some(status) if has_job && !status.finished => "working",
        Some(_) => "up",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::rack::{Occupancy, Rack};
    use rackloom_control::notice::SeatStatus;

    /// Returns a GPU node that has answered, with one change.
    fn seat_with(verdict: Option<Verdict>, change: impl FnOnce(&mut Seat)) -> Seat {
        let mut rack = Rack::new([("n0".to_owned(), true)], 1, 1);
        let mut seat = rack.seats.remove(0);
        let finished = verdict.is_some();
        seat.status = Some(SeatStatus { links_up: 2, finished, verdict, ..SeatStatus::default() });
        change(&mut seat);
        seat
    }

    fn seat(verdict: Option<Verdict>) -> Seat {
        seat_with(verdict, |_| {})
    }

    fn switch() -> Seat {
        seat_with(None, |seat| seat.is_endpoint = false)
    }

    #[test]
    fn a_job_has_a_verdict_when_it_has_ended_on_every_node() {
        let (pass, fail) = (Some(Verdict::Pass), Some(Verdict::Fail));
        let lost = seat_with(pass, |seat| seat.occupancy = Occupancy::Ended);
        let vacant = seat_with(pass, |seat| seat.occupancy = Occupancy::Vacant);
        let silent = seat_with(pass, |seat| seat.status = None);
        assert_eq!(verdict(&[seat(pass), seat(pass), switch()]), pass);
        assert_eq!(verdict(&[seat(pass), seat(fail), switch()]), fail);
        assert_eq!(verdict(&[seat(pass), lost]), fail, "a dead node sends no report");
        for unknown in [seat(None), vacant, silent] {
            assert_eq!(verdict(&[seat(pass), unknown]), None);
        }
    }

    #[test]
    fn only_members_that_run_the_job_have_a_verdict() {
        assert!(does_job(&seat(None), true) && !does_job(&seat(None), false));
        let successor = seat_with(None, |seat| seat.earlier_deaths.push("killed by signal 9".to_owned()));
        assert!(!does_job(&successor, true));
        assert!(!does_job(&switch(), true));
    }
}
