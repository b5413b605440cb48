//! Status of standing racks, as tables.

use rackloom_control::request::{MemberStatus, RackStatus};
use rackloom_jobs::report::{MemoryReport, Verdict};
use rackloom_plan::JobKind;

use super::active_faults::active_faults;
use super::ip::interfaces;
use super::links::{carried, links, paths};
use super::submitted::jobs_and_tenants;
use super::table::{Column, Table};
use super::units;

/// Formats one rack: a summary line, then its tables.
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
        interfaces(status),
        faults(status),
        status.submitted.as_ref().and_then(jobs_and_tenants),
    ];
    tables.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// Formats faults in effect, scripted and injected.
fn faults(status: &RackStatus) -> Option<String> {
    let mut table = Table::new(&[Column::Left("active fault"), Column::Left("at"), Column::Right("age")]);
    for fault in active_faults(&status.faults) {
        table.row([fault.what.to_owned(), fault.members.join(" "), units::time(fault.age_ns)]);
    }
    (!status.faults.is_empty()).then(|| table.render())
}

/// Formats the memory of each node: reserved and used bytes, now and at most. A node with a pool shows the
/// pool.
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

/// Formats the job and its state.
fn job(status: &RackStatus) -> String {
    let name = &status.job;
    let mut nodes = status.members.iter().filter(|member| is_node(member));
    match status.verdict {
        _ if !has_job(status) => format!("job {name}"),
        Some(verdict) => format!("job {name}: {}", verdict_name(verdict)),
        None if nodes.all(|node| node.verdict.is_some()) => {
            format!("job {name}: ended; `down` compares it with the expectations of the file")
        }
        None => format!("job {name}: running"),
    }
}

fn has_job(status: &RackStatus) -> bool {
    status.job != JobKind::None.name()
}

fn is_node(member: &MemberStatus) -> bool {
    member.memory_bytes > 0
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::CouldNotTell => "could not tell",
        Verdict::Starved => "starved",
    }
}

/// Formats the members of a rack.
pub(crate) fn members_status(status: &RackStatus) -> String {
    let is_special = status.members.iter().any(|member| held(member).is_some());
    let mut columns = vec![
        Column::Left("member"),
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
        let part = member.verdict.map_or("-", verdict_name).to_owned();
        let part = has_job(status).then_some(part);
        table.row(row(member).into_iter().chain(part).chain(held));
    }
    table.render()
}

/// Describes how a member's memory is held, if in a special way.
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
