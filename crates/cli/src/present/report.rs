//! Report as text: operations, links, events, and the verdict at the end.
//!
//! The JSON form contains more. This form contains what a person needs.

use std::fmt::Write as _;

use rackloom_control::report::injected;
use rackloom_jobs::report::{
    EventRecord, LeakedRegion, LinkReport, MemberState, NodeReport, OperationReport, Report, Verdict,
    WireBytes,
};

use rackloom_jobs::OperationPath;
use rackloom_plan::{printable, printable_lines};
use rackloom_protocol::DropReason;

use super::balance::balance;
use super::device::device_use;
use super::faults::faults as faults_of_script;
use super::gpu::gpu_use;
use super::oracles::oracles as rows_of_oracles;
use super::sweep::sweep;
use super::table::{Column, Table};
use super::traffic::traffic;
use super::units;
use super::workload::results;
use crate::terminal::PASSED;

/// Job that is no benchmark: its load says nothing about the links.
const LITMUS: &str = "litmus";
/// Maximum number of lines of a section. Further ones are counted.
const LINES_MAX: usize = 40;

/// Formats the whole report. The verdict is its last line.
pub(crate) fn report(report: &Report) -> String {
    let sections = [
        faults_of_script(&report.faults),
        oracles(report),
        traffic(report.traffic.as_ref()),
        results(report.workload.as_ref()),
        sweep(&report.sweep),
        operations(&report.operations, &report.job),
        paths(&report.nodes),
        memory(&report.nodes),
        if report.job == LITMUS { String::new() } else { balance(&report.balance) },
        device_use(&report.device_use),
        gpu_use(&report.gpu_use),
        links(&report.links),
        retries(&report.links),
        pauses(&report.links),
        marks(&report.links),
        events(report),
        losses(report),
        leaks(&report.nodes),
        notes(report),
    ];
    let mut text: String =
        sections.iter().filter(|section| !section.is_empty()).map(|s| format!("{s}\n\n")).collect();
    text += &summary(report);
    text += &verdict(report);
    text
}

/// Formats the oracles, if the run had faults or an oracle was violated.
fn oracles(report: &Report) -> String {
    let is_broken = report.oracles.iter().any(|(_, tally)| tally.broken > 0);
    if report.faults.is_empty() && !is_broken { String::new() } else { rows_of_oracles(&report.oracles) }
}

/// Note below the operations of a litmus, which has no goodput column.
const NO_BENCHMARK: &str = "a litmus checks bytes: its times include queueing behind other operations and are no benchmark; for a benchmark, \
                            use --job latency or --job bandwidth";

fn operations(operations: &[OperationReport], job: &str) -> String {
    let is_litmus = job == LITMUS;
    let has_direct = operations.iter().any(|operation| operation.path == Some(OperationPath::Direct));
    let mut columns = vec![Column::Left("operation")];
    columns.extend(has_direct.then_some(Column::Left("path")));
    columns.extend([
        Column::Right("count"),
        Column::Right("errors"),
        Column::Right("p50"),
        Column::Right("p99"),
        Column::Right("max"),
    ]);
    columns.extend((!is_litmus).then_some(Column::Right("goodput")));
    let mut table = Table::new(&columns);
    for operation in operations {
        let latency = operation.latency_ns;
        let goodput = operation.goodput_bytes_per_s;
        let mut cells = vec![operation.kind.name().to_owned()];
        cells.extend(has_direct.then(|| operation.path.map_or("-", OperationPath::name).to_owned()));
        cells.extend([
            units::count(operation.count),
            units::count(operation.errors),
            units::time(latency.p50),
            units::time(latency.p99),
            units::time(latency.max),
        ]);
        let rate = || if goodput == 0 { "-".to_owned() } else { units::rate(goodput) };
        cells.extend((!is_litmus).then(rate));
        table.row(cells);
    }
    match (table.is_empty(), is_litmus) {
        (true, _) => String::new(),
        (false, true) => format!("{}\n{NO_BENCHMARK}", table.render().trim_end()),
        (false, false) => table.render(),
    }
}

/// Formats the operations of each node by path, for nodes that can share memory.
fn paths(nodes: &[NodeReport]) -> String {
    let mut table = Table::new(&[
        Column::Left("node"),
        Column::Right("direct operations"),
        Column::Right("direct bytes"),
        Column::Right("operations in frames"),
        Column::Right("bytes in frames"),
    ]);
    for (node, paths) in nodes.iter().filter_map(|node| Some((node, node.paths?))) {
        table.row([
            node.name.clone(),
            units::count(paths.direct.operations),
            units::bytes(paths.direct.bytes),
            units::count(paths.frames.operations),
            units::bytes(paths.frames.bytes),
        ]);
    }
    if table.is_empty() { String::new() } else { table.render() }
}

/// Formats the memory of nodes that hold it in a special way.
fn memory(nodes: &[NodeReport]) -> String {
    let mut table = Table::new(&[
        Column::Left("node"),
        Column::Right("memory at most"),
        Column::Right("of"),
        Column::Left("held in or as"),
    ]);
    for (node, memory) in nodes.iter().filter_map(|node| Some((node, node.memory.as_ref()?))) {
        let Some(held) = memory.held() else { continue };
        let (used, limit) = (units::bytes(memory.used_bytes.high), units::bytes(memory.limit_bytes));
        table.row([node.name.clone(), used, limit, held]);
    }
    if table.is_empty() { String::new() } else { table.render() }
}

/// Formats regions that jobs have not freed.
fn leaks(nodes: &[NodeReport]) -> String {
    let of_node = |node: &NodeReport| {
        let leaks = node.memory.iter().flat_map(|memory| memory.leaks.iter());
        let line = |leak: &LeakedRegion| {
            let bytes = units::bytes(leak.bytes);
            format!("leak: region{} of {} ({bytes}) was not freed: {}", leak.region, node.name, leak.reason)
        };
        leaks.map(line).collect::<Vec<_>>()
    };
    let lines: Vec<_> = nodes.iter().flat_map(of_node).collect();
    let count = lines.len();
    lines.into_iter().take(LINES_MAX).collect::<Vec<_>>().join("\n") + &omitted(count, "leaks")
}

fn links(links: &[LinkReport]) -> String {
    // With link retry, replayed frames have a column beside retransmitted packets.
    let has_retry = links.iter().any(|link| link.retry.contains_key("tx_ok"));
    let mut columns = vec![Column::Left("link"), Column::Right("frames"), Column::Right("on the wire")];
    columns.extend(has_retry.then_some(Column::Right("by the link")));
    columns.extend([Column::Right("retransmitted"), Column::Left("dropped")]);
    let mut table = Table::new(&columns);
    for link in links {
        let dropped: Vec<_> = link
            .dropped
            .iter()
            .map(|(reason, frames)| format!("{reason} {}", units::count(*frames)))
            .collect();
        let rare = link.rare_counters();
        let rare = rare.map(|(name, count)| format!("{} {}", name.replace('_', "-"), units::count(count)));
        let dropped: Vec<_> = dropped.into_iter().chain(rare).collect();
        let mut cells = vec![link.name.clone(), units::count(link.frames), units::bytes(link.bytes_on_wire)];
        let of_link = link.retry.get("tx_ok").map_or_else(
            || "-".to_owned(),
            |_| units::count(link.retry.get("tx_replay").copied().unwrap_or(0)),
        );
        cells.extend(has_retry.then_some(of_link));
        cells.push(units::count(link.retransmitted));
        cells.push(if dropped.is_empty() { "-".to_owned() } else { dropped.join(", ") });
        table.row(cells);
    }
    if table.is_empty() { String::new() } else { table.render() }
}

/// Formats lost frames that links replayed or the transport retransmitted. Empty without link retry.
fn retries(links: &[LinkReport]) -> String {
    let sum = |name: &str| links.iter().filter_map(|link| link.retry.get(name)).sum::<u64>();
    if sum("tx_ok") == 0 {
        return String::new();
    }
    let (missed, replays, frames) = (sum("rx_missing_seq"), sum("replays"), sum("tx_replay"));
    let by_ends: u64 = links.iter().map(|link| link.retransmitted).sum();
    let mut text = format!(
        "repeated: {} frames by links, in {} replays for {} gaps; {} packets by the transport",
        units::count(frames),
        units::count(replays),
        units::count(missed),
        units::count(by_ends),
    );
    if sum("flushes") > 0 {
        let (flushes, given_up) = (units::count(sum("flushes")), units::count(sum("tx_flushed")));
        let _ = write!(text, "\nflushed: links {flushes} times, with {given_up} frames");
    }
    text
}

/// Formats pauses of links, and frames lost for lack of buffer space. Links do not replay those.
fn pauses(links: &[LinkReport]) -> String {
    let sum = |name: &str| links.iter().filter_map(|link| link.pause.get(name)).sum::<u64>();
    let lost: u64 = links.iter().filter_map(|link| link.dropped.get(DropReason::BufferFull.name())).sum();
    if sum("held_bytes_max") == 0 {
        return String::new();
    }
    let mut text = format!(
        "paused: {} pause frames, {} of data held back; {} frames lost for lack of buffer space, left to the transport",
        units::count(sum("tx_pause")),
        units::time(sum("paused_ns")),
        units::count(lost),
    );
    if sum("watchdog") > 0 {
        let _ = write!(
            text,
            "\nwatchdog: sending resumed {} times during a pause",
            units::count(sum("watchdog"))
        );
    }
    text
}

/// Formats congestion marks: queues that were too long, and acknowledgements that carried marks.
fn marks(links: &[LinkReport]) -> String {
    let sum = |name: &str| links.iter().filter_map(|link| link.marks.get(name)).sum::<u64>();
    if sum("marked") == 0 {
        return String::new();
    }
    let worst = links.iter().max_by_key(|link| link.marks.get("marked"));
    format!(
        "marked: {} data frames met a long queue, most of them towards {}; {} arrived with a mark, {} acknowledgements carried marks to their \
         senders",
        units::count(sum("marked")),
        worst.map_or("-", |link| link.name.as_str()),
        units::count(sum("rx_marked")),
        units::count(sum("rx_echo")),
    )
}

/// Returns true if an event is shown to people: losses and recoveries, not the first state of each link and
/// path. A link that is suspect goes down or is up again, which is shown or counted.
fn is_shown(event: &EventRecord) -> bool {
    let field = |name: &str| event.fields.get(name).map_or("", String::as_str);
    match event.kind.as_str() {
        "node-reached" | "access-refused" | injected::KIND => false,
        "path-changed" => field("from") != "none",
        "link-changed" => field("from") != "init" && field("to") != "suspect" && !is_false_alarm(event),
        _ => true,
    }
}

/// Returns true if a link was only late: it was suspect, and is up again.
fn is_false_alarm(event: &EventRecord) -> bool {
    let is = |name: &str, state: &str| event.fields.get(name).is_some_and(|field| field == state);
    event.kind == "link-changed" && is("from", "suspect") && is("to", "up")
}

fn events(report: &Report) -> String {
    let shown: Vec<_> = report.events.iter().filter(|event| is_shown(event)).collect();
    let alarms = false_alarms(report);
    if shown.is_empty() {
        return alarms;
    }
    let mut table = Table::new(&[Column::Right("at"), Column::Left("seen by"), Column::Left("event")]);
    for event in shown.iter().take(LINES_MAX) {
        table.row([units::time(event.at_ns), event.member.clone(), event.text.clone()]);
    }
    let more = if alarms.is_empty() { alarms } else { format!("\n{alarms}") };
    table.render() + &omitted(shown.len(), "events") + &more
}

/// Formats the number of links' ends that were suspect for a while and are not in the table.
fn false_alarms(report: &Report) -> String {
    match report.events.iter().filter(|event| is_false_alarm(event)).count() {
        0 => String::new(),
        1 => "1 port was suspect for a while and came up again without going down; --json has it".to_owned(),
        count => {
            format!(
                "{count} times a port was suspect for a while and came up again without going down; --json has them"
            )
        }
    }
}

fn losses(report: &Report) -> String {
    let lost = report
        .nodes
        .iter()
        .filter(|node| !matches!(node.state, MemberState::Finished | MemberState::Elsewhere));
    let lines: Vec<_> = lost
        .map(|node| {
            let pid = node.pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
            match node.state {
                MemberState::Running => {
                    format!("{}{pid}: its job had not ended when the run was ended", node.name)
                }
                state => format!("{}{pid}: {}", node.name, state.name()),
            }
        })
        .collect();
    lines.join("\n")
}

/// Formats notes: facts that a reader should know and that are no failures.
fn notes(report: &Report) -> String {
    let lines: Vec<_> =
        report.notes.iter().take(LINES_MAX).map(|note| format!("note: {}", printable(note))).collect();
    lines.join("\n") + &omitted(report.notes.len(), "notes")
}

fn omitted(count: usize, what: &str) -> String {
    match count.saturating_sub(LINES_MAX) {
        0 => String::new(),
        more => format!("\n... and {more} more {what}; --json has them"),
    }
}

fn summary(report: &Report) -> String {
    let mut text = format!(
        "{} · wire {} · {} clock · {} elapsed · {} verified · seed {}\n",
        report.job,
        report.wire,
        report.clock,
        units::time(report.elapsed_ns),
        units::bytes(report.verified_bytes),
        report.seed,
    );
    if let Some(WireBytes { sent, accounted }) = report.wire_bytes {
        let _ = writeln!(text, "{} on the wires, {} accounted", units::bytes(sent), units::bytes(accounted));
    }
    if let Some(hash) = &report.trace_hash {
        let _ = writeln!(text, "trace hash {hash}");
    }
    text
}

fn verdict(report: &Report) -> String {
    let mut text = String::new();
    for failure in report.failures.iter().take(LINES_MAX) {
        // All lines of a failure are indented.
        let _ = writeln!(text, "  {}", printable_lines(failure).replace('\n', "\n  "));
    }
    if report.failures.len() > LINES_MAX {
        text += omitted(report.failures.len(), "failures").trim_start_matches('\n');
        text.push('\n');
    }
    match report.verdict {
        Verdict::Pass => text + PASSED,
        Verdict::Fail => text + "verdict: fail",
        Verdict::CouldNotTell => text + "verdict: could not tell",
        Verdict::Starved => text + "verdict: starved",
    }
}
