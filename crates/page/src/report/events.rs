//! Table of the events of a run.

use rackloom_control::report::{EventRecord, Report, injected};

use crate::model::{Block, Column, Table};
use crate::text;

/// Rows at most.
const ROWS_MAX: usize = 500;

/// Returns true if an event is a loss, a recovery or a fault, and not the first state of a link or path, nor a sum at the end.
pub(super) fn is_notable(event: &EventRecord) -> bool {
    let field = |name: &str| event.fields.get(name).map_or("", String::as_str);
    match event.kind.as_str() {
        "node-reached" | "access-refused" | injected::KIND => false,
        "path-changed" => field("from") != "none",
        // A link is suspect for a while before it is down, or before its neighbour is late no more.
        "link-changed" => {
            !matches!((field("from"), field("to")), ("init", _) | (_, "suspect") | ("suspect", "up"))
        }
        _ => true,
    }
}

/// Returns the table of events. Losses, recoveries and faults stand before first states, which are many.
pub(super) fn events(report: &Report) -> Vec<Block> {
    let mut table = Table::new(
        "Events",
        vec![Column::number("at"), Column::text("seen by"), Column::text("kind"), Column::text("event")],
    );
    let (notable, others): (Vec<&EventRecord>, Vec<_>) =
        report.events.iter().partition(|event| is_notable(event));
    let kept: Vec<&EventRecord> = notable.iter().chain(&others).copied().take(ROWS_MAX).collect();
    let row = |event: &&EventRecord| {
        vec![
            text::time_cell(event.at_ns),
            event.member.as_str().into(),
            event.kind.as_str().into(),
            event.text.as_str().into(),
        ]
    };
    table.rows = kept.iter().map(row).collect();
    let mut notes = Vec::new();
    if report.events.len() <= ROWS_MAX {
        notes.push("Losses, recoveries and faults stand before first states of links and paths.".to_owned());
    } else {
        notes.push(format!(
            "{ROWS_MAX} of {} events: losses, recoveries and faults before first states of links and paths. The JSON report has all of them.",
            report.events.len()
        ));
    }
    notes.extend(omitted(report));
    table.note = notes.join(" ");
    vec![Block::Table(table)]
}

/// Returns the number of events that the report itself leaves out, by kind.
pub(super) fn omitted(report: &Report) -> Option<String> {
    let kinds: Vec<String> = report
        .events_omitted
        .iter()
        .map(|(kind, count)| format!("{} of kind {kind}", text::count(*count)))
        .collect();
    (!kinds.is_empty()).then(|| format!("The report itself leaves out events: {}.", kinds.join(", ")))
}

#[cfg(test)]
mod tests {
    use rackloom_control::report::Context;

    use super::*;

    fn event(kind: &str, fields: &[(&str, &str)]) -> EventRecord {
        EventRecord {
            at_ns: 5,
            member: "n0".to_owned(),
            kind: kind.to_owned(),
            text: "text".to_owned(),
            fields: fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        }
    }

    #[test]
    fn losses_and_recoveries_are_notable_and_first_states_are_not() {
        let link = |from, to| is_notable(&event("link-changed", &[("from", from), ("to", to)]));
        assert_eq!([link("suspect", "down"), link("down", "up"), link("up", "admin-down")], [true; 3]);
        assert_eq!([link("init", "up"), link("up", "suspect"), link("suspect", "up")], [false; 3]);
        assert!(is_notable(&event("path-changed", &[("from", "port0")])));
        assert!(!is_notable(&event("path-changed", &[("from", "none")])));
        assert!(is_notable(&event("node-lost", &[])) && !is_notable(&event(injected::KIND, &[])));
    }

    #[test]
    fn losses_stand_before_first_states_and_each_part_is_in_the_order_of_time() {
        let kinds = ["node-reached", "node-lost", "node-reached", "fault"];
        let mut report = Report::assemble(Context::default(), &[]);
        report.events = kinds.iter().map(|kind| event(kind, &[])).collect();
        let [Block::Table(table)] = &events(&report)[..] else { panic!("no table") };
        let listed: Vec<&str> = table.rows.iter().map(|row| row[2].text.as_str()).collect();
        assert_eq!(listed, ["node-lost", "fault", "node-reached", "node-reached"]);
    }
}
