//! Events of the members, kept for tests and reports, within a bound.
//!
//! Completions and dropped frames come by the million, changes of state by the dozen: the frequent ones stop being
//! kept when half of the memory is used, so that a late `NodeLost` is never crowded out by early completions.

use rackloom_protocol::{Event, Instant, NodeId};

const EVENTS_MAX: usize = 65_536;

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

/// Events in order of time.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    events: Vec<RecordedEvent>,
    left_out: u64,
}

impl Recording {
    pub(crate) fn add(&mut self, now: Instant, node: NodeId, event: Event) {
        let frequent = matches!(event, Event::Completed { .. } | Event::FrameDropped { .. });
        if self.events.len() >= if frequent { EVENTS_MAX / 2 } else { EVENTS_MAX } {
            self.left_out += 1;
        } else {
            self.events.push(RecordedEvent { at: now, node, event });
        }
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
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use rackloom_protocol::OperationId;

    use super::*;

    #[test]
    fn a_flood_of_completions_does_not_displace_changes() {
        let mut recording = Recording::default();
        for number in 0..EVENTS_MAX as u64 {
            recording.add(
                Instant(number),
                NodeId(0),
                Event::Completed { operation: OperationId(number), result: Ok(0) },
            );
        }
        let lost = Event::NodeLost { node: NodeId(3) };
        recording.add(Instant::NEVER, NodeId(1), lost);
        assert_eq!(
            recording.events().last(),
            Some(&RecordedEvent { at: Instant::NEVER, node: NodeId(1), event: lost })
        );
        assert_eq!(recording.events().len() as u64 + recording.left_out(), EVENTS_MAX as u64 + 1);
    }
}
