//! How a standing rack is, from what its supervisor knows and its seats have just said.

use rackloom_plan::JobKind;
use rackloom_protocol::{MemberRole, NodeId};

use crate::control::request::{MemberStatus, PROTOCOL, RackStatus};
use crate::present;
use crate::supervisor::Supervisor;
use crate::supervisor::rack::Seat;

/// The answer to `status`.
pub(super) fn of_rack(supervisor: &Supervisor) -> RackStatus {
    let Supervisor { plan, rack, clock, .. } = supervisor;
    let now_ns = clock.now().0;
    let graph = plan.graph();
    let has_job = plan.job.kind != JobKind::None;
    let members: Vec<_> = plan
        .members
        .iter()
        .zip(&rack.seats)
        .enumerate()
        .map(|(index, (member, seat))| {
            let answered = seat.status.as_ref().filter(|_| seat.is_alive());
            let memory = answered.and_then(|status| status.memory.clone());
            let is_switch = member.role == MemberRole::Switch;
            MemberStatus {
                name: member.name.clone(),
                role: present::role(member.role).to_owned(),
                pid: (!seat.is_vacant).then_some(seat.pid),
                server: member.server.clone(),
                tenant: member.tenant.0.into(),
                state: state(seat, has_job && !is_switch).to_owned(),
                note: seat.death.clone(),
                memory_used_bytes: memory.as_ref().map(|memory| memory.used_bytes.current),
                memory_bytes: member.memory_bytes,
                memory,
                links_up: answered.map(|status| status.links_up),
                links_total: graph.ports(NodeId(index as u16)).len(),
                uptime_ns: seat.is_alive().then(|| now_ns.saturating_sub(seat.taken_at_ns)),
            }
        })
        .collect();
    let ends_up: usize = members.iter().filter_map(|member| member.links_up).map(usize::from).sum();
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
        wire: plan.wire.name().to_owned(),
        job: plan.job.kind.name().to_owned(),
        epoch: plan.epoch,
        config_hash: format!("{:016x}", plan.config_hash),
        uptime_ns: now_ns,
        links_up: ends_up / 2,
        links_total: plan.links.len(),
        members,
    }
}

/// One word.
fn state(seat: &Seat, has_job: bool) -> &'static str {
    match &seat.status {
        _ if seat.is_vacant => "vacant",
        _ if seat.ended => "lost",
        None => "silent",
        Some(_) if !seat.is_up() => "starting",
        Some(status) if has_job && !status.finished => "working",
        Some(_) => "up",
    }
}
