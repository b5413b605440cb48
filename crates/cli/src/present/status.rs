//! How standing racks are, as tables.

use rackloom_jobs::report::MemoryReport;

use super::table::{Column, Table};
use super::units;
use crate::control::request::{MemberStatus, RackStatus};

/// One rack: a line about it, then its members.
pub(crate) fn rack_status(status: &RackStatus) -> String {
    let RackStatus { name, pid, state, wire, job, links_up, links_total, uptime_ns, .. } = status;
    let uptime = units::time(*uptime_ns);
    format!(
        "rack {name} · {state} · {uptime} · process {pid} · wire {wire} · job {job} · {links_up} of {links_total} links up\n\n{}",
        members_status(status)
    )
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
    if is_special {
        columns.push(Column::Left("memory is"));
    }
    let mut table = Table::new(&columns);
    for member in &status.members {
        let held = is_special.then(|| held(member).unwrap_or_else(|| "-".to_owned()));
        table.row(row(member).into_iter().chain(held));
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
    let is_node = member.memory_bytes > 0;
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
        or_dash(is_node.then(|| units::bytes(member.memory_bytes))),
        format!("{links_up}/{}", member.links_total),
        or_dash(member.uptime_ns.map(units::time)),
    ]
}
