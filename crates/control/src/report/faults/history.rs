//! History of an event, computed from the lines of a report: when it was active, which member detected it, which paths
//! changed, and when links came up again.
//!
//! This module does not judge.

use rackloom_plan::Plan;
use rackloom_plan::faults::{Fault, FaultEvent};
use rackloom_protocol::NodeId;

use crate::report::events::EventRecord;
use crate::report::fault_lines::STANDS_FOR;
use crate::report::fault_report::KIND;

/// One period in which an event was active.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) from_ns: u64,
    /// Time at which another event began, or this one ended.
    pub(super) to_ns: u64,
}

/// Returns whether the line marks the begin of an event.
fn begins(record: &EventRecord) -> bool {
    says(record, "begins", "true")
}

/// Returns whether the line marks the end of an event.
fn ends(record: &EventRecord) -> bool {
    says(record, "begins", "false")
}

/// Returns whether the line concerns this event of the script. Lines count events from one.
fn is_of(record: &EventRecord, event: usize) -> bool {
    says(record, "event", &(event + 1).to_string())
}

fn says(record: &EventRecord, field: &str, word: &str) -> bool {
    record.kind == KIND && record.fields.get(field).is_some_and(|said| said == word)
}

/// Returns the periods in which an event was active: each from the begin at its first member to the next change of any
/// event.
pub(super) fn stretches(events: &[EventRecord], event: usize) -> Vec<Stretch> {
    let faults =
        || events.iter().filter(|record| record.kind == KIND && !record.fields.contains_key(STANDS_FOR));
    let is_beginning = |record: &&EventRecord| begins(record) && is_of(record, event);
    let Some(first) = faults().find(is_beginning) else { return Vec::new() };
    // Every member that applies an event reports it. The count of one of them is enough.
    let own = faults().filter(is_beginning).filter(|record| record.member == first.member);
    own.map(|record| {
        let others = faults().filter(|other| !is_beginning(other));
        let next = others.map(|other| other.at_ns).find(|at_ns| *at_ns > record.at_ns);
        Stretch { from_ns: record.at_ns, to_ns: next.unwrap_or(u64::MAX) }
    })
    .collect()
}

/// Returns the number of begins that are not kept as single lines.
pub(super) fn beginnings_beyond(events: &[EventRecord], event: usize) -> u64 {
    let is_beginning = |record: &&EventRecord| begins(record) && is_of(record, event);
    let Some(first) = events.iter().find(is_beginning) else { return 0 };
    let own = events.iter().filter(is_beginning).filter(|record| record.member == first.member);
    own.filter_map(|record| record.fields.get(STANDS_FOR)?.parse::<u64>().ok()).sum()
}

/// Returns the number of the event's last begin that a member saw; 0 if the event begins at most once or never began.
pub(super) fn last_beginning(events: &[EventRecord], event: usize) -> u64 {
    let mut own = events.iter().filter(|record| is_of(record, event)).peekable();
    // If several members apply the event, the first one counts, as for the number of begins.
    let Some(first) = own.peek().map(|record| record.member.clone()) else { return 0 };
    let own = own.filter(|record| record.member == first);
    own.filter_map(|record| record.fields.get(FaultEvent::TIME_FIELD)?.parse().ok()).max().unwrap_or(0)
}

pub(super) fn edges_of(fault: &Fault, plan: &Plan) -> Vec<u16> {
    let struck = |node: NodeId| fault.members().contains(&node);
    let links = (0..).zip(&plan.links);
    let links = links.filter(|(edge, link)| {
        fault.directions().iter().any(|direction| direction.edge == *edge)
            || struck(link.edge.a)
            || struck(link.edge.b)
    });
    links.map(|(edge, _)| edge).collect()
}

/// Returns the time until the first link concerned was reported down, in nanoseconds.
pub(super) fn detection(plan: &Plan, events: &[EventRecord], edges: &[u16], stretch: Stretch) -> Option<u64> {
    let mut downs = changes_to(plan, events, edges, "down");
    downs.find(|record| record.at_ns >= stretch.from_ns).map(|record| record.at_ns - stretch.from_ns)
}

/// Returns the time from the end of this period until the last link concerned was up again, in nanoseconds.
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

/// Returns the lines in which the ends of these links reported a change to `state`.
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
        graph.ports(member).get(port).map(|port| edges.contains(&port.edge))
    };
    let changes = events.iter().filter(move |record| {
        record.kind == "link-changed" && record.fields.get("to").is_some_and(|to| to == state)
    });
    changes.filter(move |record| is_concerned(record).unwrap_or(false))
}

/// Returns the time until the last path was changed, in nanoseconds, if any was.
pub(super) fn last_switch(events: &[EventRecord], stretch: Stretch, detected_after_ns: u64) -> Option<u64> {
    let from_ns = stretch.from_ns + detected_after_ns;
    let changes = events.iter().filter(|record| record.kind == "path-changed");
    let changes = changes.filter(|record| (from_ns..stretch.to_ns).contains(&record.at_ns));
    changes.map(|record| record.at_ns - stretch.from_ns).max()
}
