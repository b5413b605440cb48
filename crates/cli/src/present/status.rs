//! How standing racks are, as tables.

use rackloom_jobs::report::{MemoryReport, Verdict};
use rackloom_plan::JobKind;

use super::table::{Column, Table};
use super::units;
use crate::control::request::{MemberStatus, RackStatus};

/// One rack: a line about it, then its members.
pub(crate) fn rack_status(status: &RackStatus) -> String {
    let RackStatus { name, pid, state, wire, links_up, links_total, uptime_ns, .. } = status;
    let job = job(status);
    let uptime = units::time(*uptime_ns);
    format!(
        "rack {name} · {state} · {uptime} · process {pid} · wire {wire} · {job} · {links_up} of {links_total} links up\n\n{}",
        members_status(status)
    )
}

/// Which job, and how it is.
fn job(status: &RackStatus) -> String {
    let name = &status.job;
    let mut nodes = status.members.iter().filter(|member| is_node(member));
    match status.verdict {
        _ if !has_job(status) => format!("job {name}"),
        Some(verdict) => format!("job {name}: {}", word(verdict)),
        None if nodes.all(|node| node.verdict.is_some()) => {
            format!("job {name}: over, `down` holds it against what the file expects")
        }
        None => format!("job {name}: not over"),
    }
}

fn has_job(status: &RackStatus) -> bool {
    status.job != JobKind::None.name()
}

fn is_node(member: &MemberStatus) -> bool {
    member.memory_bytes > 0
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
    }
}

/// The members of a rack.
pub(crate) fn members_status(status: &RackStatus) -> String {
    let is_special = status.members.iter().any(|member| held(member).is_some());
    let mut columns = vec![
        Column::Left("node"),
        Column::Left("role"),
        Column::Right("process"),
        Column::Left("server"),
        Column::Right("tenant"),
        Column::Left("state"),
        Column::Right("memory used"),
        Column::Right("of"),
        Column::Right("links up"),
        Column::Right("uptime"),
    ];
    if has_job(status) {
        columns.push(Column::Left("job"));
    }
    if is_special {
        columns.push(Column::Left("memory is"));
    }
    let mut table = Table::new(&columns);
    for member in &status.members {
        let held = is_special.then(|| held(member).unwrap_or_else(|| "-".to_owned()));
        let part = member.verdict.map_or("-", word).to_owned();
        let part = has_job(status).then_some(part);
        table.row(row(member).into_iter().chain(part).chain(held));
    }
    table.render()
}

/// How a member's memory is held, if not as memory usually is.
fn held(member: &MemberStatus) -> Option<String> {
    member.memory.as_ref().and_then(MemoryReport::held)
}

fn row(member: &MemberStatus) -> [String; 10] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let links_up = or_dash(member.links_up.map(|up| up.to_string()));
    [
        member.name.clone(),
        member.role.clone(),
        or_dash(member.pid.map(|pid| pid.to_string())),
        member.server.clone(),
        member.tenant.to_string(),
        match &member.note {
            Some(note) => format!("{}: {note}", member.state),
            None => member.state.clone(),
        },
        or_dash(member.memory_used_bytes.map(units::bytes)),
        or_dash(is_node(member).then(|| units::bytes(member.memory_bytes))),
        format!("{links_up}/{}", member.links_total),
        or_dash(member.uptime_ns.map(units::time)),
    ]
}
