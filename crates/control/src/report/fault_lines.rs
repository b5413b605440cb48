//! Members' lines about a fault script, in bounded memory: the first lines of each event are kept, the others are
//! counted.
//!
//! A rack may run for days under a fault that repeats every second. Times of detection and recovery are taken from the
//! first lines. The number of times that an event began stays exact: the last line that is kept of each event and
//! member states the number of lines that it stands for.

use std::collections::BTreeMap;

use super::events::EventRecord;

/// Maximum number of unmerged lines of one event at one member. Members keep 200 events of a kind, and a flap makes up
/// to four of them.
const KEPT_MAX: u64 = 100;
/// Field with the number of lines that one line stands for.
pub(super) const STANDS_FOR: &str = "stands_for";

/// Event and member.
type Key = (String, String);

/// Fault lines of one run.
#[derive(Clone, Debug, Default)]
pub struct FaultLines {
    kept: Vec<EventRecord>,
    counts: BTreeMap<Key, u64>,
    /// Last line and the number of lines that it stands for, by event, member and whether the event begins.
    others: BTreeMap<(Key, bool), (EventRecord, u64)>,
}

impl FaultLines {
    /// Adds a line.
    pub fn push(&mut self, record: EventRecord) {
        let field = |name: &str| record.fields.get(name).cloned().unwrap_or_default();
        let key = (field("event"), record.member.clone());
        let count = self.counts.entry(key.clone()).or_default();
        *count += 1;
        if *count <= KEPT_MAX {
            return self.kept.push(record);
        }
        let begins = field("begins") == "true";
        let (last, times) = self.others.entry((key, begins)).or_insert_with(|| (record.clone(), 0));
        (*last, *times) = (record, *times + 1);
    }

    /// Returns all lines that were kept.
    #[must_use]
    pub fn into_records(self) -> Vec<EventRecord> {
        let others = self.others.into_values().map(|(mut record, times)| {
            record.text = format!("{}; stands for {times} such lines", record.text);
            record.fields.insert(STANDS_FOR.to_owned(), times.to_string());
            record
        });
        self.kept.into_iter().chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at_ns: u64, begins: bool) -> EventRecord {
        let fields = [("event", "1".to_owned()), ("begins", begins.to_string())];
        EventRecord {
            at_ns,
            member: "n0".to_owned(),
            kind: "fault".to_owned(),
            text: "down n0--n1 begins (line 3)".to_owned(),
            fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    }

    #[test]
    fn a_million_lines_take_the_space_of_a_hundred_and_are_counted() {
        let mut lines = FaultLines::default();
        (0..1_000_000).for_each(|number| lines.push(line(number, number % 2 == 0)));
        let records = lines.into_records();
        assert_eq!(records.len() as u64, KEPT_MAX + 2);
        let stands_for = |record: &EventRecord| {
            record.fields.get(STANDS_FOR).map_or(1, |times| times.parse::<u64>().expect("a count"))
        };
        assert_eq!(records.iter().map(stands_for).sum::<u64>(), 1_000_000);
        assert_eq!(records.last().map(|record| record.at_ns), Some(999_998));
    }
}
