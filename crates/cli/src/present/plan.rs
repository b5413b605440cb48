//! A plan as tables: members, links, settings, everything resolved as the engines will see it.

use rackloom_plan::{LinkProfile, MemoryOptions, Plan};
use rackloom_protocol::{MemberRole, NodeId, RetransmissionMode};

use super::table::{Column, Table};
use super::units;

/// Everything.
pub(crate) fn plan(plan: &Plan) -> String {
    let mut parts = vec![format!("rack {}", plan.name), members(plan, None)];
    parts.extend(memory(plan));
    parts.extend([links(plan), settings(plan)]);
    parts.join("\n\n")
}

/// How nodes hold their memory, of those that do not hold it as it comes.
fn memory(plan: &Plan) -> Option<String> {
    let mut table = Table::new(&[
        Column::Left("memory of"),
        Column::Left("huge pages"),
        Column::Left("locked"),
        Column::Left("numa node"),
    ]);
    let special = plan.members.iter().filter(|member| member.memory != MemoryOptions::default());
    let special: Vec<_> = special.collect();
    for member in &special {
        let MemoryOptions { huge_pages, locked, numa_node } = member.memory;
        let word = |is_so: bool| if is_so { "yes" } else { "-" }.to_owned();
        let numa_node = numa_node.map_or_else(|| "-".to_owned(), |node| node.to_string());
        table.row([member.name.clone(), word(huge_pages), word(locked), numa_node]);
    }
    (!special.is_empty()).then(|| table.render())
}

/// Members; with their processes where there are any.
pub(crate) fn members(plan: &Plan, pids: Option<&[u32]>) -> String {
    let mut columns = vec![Column::Left("member"), Column::Left("role")];
    columns.extend(pids.map(|_| Column::Right("process")));
    columns.extend([
        Column::Left("server"),
        Column::Right("tenant"),
        Column::Right("memory"),
        Column::Left("links to"),
    ]);
    let mut table = Table::new(&columns);
    let graph = plan.graph();
    for (index, member) in plan.members.iter().enumerate() {
        let node = NodeId(index as u16);
        let neighbours: Vec<_> = graph
            .ports(node)
            .into_iter()
            .map(|(_, neighbour, _)| plan.members[neighbour.index()].name.clone())
            .collect();
        let mut cells = vec![member.name.clone(), role(member.role).to_owned()];
        cells.extend(pids.map(|pids| process(plan, node, pids)));
        let is_switch = member.role == MemberRole::Switch;
        cells.extend([
            member.server.clone(),
            member.tenant.0.to_string(),
            if is_switch { "-".to_owned() } else { units::bytes(member.memory_bytes) },
            neighbours.join(" "),
        ]);
        table.row(cells);
    }
    table.render()
}

/// A member's process, or the host that runs it.
fn process(plan: &Plan, node: NodeId, pids: &[u32]) -> String {
    match (pids.get(node.index()), plan.host_of(node)) {
        (Some(0), Some(host)) => format!("host {}", host.name),
        (Some(pid), _) => pid.to_string(),
        (None, _) => String::new(),
    }
}

pub(crate) const fn role(role: MemberRole) -> &'static str {
    match role {
        MemberRole::Endpoint => "gpu node",
        MemberRole::Switch => "switch",
    }
}

fn links(plan: &Plan) -> String {
    let mut table = Table::new(&[
        Column::Left("link"),
        Column::Right("plane"),
        Column::Right("rate"),
        Column::Right("delay"),
        Column::Right("loss"),
        Column::Right("corrupt"),
        Column::Right("duplicate"),
        Column::Right("reorder"),
    ]);
    for link in &plan.links {
        let LinkProfile { rate_bits_per_s, delay_ns, loss, corrupt, duplicate, reorder, .. } = link.profile;
        table.row([
            link.name.clone(),
            link.edge.plane.0.to_string(),
            rate_bits_per_s.map_or_else(|| "-".to_owned(), units::bit_rate),
            units::time(delay_ns),
            units::share(loss),
            units::share(corrupt),
            units::share(duplicate),
            units::share(reorder),
        ]);
    }
    table.render()
}

fn settings(plan: &Plan) -> String {
    let timers = plan.timers;
    let transport = plan.transport;
    let mode = match transport.mode {
        RetransmissionMode::GoBackN => "go-back-n",
        RetransmissionMode::Selective => "selective",
    };
    let heartbeat = format!("{} x {}", units::time(timers.heartbeat_interval_ns), timers.heartbeat_miss_max);
    let timeout =
        format!("{} .. {}", units::time(transport.timeout_min_ns), units::time(transport.timeout_max_ns));
    let mut table = Table::new(&[Column::Left("setting"), Column::Left("value")]);
    if plan.has_bridges() {
        table.row(["hub".to_owned(), "a bridge of the kernel in each plane".to_owned()]);
    }
    for (setting, value) in [
        ("job", plan.job.kind.name().to_owned()),
        ("wire", plan.wire.name().to_owned()),
        ("seed", plan.seed.to_string()),
        ("transport", mode.to_owned()),
        ("window", format!("{} packets", transport.window_packets)),
        ("retransmission timeout", timeout),
        ("heartbeat", heartbeat),
        ("hold-down", units::time(timers.hold_down_ns)),
        ("end-to-end check", if plan.end_to_end_check() { "on" } else { "off" }.to_owned()),
        ("largest frame", units::bytes(plan.frame_bytes_max.into())),
        ("watchdog", units::time(plan.watchdog_ns)),
        ("configuration hash", format!("{:016x}", plan.config_hash)),
    ] {
        table.row([setting.to_owned(), value]);
    }
    table.render()
}
