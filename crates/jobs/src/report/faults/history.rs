//! What became of an event, read from the lines of a report: when it was on, who noticed, which paths changed, when links came back.
//!
//! Nothing here judges.

use rackloom_plan::Plan;
use rackloom_plan::faults::{Fault, FaultEvent};
use rackloom_protocol::NodeId;

use super::KIND;
use crate::report::events::EventRecord;
use crate::report::fault_lines::STANDS_FOR;

/// One time that an event was on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) from_ns: u64,
    /// When something else began, or this ended.
    pub(super) to_ns: u64,
}

/// Whether the line is that of an event that begins.
fn begins(record: &EventRecord) -> bool {
    says(record, "begins", "true")
}

/// Whether it is that of one that ends.
fn ends(record: &EventRecord) -> bool {
    says(record, "begins", "false")
}

/// Whether it is that of this event of the script; lines count from one.
fn is_of(record: &EventRecord, event: usize) -> bool {
    says(record, "event", &(event + 1).to_string())
}

fn says(record: &EventRecord, field: &str, word: &str) -> bool {
    record.kind == KIND && record.fields.get(field).is_some_and(|said| said == word)
}

/// The times that an event was on: each from its first member's beginning to the next change of anything.
pub(super) fn stretches(events: &[EventRecord], event: usize) -> Vec<Stretch> {
    let faults =
        || events.iter().filter(|record| record.kind == KIND && !record.fields.contains_key(STANDS_FOR));
    let is_beginning = |record: &&EventRecord| begins(record) && is_of(record, event);
    let Some(first) = faults().find(is_beginning) else { return Vec::new() };
    // Every member that applies an event says so; one of them is enough to count.
    let own = faults().filter(is_beginning).filter(|record| record.member == first.member);
    own.map(|record| {
        let others = faults().filter(|other| !is_beginning(other));
        let next = others.map(|other| other.at_ns).find(|at_ns| *at_ns > record.at_ns);
        Stretch { from_ns: record.at_ns, to_ns: next.unwrap_or(u64::MAX) }
    })
    .collect()
}

/// How often it began beyond the lines that are kept one by one.
pub(super) fn beginnings_beyond(events: &[EventRecord], event: usize) -> u64 {
    let is_beginning = |record: &&EventRecord| begins(record) && is_of(record, event);
    let Some(first) = events.iter().find(is_beginning) else { return 0 };
    let own = events.iter().filter(is_beginning).filter(|record| record.member == first.member);
    own.filter_map(|record| record.fields.get(STANDS_FOR)?.parse::<u64>().ok()).sum()
}

/// The number of its last beginning that a member saw; 0 where the event begins once at most or never did.
pub(super) fn last_beginning(events: &[EventRecord], event: usize) -> u64 {
    let mut own = events.iter().filter(|record| is_of(record, event)).peekable();
    // As for the count: of several members that apply it, the first one.
    let Some(first) = own.peek().map(|record| record.member.clone()) else { return 0 };
    let own = own.filter(|record| record.member == first);
    own.filter_map(|record| record.fields.get(FaultEvent::TIME_FIELD)?.parse().ok()).max().unwrap_or(0)
}

pub(super) fn edges_of(fault: &Fault, plan: &Plan) -> Vec<u16> {
    let struck = |node: NodeId| fault.members().contains(&node);
    let links = (0..).zip(&plan.links);
    let links = links.filter(|(edge, link)| {
        fault.ways().iter().any(|way| way.edge == *edge) || struck(link.edge.a) || struck(link.edge.b)
    });
    links.map(|(edge, _)| edge).collect()
}

/// How long it took until the first link concerned was told to be down.
pub(super) fn detection(plan: &Plan, events: &[EventRecord], edges: &[u16], stretch: Stretch) -> Option<u64> {
    let mut downs = changes_to(plan, events, edges, "down");
    downs.find(|record| record.at_ns >= stretch.from_ns).map(|record| record.at_ns - stretch.from_ns)
}

/// How long it took from the end of this time until the last link concerned was up again.
pub(super) fn recovery(
    plan: &Plan,
    events: &[EventRecord],
    edges: &[u16],
    event: usize,
    stretch: Stretch,
) -> Option<u64> {
    let next = events.iter().filter(|record| begins(record) && record.at_ns > stretch.to_ns);
    let next_ns = next.map(|record| record.at_ns).min().unwrap_or(u64::MAX);
    let own_ends = events
        .iter()
        .filter(|record| ends(record) && is_of(record, event) && record.at_ns >= stretch.from_ns);
    let end_ns = own_ends.map(|record| record.at_ns).filter(|at_ns| *at_ns < next_ns).max()?;
    let ups = changes_to(plan, events, edges, "up");
    ups.map(|record| record.at_ns)
        .filter(|at_ns| (end_ns..next_ns).contains(at_ns))
        .max()
        .map(|at_ns| at_ns - end_ns)
}

/// What the ends of these links told of a change to this state.
pub(super) fn changes_to<'e>(
    plan: &'e Plan,
    events: &'e [EventRecord],
    edges: &'e [u16],
    state: &'e str,
) -> impl Iterator<Item = &'e EventRecord> {
    let graph = plan.graph();
    let is_concerned = move |record: &EventRecord| {
        let member = plan.node_named(&record.member)?;
        let port: usize = record.fields.get("port")?.strip_prefix("port")?.parse().ok()?;
        graph.ports(member).get(port).map(|(edge, ..)| edges.contains(edge))
    };
    let changes = events.iter().filter(move |record| {
        record.kind == "link-changed" && record.fields.get("to").is_some_and(|to| to == state)
    });
    changes.filter(move |record| is_concerned(record).unwrap_or(false))
}

/// How long it took until the last path was changed, if any was.
pub(super) fn last_switch(events: &[EventRecord], stretch: Stretch, detected_after_ns: u64) -> Option<u64> {
    let from_ns = stretch.from_ns + detected_after_ns;
    let changes = events.iter().filter(|record| record.kind == "path-changed");
    let changes = changes.filter(|record| (from_ns..stretch.to_ns).contains(&record.at_ns));
    changes.map(|record| record.at_ns - stretch.from_ns).max()
}
