//! Events of the members, kept for tests and reports, within a bound for each kind.
//!
//! Completions come by the million, and in a large rack each member reaches each other one. A kind does not displace
//! another: a late `NodeLost` or `OrderBroken` is kept in any case.

use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};

use rackloom_jobs::report::EventRecord;
use rackloom_protocol::{Event, Instant, NodeId};

/// Kept completions, and dropped frames. Tests read them; reports count them otherwise.
const FREQUENT_MAX: u64 = 32_768;
/// Kept events of any other kind. Changes of links have space for those of the bring-up beside this: one at each end.
const KEPT_MAX: u64 = 4096;

/// Event of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// Time of the event.
    pub at: Instant,
    /// Member that reported it.
    pub node: NodeId,
    /// The event.
    pub event: Event,
}

/// Events in order of time: the first ones of each kind.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    links: u64,
    events: Vec<RecordedEvent>,
    /// One entry for each kind that occurred.
    kinds: Vec<Kind>,
}

/// Events of one kind.
#[derive(Debug)]
struct Kind {
    discriminant: Discriminant<Event>,
    /// Name in reports; `None` if reports do not list the kind.
    name: Option<&'static str>,
    kept: u64,
    left_out: u64,
}

impl Recording {
    /// Creates a recording of a rack with this number of links.
    pub(crate) fn of(links: usize) -> Self {
        Self { links: links as u64, ..Self::default() }
    }

    pub(crate) fn add(&mut self, now: Instant, node: NodeId, event: Event) {
        let kept_max = match event {
            Event::Completed { .. } | Event::FrameDropped { .. } => FREQUENT_MAX,
            Event::LinkChanged { .. } => KEPT_MAX + 2 * self.links,
            _ => KEPT_MAX,
        };
        let kind = self.kind(&event);
        if kind.kept < kept_max {
            kind.kept += 1;
            self.events.push(RecordedEvent { at: now, node, event });
        } else {
            kind.left_out += 1;
        }
    }

    fn kind(&mut self, event: &Event) -> &mut Kind {
        let discriminant = discriminant(event);
        let index = self.kinds.iter().position(|kind| kind.discriminant == discriminant);
        let index = index.unwrap_or_else(|| {
            self.kinds.push(Kind { discriminant, name: EventRecord::kind_of(event), kept: 0, left_out: 0 });
            self.kinds.len() - 1
        });
        &mut self.kinds[index]
    }

    pub(crate) fn events(&self) -> &[RecordedEvent] {
        &self.events
    }

    /// Takes all events out.
    pub(crate) fn take(&mut self) -> Vec<RecordedEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns the number of events that were not kept.
    pub(crate) fn left_out(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.left_out).sum()
    }

    /// Returns the number of events that were not kept, by kind, without those that reports do not list.
    pub(crate) fn omitted(&self) -> BTreeMap<&'static str, u64> {
        let left_out = self.kinds.iter().filter(|kind| kind.left_out > 0);
        left_out.filter_map(|kind| Some((kind.name?, kind.left_out))).collect()
    }
}

#[cfg(test)]
mod tests {
    use rackloom_protocol::{LinkCause, LinkState, OperationId, PortId};

    use super::*;

    #[test]
    fn a_flood_of_one_kind_does_not_displace_another() {
        let mut recording = Recording::of(10);
        for number in 0..100_000 {
            let completed = Event::Completed { operation: OperationId(number), result: Ok(0) };
            recording.add(Instant(number), NodeId(0), completed);
            recording.add(Instant(number), NodeId(0), Event::NodeReached { node: NodeId(1) });
        }
        let lost = Event::NodeLost { node: NodeId(3) };
        recording.add(Instant::NEVER, NodeId(1), lost);
        assert_eq!(
            recording.events().last(),
            Some(&RecordedEvent { at: Instant::NEVER, node: NodeId(1), event: lost })
        );
        assert_eq!(recording.events().len() as u64, FREQUENT_MAX + KEPT_MAX + 1);
        assert_eq!(recording.left_out(), 200_000 - FREQUENT_MAX - KEPT_MAX);
        assert_eq!(recording.omitted(), BTreeMap::from([("node-reached", 100_000 - KEPT_MAX)]));
    }

    #[test]
    fn changes_of_links_have_space_beside_those_of_the_bring_up() {
        let mut recording = Recording::of(5000);
        let changed = Event::LinkChanged {
            port: PortId(0),
            from: LinkState::Init,
            to: LinkState::Up,
            cause: LinkCause::Hello,
        };
        (0..10_000 + KEPT_MAX + 7).for_each(|number| recording.add(Instant(number), NodeId(0), changed));
        assert_eq!(recording.omitted(), BTreeMap::from([("link-changed", 7)]));
    }
}
