//! Tables of nodes and links.

use std::collections::BTreeMap;

use rackloom_control::report::{LinkReport, MemberState, NodeReport, Report};

use super::load::rate_of;
use crate::model::{Block, Cell, Column, Row, Table, Tone};
use crate::rack::had_faults;
use crate::text;

/// Rows at most.
const ROWS_MAX: usize = 500;

/// Returns the table of members. Those that did not finish stand first.
pub(super) fn nodes(report: &Report) -> Vec<Block> {
    let columns =
        [Column::text("member"), Column::text("kind"), Column::text("state"), Column::text("server")];
    let numbers = [
        "process",
        "direct operations",
        "operations in frames",
        "bytes in frames",
        "memory at most",
        "timer late",
    ];
    let columns = columns.into_iter().chain(numbers.map(Column::number));
    let columns = columns.chain([Column::text("memory"), Column::text("waited for")]).collect();
    let mut table = Table::new("Nodes and switches", columns);
    let is_settled = |node: &NodeReport| matches!(node.state, MemberState::Finished | MemberState::Elsewhere);
    let mut order: Vec<usize> = (0..report.nodes.len()).collect();
    order.sort_by_key(|index| is_settled(&report.nodes[*index]));
    table.rows = order.into_iter().map(|index| node_row(report, index)).collect();
    let order = "members that did not finish, then the order of the plan";
    vec![Block::Table(table.bounded(ROWS_MAX, order).without_empty_columns())]
}

fn node_row(report: &Report, index: usize) -> Row {
    let node = &report.nodes[index];
    let member = report.topology.as_ref().and_then(|topology| topology.members.get(index));
    let tone = match node.state {
        MemberState::Finished => Tone::Good,
        MemberState::Elsewhere => Tone::Plain,
        MemberState::Running => Tone::Warning,
        MemberState::Unstarted | MemberState::Killed | MemberState::Exited | MemberState::Lost => Tone::Bad,
    };
    let count = |count: Option<u64>| count.map_or_else(Cell::absent, text::count_cell);
    let bytes = |bytes: Option<u64>| bytes.map_or_else(Cell::absent, text::bytes_cell);
    let memory = node.memory.as_ref();
    let leaks = memory.into_iter().flat_map(|memory| &memory.leaks);
    let leaks = leaks.map(|leak| format!("region{} was not freed: {}", leak.region, leak.reason));
    let held: Vec<String> = memory.and_then(|memory| memory.held()).into_iter().chain(leaks).collect();
    vec![
        node.name.as_str().into(),
        member.map_or("-", |member| if member.is_switch { "switch" } else { "GPU node" }).into(),
        Cell::text(node.state.name()).with_tone(tone),
        member.map_or("-", |member| member.server.as_str()).into(),
        node.pid.map_or_else(Cell::absent, |pid| Cell::number(pid.to_string(), f64::from(pid))),
        count(node.paths.map(|paths| paths.direct.operations)),
        count(node.paths.map(|paths| paths.frames.operations)),
        bytes(node.paths.map(|paths| paths.frames.bytes)),
        bytes(memory.map(|memory| memory.used_bytes.high)),
        text::optional_time_cell(node.timer_late_max_ns),
        held.join("; ").into(),
        node.waiting.join("; ").into(),
    ]
}

/// Returns the table of directions of links. Those that lost frames stand first, then those with the most bytes.
pub(super) fn links(report: &Report) -> Vec<Block> {
    let numbers = [
        "frames",
        "bytes on the wire",
        "share",
        "data frames",
        "control frames",
        "forwarded",
        "retransmitted",
        "replayed",
        "dropped",
    ];
    let columns = [Column::text("direction")].into_iter().chain(numbers.map(Column::number));
    let columns = columns.chain([Column::text("reasons of drops"), Column::text("other counters")]).collect();
    let mut table = Table::new("Links, by direction", columns);
    let rank = |index: &usize| {
        let link = &report.links[*index];
        (!had_faults(link), std::cmp::Reverse(link.wire_bytes()), *index)
    };
    let mut order: Vec<usize> = (0..report.links.len()).collect();
    order.sort_by_key(rank);
    order.truncate(ROWS_MAX);
    table.rows = order.into_iter().map(|index| link_row(report, index)).collect();
    let all = report.links.len();
    if all > ROWS_MAX {
        table.note = format!(
            "{ROWS_MAX} of {all} rows: directions that lost frames, then those with the most bytes. The JSON report has all of them."
        );
    }
    vec![Block::Table(table.without_empty_columns())]
}

fn link_row(report: &Report, index: usize) -> Row {
    let link = &report.links[index];
    let possible = rate_of(report, index).map(|rate| rate as f64 / 8e9 * report.elapsed_ns as f64);
    let share =
        possible.filter(|possible| *possible > 0.0).map(|possible| link.load_bytes() as f64 / possible);
    let dropped: u64 = link.dropped.values().sum();
    let tone = if had_faults(link) { Tone::Warning } else { Tone::Plain };
    vec![
        link.name.as_str().into(),
        text::count_cell(link.frames),
        text::bytes_cell(link.bytes_on_wire),
        share.map_or_else(Cell::absent, text::share_cell),
        text::count_cell(link.data_frames),
        text::count_cell(link.control_frames),
        text::count_cell(link.forwarded),
        text::count_cell(link.retransmitted),
        link.retry.get("tx_replay").map_or_else(Cell::absent, |count| text::count_cell(*count)),
        text::count_cell(dropped),
        Cell::text(named(&link.dropped)).with_tone(if dropped > 0 { tone } else { Tone::Plain }),
        others(link).into(),
    ]
}

fn named(counters: &BTreeMap<String, u64>) -> String {
    let parts: Vec<String> =
        counters.iter().map(|(name, count)| format!("{name} {}", text::count(*count))).collect();
    parts.join(", ")
}

/// Returns the counters that have no column.
fn others(link: &LinkReport) -> String {
    let rare: BTreeMap<String, u64> =
        link.rare_counters().map(|(name, count)| (name.to_owned(), count)).collect();
    let groups = [
        ("", rare),
        ("injected ", link.injected.clone()),
        ("pause ", link.pause.clone()),
        ("marks ", link.marks.clone()),
    ];
    let parts = groups.iter().filter(|(_, counters)| !counters.is_empty());
    parts.map(|(name, counters)| format!("{name}{}", named(counters))).collect::<Vec<_>>().join("; ")
}
