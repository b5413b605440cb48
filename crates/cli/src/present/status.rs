//! How standing racks are, as tables.

use rackloom_control::request::{MemberStatus, RackStatus};
use rackloom_jobs::report::{MemoryReport, Verdict};
use rackloom_plan::JobKind;

use super::links::{carried, links, paths};
use super::table::{Column, Table};
use super::units;

/// One rack: a line about it, then its members.
pub(crate) fn rack_status(status: &RackStatus) -> String {
    let RackStatus { name, pid, state, wire, links_up, links_total, uptime_ns, .. } = status;
    let job = job(status);
    let uptime = units::time(*uptime_ns);
    let line = format!(
        "rack {name} · {state} · {uptime} · process {pid} · wire {wire} · {job} · {links_up} of {links_total} links up"
    );
    let tables = [
        Some(line),
        Some(members_status(status)),
        pools(status),
        links(status),
        paths(status),
        carried(status),
        faults(status),
    ];
    tables.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// Faults in effect, scripted and injected.
fn faults(status: &RackStatus) -> Option<String> {
    let mut table = Table::new(&[Column::Left("active fault"), Column::Left("at"), Column::Right("age")]);
    for fault in &status.faults {
        table.row([fault.what.clone(), fault.member.clone(), units::time(fault.age_ns)]);
    }
    (!status.faults.is_empty()).then(|| table.render())
}

/// What each node holds of the memory that it was given, and what is used of that, now and at most: of its pool where it has one.
fn pools(status: &RackStatus) -> Option<String> {
    let mut table = Table::new(&[
        Column::Left("memory of"),
        Column::Left("from"),
        Column::Right("reserved"),
        Column::Right("at most"),
        Column::Right("used"),
        Column::Right("at most"),
    ]);
    let known: Vec<_> =
        status.members.iter().filter_map(|member| Some((member, member.memory.as_ref()?))).collect();
    for (member, memory) in &known {
        let device = memory.device.as_deref().unwrap_or("the host");
        let (from, reserved, used) = match &memory.pool {
            Some(pool) => (format!("a pool on {device}"), pool.reserved_bytes, pool.used_bytes),
            None => (device.to_owned(), memory.reserved_bytes, memory.used_bytes),
        };
        let levels = [reserved.current, reserved.high, used.current, used.high].map(units::bytes);
        table.row([member.name.clone(), from].into_iter().chain(levels));
    }
    (!known.is_empty()).then(|| table.render())
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
        Verdict::CouldNotTell => "could not tell",
        Verdict::Starved => "starved",
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
