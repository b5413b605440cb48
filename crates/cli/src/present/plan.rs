//! Tables of a plan: members, links and settings, resolved as the engines see them.

use rackloom_plan::{
    Clock, LinkPlan, LinkProfile, MemoryDevice, MemoryOptions, OwnChannels, Plan, Setting, deadlock,
};
use rackloom_protocol::{Class, CreditConfig, MemberRole, NodeId, RetransmissionMode, SharedBufferConfig};
use rackloom_runtime::outcome::findings;

use super::table::{Column, Table};
use super::units;

/// Formats the whole plan.
pub(crate) fn plan(plan: &Plan) -> String {
    let mut parts = vec![format!("rack {}", plan.name), members(plan, None)];
    parts.extend(memory(plan));
    parts.extend([links(plan), settings(plan), keys(plan)]);
    parts.extend(findings::unauthenticated(plan).map(|note| format!("note: {note}")));
    parts.join("\n\n")
}

/// Formats the memory of nodes with options other than the default.
fn memory(plan: &Plan) -> Option<String> {
    let mut table = Table::new(&[
        Column::Left("memory of"),
        Column::Left("huge pages"),
        Column::Left("locked"),
        Column::Left("numa node"),
        Column::Left("device"),
        Column::Left("shared by"),
        Column::Left("mapped by"),
    ]);
    let special = plan.members.iter().filter(|member| member.memory != MemoryOptions::default());
    let special: Vec<_> = special.collect();
    for member in &special {
        let MemoryOptions { huge_pages, locked, numa_node, device, share, mapped, .. } = member.memory;
        let yes_or_dash = |condition: bool| if condition { "yes" } else { "-" }.to_owned();
        let numa_node = numa_node.map_or_else(|| "-".to_owned(), |node| node.to_string());
        let shared_by = if device.is_some() { share.name() } else { "-" }.to_owned();
        let named =
            |device: Option<MemoryDevice>| device.map_or_else(|| "-".to_owned(), |device| device.to_string());
        table.row([
            member.name.clone(),
            yes_or_dash(huge_pages),
            yes_or_dash(locked),
            numa_node,
            named(device),
            shared_by,
            named(mapped),
        ]);
    }
    (!special.is_empty()).then(|| table.render())
}

/// Formats the members, with their processes if there are any.
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
    // One pass over all links: a full mesh has very many.
    let mut linked = vec![Vec::new(); plan.members.len()];
    for edge in plan.links.iter().map(|link| link.edge) {
        linked[edge.a.index()].push((edge.a_port, edge.b));
        linked[edge.b.index()].push((edge.b_port, edge.a));
    }
    for (index, member) in plan.members.iter().enumerate() {
        let node = NodeId(index as u16);
        linked[index].sort_unstable_by_key(|(port, _)| *port);
        let neighbours: Vec<_> = linked[index]
            .iter()
            .map(|(_, neighbour)| plan.members[neighbour.index()].name.as_str())
            .collect();
        let mut cells = vec![member.name.clone(), role(member.role).to_owned()];
        cells.extend(pids.map(|pids| process(plan, node, pids)));
        let is_switch = member.role.is_switch();
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

/// Formats a member's process, or the host that runs it.
fn process(plan: &Plan, node: NodeId, pids: &[u32]) -> String {
    match (pids.get(node.index()), plan.host_of(node)) {
        (Some(0), Some(host)) => format!("host {}", host.name),
        (Some(pid), _) => pid.to_string(),
        (None, _) => String::new(),
    }
}

const fn role(role: MemberRole) -> &'static str {
    match role {
        MemberRole::Endpoint => "gpu node",
        MemberRole::Switch => "switch",
        MemberRole::ReducingSwitch => "switch that reduces",
        MemberRole::Process | MemberRole::PinnedProcess => "process",
    }
}

/// All keys of the rack file with their values, from the declarations of the keys.
fn keys(plan: &Plan) -> String {
    let mut table = Table::new(&[Column::Left("key"), Column::Left("value"), Column::Left("default")]);
    for Setting { key, value, is_default } in plan.all_settings() {
        table.row([key, value, if is_default { "yes" } else { "no" }.to_owned()]);
    }
    table.render()
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
        Column::Left("held back by"),
        Column::Left("repeats itself"),
    ]);
    for link in &plan.links {
        let LinkProfile { rate_bits_per_s, loss, corrupt, duplicate, reorder, .. } = link.profile;
        table.row([
            link.name.clone(),
            link.edge.plane.0.to_string(),
            rate_bits_per_s.map_or_else(|| "-".to_owned(), units::bit_rate),
            units::time(link.profile.latency_ns()),
            units::share(loss),
            units::share(corrupt),
            units::share(duplicate),
            units::share(reorder),
            flow_control(plan, link),
            retry(plan, link),
        ]);
    }
    table.render()
}

/// Formats the flow control of a link: credits, or thresholds of pause frames.
fn flow_control(plan: &Plan, link: &LinkPlan) -> String {
    let Some(pause) = link.profile.pfc else {
        let CreditConfig { limit, unit_bytes, .. } = link.credits;
        return format!("{limit} credits of {}{}", units::bytes(unit_bytes.into()), divided(plan, link));
    };
    let capacity = plan.channel_capacity_bytes(&link.profile);
    let pause = pause.config(&link.profile, plan.settings.frame_bytes_max, capacity, Clock::Virtual);
    let headroom = units::bytes(pause.headroom_bytes.into());
    match plan.forwarding.buffer {
        Some(SharedBufferConfig { bytes, alpha_thousandths, .. }) => format!(
            "pauses above {} of what is free of {}, and {headroom}",
            f64::from(alpha_thousandths) / 1e3,
            units::bytes(bytes)
        ),
        None => format!("pauses above {}, and {headroom}", units::bytes(pause.xoff_bytes.into())),
    }
}

/// Formats the channels of a link, if they differ from the rack's.
fn divided(plan: &Plan, link: &LinkPlan) -> String {
    let OwnChannels { are_divided, limits } = &link.profile.channels;
    if plan.channels.config.count() == 1 || *are_divided && limits.is_empty() {
        return String::new();
    }
    let limits: Vec<_> = limits.iter().map(u32::to_string).collect();
    if *are_divided { format!(", by channel {}", limits.join(", ")) } else { ", undivided".to_owned() }
}

/// Formats the retry limits of a link, and its replay timer in virtual time.
fn retry(plan: &Plan, link: &LinkPlan) -> String {
    let Some(retry) = link.profile.llr else { return "-".to_owned() };
    let timer_ns = retry.config(&link.profile, plan.settings.frame_bytes_max, Clock::Virtual).replay_timer_ns;
    let most = units::bytes(retry.outstanding_bytes.into());
    format!(
        "{} frames, {most}; timer {}",
        units::count(retry.outstanding_frames.into()),
        units::time(timer_ns)
    )
}

/// Formats the virtual channels of a link: classes of each lane, and number of levels.
fn channels(plan: &Plan) -> String {
    let config = &plan.channels.config;
    let on_lane = |lane: u8| {
        let classes = Class::ALL.into_iter().filter(|class| config.lane_of[class.index()] == lane);
        classes.map(Class::name).collect::<Vec<_>>().join("+")
    };
    let lanes: Vec<_> = (0..config.lanes()).map(on_lane).collect();
    match (lanes.len(), config.levels) {
        (1, 1) => "one".to_owned(),
        (1, levels) => format!("{levels} levels"),
        (_, 1) => lanes.join(", "),
        (_, levels) => format!("{}; {levels} levels of each", lanes.join(", ")),
    }
}

/// Formats a timer on the wall clock, and in virtual time if it differs.
fn on_both_clocks(plan: &Plan, show: fn(&Plan, Clock) -> String) -> String {
    let [wall, simulated] = [Clock::Wall, Clock::Virtual].map(|clock| show(plan, clock));
    if wall == simulated { wall } else { format!("{wall}; in virtual time {simulated}") }
}

fn timeouts(plan: &Plan, clock: Clock) -> String {
    let transport = plan.transport_on(clock);
    let [initial, min, max] =
        [transport.timeout_initial_ns, transport.timeout_min_ns, transport.timeout_max_ns].map(units::time);
    format!("{min} .. {max}, first {initial}")
}

fn ack_delay(plan: &Plan, clock: Clock) -> String {
    units::time(plan.transport_on(clock).ack_delay_ns)
}

fn heartbeat(plan: &Plan, clock: Clock) -> String {
    let timers = plan.timers_on(clock);
    let rest = match timers.heartbeat_rest {
        0 | 1 => String::new(),
        rest => format!(", at rest every {rest}"),
    };
    format!("{} x {}{rest}", units::time(timers.heartbeat_interval_ns), timers.heartbeat_miss_max)
}

fn hold_down(plan: &Plan, clock: Clock) -> String {
    units::time(plan.timers_on(clock).hold_down_ns)
}

fn settings(plan: &Plan) -> String {
    let mode = match plan.transport.mode {
        RetransmissionMode::GoBackN => "go-back-n",
        RetransmissionMode::Selective => "selective",
    };
    let mut table = Table::new(&[Column::Left("setting"), Column::Left("value")]);
    if plan.has_bridges() {
        table.row(["hub".to_owned(), "a bridge of the kernel in each plane".to_owned()]);
    }
    if let Some(path) = &plan.security.key_file {
        let what = format!("by {}; no effect in virtual time", path.display());
        table.row(["authenticated".to_owned(), what]);
    }
    for (setting, value) in [
        ("job", plan.job.kind.name().to_owned()),
        ("wire", plan.settings.wire.name().to_owned()),
        ("seed", plan.settings.seed.to_string()),
        ("transport", mode.to_owned()),
        ("window", format!("{} packets", plan.transport.window_packets)),
        ("retransmission timeout", on_both_clocks(plan, timeouts)),
        ("acknowledgement delay", on_both_clocks(plan, ack_delay)),
        ("heartbeat", on_both_clocks(plan, heartbeat)),
        ("hold-down", on_both_clocks(plan, hold_down)),
        ("end-to-end check", if plan.end_to_end_check() { "on" } else { "off" }.to_owned()),
        ("channels", channels(plan)),
        ("kept moving by", deadlock::judge(plan).description()),
        ("may stand still without", risky_losses(plan)),
        ("largest frame", units::bytes(plan.settings.frame_bytes_max.into())),
        ("watchdog", units::time(plan.settings.watchdog_ns)),
        ("configuration hash", format!("{:016x}", plan.config_hash)),
    ] {
        if !value.is_empty() {
            table.row([setting.to_owned(), value]);
        }
    }
    table.render()
}

/// Returns the links whose loss may lead to routes that deadlock, as `n0--n1, n1--n2 and 3 more`. Empty if there are none, or if the
/// rack is too large for the analysis.
fn risky_losses(plan: &Plan) -> String {
    const SHOWN_MAX: usize = 4;
    let risky = deadlock::risky_losses(plan).unwrap_or_default();
    let names: Vec<_> =
        risky.iter().take(SHOWN_MAX).map(|edge| plan.links[usize::from(*edge)].name.as_str()).collect();
    match risky.len().saturating_sub(SHOWN_MAX) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
