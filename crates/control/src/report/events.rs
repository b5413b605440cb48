//! Events as lines of a report, with the names of the plan.
//!
//! Completions and dropped frames are not lines. They are counted, in measurements and in port counters.

use std::collections::BTreeMap;

use rackloom_protocol::{Event, Instant, NodeId, PortId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of the event that a guaranteed order was violated.
const ORDER_BROKEN: &str = "order-broken";

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventRecord {
    /// Time in nanoseconds since the run began, on the report's clock.
    pub at_ns: u64,
    /// Name of the member that reported the event.
    pub member: String,
    /// Kind of the event: `link-changed`, `link-flushed`, `path-changed`, `node-left`, `node-lost`, `node-reached`,
    /// `node-restarted`, `order-broken`, `access-refused`, or an engine's own kind.
    pub kind: String,
    /// Description of the event as a sentence.
    pub text: String,
    /// Values of the event, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
}

impl EventRecord {
    /// Returns the kind of an event of the core; `None` for events that are counted instead.
    #[must_use]
    pub const fn kind_of(event: &Event) -> Option<&'static str> {
        Some(match event {
            Event::LinkChanged { .. } => "link-changed",
            Event::PathChanged { .. } => "path-changed",
            Event::LinkFlushed { .. } => "link-flushed",
            Event::PauseDefied { .. } => "pause-defied",
            Event::NodeLeft { .. } => "node-left",
            Event::NodeLost { .. } => "node-lost",
            Event::NodeReached { .. } => "node-reached",
            Event::NodeRestarted { .. } => "node-restarted",
            Event::OrderBroken { .. } => ORDER_BROKEN,
            Event::AccessRefused { .. } => "access-refused",
            Event::SourceFailed { .. } => "source-failed",
            _ => return None,
        })
    }

    /// Returns the line for an event of the core at `member`; `None` for events that are counted instead. `names` are
    /// the plan's names of all members, by [`NodeId`].
    #[must_use]
    pub fn of(now: Instant, member: NodeId, event: &Event, names: &[String]) -> Option<Self> {
        let name = |node: NodeId| names.get(node.index()).cloned().unwrap_or_else(|| node.to_string());
        let port = |port: Option<PortId>| port.map_or_else(|| "none".to_owned(), |port| port.to_string());
        let kind = Self::kind_of(event)?;
        let (text, fields) = match *event {
            Event::LinkChanged { port, from, to, cause } => (
                format!("{port} {} -> {} ({})", from.name(), to.name(), cause.name()),
                vec![
                    ("port", port.to_string()),
                    ("from", from.name().to_owned()),
                    ("to", to.name().to_owned()),
                    ("cause", cause.name().to_owned()),
                ],
            ),
            Event::PathChanged { destination, from, to } => (
                format!("path to {}: {} -> {}", name(destination), port(from), port(to)),
                vec![("destination", name(destination)), ("from", port(from)), ("to", port(to))],
            ),
            Event::LinkFlushed { port, frames } => (
                format!("{port} gave up {frames} frames that were never acknowledged"),
                vec![("port", port.to_string()), ("frames", frames.to_string())],
            ),
            Event::PauseDefied { port, channel } => (
                format!("{port} {channel} waited too long and heeds pauses no more for a while"),
                vec![("port", port.to_string()), ("channel", channel.to_string())],
            ),
            Event::NodeLeft { node } => {
                (format!("{} says that it leaves", name(node)), vec![("node", name(node))])
            }
            Event::NodeLost { node } => (format!("lost {}", name(node)), vec![("node", name(node))]),
            Event::NodeReached { node } => (format!("reached {}", name(node)), vec![("node", name(node))]),
            Event::NodeRestarted { node } => {
                (format!("{} has restarted", name(node)), vec![("node", name(node))])
            }
            Event::OrderBroken { source, class, scope, number } => (
                format!(
                    "order per {} did not hold: {} number {number} of {} was not in its place",
                    scope.name(),
                    class.name(),
                    name(source)
                ),
                vec![
                    ("source", name(source)),
                    ("class", class.name().to_owned()),
                    ("scope", scope.name().to_owned()),
                    ("number", number.to_string()),
                ],
            ),
            Event::AccessRefused { source, region, error } => (
                format!("refused {} access to {region}: {error}", name(source)),
                vec![
                    ("source", name(source)),
                    ("region", region.to_string()),
                    ("error", error.name().to_owned()),
                ],
            ),
            Event::SourceFailed { region } => (
                format!("could not read {region} for a frame that was to leave; it left void"),
                vec![("region", region.to_string())],
            ),
            _ => return None,
        };
        let fields = fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Some(Self { at_ns: now.0, member: name(member), kind: kind.to_owned(), text, fields })
    }
}

/// Bounded list of events: the first events of each kind, and the number of the others. Many events of one kind do not
/// displace the rare events of another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLog {
    /// Events that were kept, in order of arrival.
    pub records: Vec<EventRecord>,
    /// Number of events that were not kept, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub omitted: BTreeMap<String, u64>,
    #[serde(skip)]
    kept: BTreeMap<String, usize>,
}

impl EventLog {
    /// Maximum number of kept events of one kind.
    pub const KEPT_PER_KIND: usize = 200;

    /// Keeps an event, or counts it if the limit of its kind is reached.
    pub fn push(&mut self, record: EventRecord) {
        if self.admits(&record.kind) {
            self.records.push(record);
        }
    }

    /// Counts an event of this kind. Returns true if it is to be kept.
    fn admits(&mut self, kind: &str) -> bool {
        let kept = match self.kept.get_mut(kind) {
            Some(kept) => kept,
            None => self.kept.entry(kind.to_owned()).or_default(),
        };
        let is_kept = *kept < Self::KEPT_PER_KIND;
        if is_kept {
            *kept += 1;
        } else {
            *self.omitted.entry(kind.to_owned()).or_default() += 1;
        }
        is_kept
    }

    /// Returns the first violation of a guaranteed order, and the number of all violations. A run with a violation
    /// fails in any case.
    #[must_use]
    pub fn broken_promise(&self) -> Option<String> {
        let first = self.records.iter().find(|record| record.kind == ORDER_BROKEN)?;
        let kept = self.records.iter().filter(|record| record.kind == ORDER_BROKEN).count() as u64;
        let times = kept + self.omitted.get(ORDER_BROKEN).copied().unwrap_or(0);
        Some(format!("{} (at {} ns; {times} in all)", first.text, first.at_ns))
    }

    /// Keeps an event of the core beyond the limit of its kind too: the list that it comes from has a bound.
    pub fn keep_event(&mut self, now: Instant, member: NodeId, event: &Event, names: &[String]) {
        self.records.extend(EventRecord::of(now, member, event, names));
    }

    /// Keeps an event of the core, unless it is counted elsewhere.
    pub fn push_event(&mut self, now: Instant, member: NodeId, event: &Event, names: &[String]) {
        let is_kept = EventRecord::kind_of(event).is_some_and(|kind| self.admits(kind));
        if is_kept {
            self.records.extend(EventRecord::of(now, member, event, names));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackloom_protocol::{DropReason, OperationId};

    fn names() -> Vec<String> {
        ["alpha", "beta"].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_path_change_is_a_line_with_the_plans_names() {
        let event = Event::PathChanged { destination: NodeId(1), from: Some(PortId(0)), to: None };
        let record = EventRecord::of(Instant(9), NodeId(0), &event, &names()).unwrap();
        assert_eq!(
            (record.at_ns, record.member.as_str(), record.kind.as_str()),
            (9, "alpha", "path-changed")
        );
        assert_eq!(record.text, "path to beta: port0 -> none");
        assert_eq!(record.fields["destination"], "beta");
    }

    #[test]
    fn counted_events_are_no_lines() {
        let completed = Event::Completed { operation: OperationId(1), result: Ok(0) };
        let dropped = Event::FrameDropped { port: PortId(0), reason: DropReason::Duplicate };
        for event in [completed, dropped] {
            assert_eq!(EventRecord::of(Instant(0), NodeId(0), &event, &names()), None);
        }
    }

    #[test]
    fn a_storm_of_one_kind_leaves_space_for_the_rare_ones() {
        let mut log = EventLog::default();
        for _ in 0..EventLog::KEPT_PER_KIND + 5 {
            log.push_event(Instant(0), NodeId(0), &Event::NodeReached { node: NodeId(1) }, &names());
        }
        log.push_event(Instant(1), NodeId(0), &Event::NodeLost { node: NodeId(1) }, &names());
        assert_eq!(log.records.last().unwrap().kind, "node-lost");
        assert_eq!(log.omitted["node-reached"], 5);
        log.keep_event(Instant(2), NodeId(0), &Event::NodeReached { node: NodeId(1) }, &names());
        assert_eq!(log.records.last().unwrap().at_ns, 2);
        assert_eq!(log.omitted["node-reached"], 5);
    }
}
