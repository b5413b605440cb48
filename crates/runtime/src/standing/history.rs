//! Latest events of a standing rack, for clients that were not there when they happened.

use std::collections::VecDeque;

use rackloom_control::request::EventList;
use rackloom_jobs::report::EventRecord;

/// Maximum number of events that are kept.
const KEPT_MAX: usize = 1_000;

/// Latest events of a rack.
#[derive(Debug, Default)]
pub(super) struct History {
    events: VecDeque<EventRecord>,
    omitted: u64,
}

impl History {
    /// Adds an event. The oldest one is forgotten if there are too many.
    pub(super) fn push(&mut self, event: EventRecord) {
        if self.events.len() == KEPT_MAX {
            self.events.pop_front();
            self.omitted += 1;
        }
        self.events.push_back(event);
    }

    /// Returns all events that are kept, oldest first.
    pub(super) fn list(&self) -> EventList {
        EventList { events: self.events.iter().cloned().collect(), omitted: self.omitted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_events_are_kept() {
        let mut history = History::default();
        for at_ns in 0..KEPT_MAX as u64 + 3 {
            let (member, kind, text) = ("n0".to_owned(), "fault".to_owned(), String::new());
            history.push(EventRecord { at_ns, member, kind, text, fields: Default::default() });
        }
        let list = history.list();
        assert_eq!((list.events.len(), list.events[0].at_ns, list.omitted), (KEPT_MAX, 3, 3));
    }
}
