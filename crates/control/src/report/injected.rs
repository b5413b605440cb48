//! Injected faults of a port: how often a link did what its profile states.
//!
//! Counters of the core do not distinguish an injected loss from any other, and a repaired fault leaves no other trace. Both engines write
//! the same line for the sending end.

use std::collections::BTreeMap;

use rackloom_protocol::{Instant, PortId};

use super::events::EventRecord;

/// Number of frames of one sending port that injected faults changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InjectedFaults {
    /// Number of frames that were dropped.
    pub dropped: u64,
    /// Number of frames in which a bit was flipped.
    pub corrupted: u64,
    /// Number of frames that were sent twice.
    pub duplicated: u64,
    /// Number of frames that were sent after a later frame.
    pub reordered: u64,
}

/// Kind of the event.
pub const KIND: &str = "faults-injected";

impl InjectedFaults {
    fn counts(self) -> [(&'static str, u64); 4] {
        [
            ("dropped", self.dropped),
            ("corrupted", self.corrupted),
            ("duplicated", self.duplicated),
            ("reordered", self.reordered),
        ]
    }

    /// Returns the counts for a port's report.
    pub fn by_name(self) -> BTreeMap<String, u64> {
        let occurred = self.counts().into_iter().filter(|(_, count)| *count > 0);
        occurred.map(|(what, count)| (what.to_owned(), count)).collect()
    }

    /// Returns the event for a port of `member`; `None` if nothing was injected.
    pub fn record(self, now: Instant, member: &str, port: PortId) -> Option<EventRecord> {
        if self == Self::default() {
            return None;
        }
        let counts = self.counts();
        let words: Vec<_> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
        let counts = counts.iter().map(|(what, count)| ((*what).to_owned(), count.to_string()));
        Some(EventRecord {
            at_ns: now.0,
            member: member.to_owned(),
            kind: KIND.to_owned(),
            text: format!("of the frames sent at {port}: {}", words.join(", ")),
            fields: counts.chain([("port".to_owned(), port.to_string())]).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_port_has_no_line_and_a_faulty_one_names_each_count() {
        assert_eq!(InjectedFaults::default().record(Instant(5), "n0", PortId(1)), None);
        let faults = InjectedFaults { dropped: 3, reordered: 1, ..InjectedFaults::default() };
        let record = faults.record(Instant(5), "n0", PortId(1)).expect("a line");
        assert_eq!(
            record.text,
            "of the frames sent at port1: 3 dropped, 0 corrupted, 0 duplicated, 1 reordered"
        );
        assert_eq!((record.fields["dropped"].as_str(), record.fields["port"].as_str()), ("3", "port1"));
    }
}
