//! What must hold in every run, whatever befalls the rack, and how often it was looked at.
//!
//! A fault script says how a run may end; an oracle says what may never happen on the way. Whoever can see a promise being kept or
//! broken counts it here: ranks what concerns their own operations (`crew/issuer.rs`), owners their own bytes (the jobs), the simulator
//! what only somebody sees who looks at all memories and links at once. The report has one line per oracle that was watched.
//!
//! Nothing here looks at anything.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::report::is_zero;

/// Findings of one oracle that are told in words; beyond them they are counted.
const TOLD_MAX: usize = 4;

/// A promise that no fault excuses from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Oracle {
    /// An operation that ended well has left its bytes at the target.
    Shadow,
    /// Every byte of an operation is written once, and every atomic is applied once.
    ExactlyOnce,
    /// The order that the rack declares; a signal comes after its data.
    Order,
    /// An operation ends once.
    OneEnd,
    /// Memory changes only where an operation under way may change it.
    Untouched,
    /// Whose outcome is unknown had a target that was lost; what was said not to have happened has not.
    UnknownIfTrue,
    /// No frame to a life that is over is used.
    Lives,
    /// After everything is healed, whoever lives can reach whoever lives.
    Progress,
    /// When everything is at rest, all credits are free.
    Credits,
    /// No owner refuses an access, unless the job or the fault script provokes it.
    Refusals,
}

impl Oracle {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 10] = [
        Self::Shadow,
        Self::ExactlyOnce,
        Self::Order,
        Self::OneEnd,
        Self::Untouched,
        Self::UnknownIfTrue,
        Self::Lives,
        Self::Progress,
        Self::Credits,
        Self::Refusals,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shadow => "shadow",
            Self::ExactlyOnce => "exactly-once",
            Self::Order => "order",
            Self::OneEnd => "one-end",
            Self::Untouched => "untouched",
            Self::UnknownIfTrue => "unknown-if-true",
            Self::Lives => "lives",
            Self::Progress => "progress",
            Self::Credits => "credits",
            Self::Refusals => "refusals",
        }
    }
}

/// One oracle's part of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// How often it looked and could tell.
    pub looked: u64,
    /// How often it looked and could not tell, because others were allowed to touch the same thing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unjudged: u64,
    /// How often what it saw must not be.
    pub broken: u64,
    /// The first of these, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<String>,
}

/// What all oracles have seen; those that never looked are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Verdicts(BTreeMap<Oracle, Tally>);

impl Verdicts {
    /// Whether nobody has looked at anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// It looked, and what it saw was right.
    pub fn hold(&mut self, oracle: Oracle) {
        self.hold_times(oracle, 1);
    }

    /// The same, so many times.
    pub fn hold_times(&mut self, oracle: Oracle, times: u64) {
        if times > 0 {
            self.0.entry(oracle).or_default().looked += times;
        }
    }

    /// It looked, and could not tell.
    pub fn pass_over(&mut self, oracle: Oracle) {
        self.0.entry(oracle).or_default().unjudged += 1;
    }

    /// It looked, and what it saw must not be.
    pub fn find(&mut self, oracle: Oracle, what: impl FnOnce() -> String) {
        let tally = self.0.entry(oracle).or_default();
        tally.looked += 1;
        tally.broken += 1;
        if tally.first.len() < TOLD_MAX {
            tally.first.push(what());
        }
    }

    /// It looked: what it saw is right, or is told.
    pub fn judge(&mut self, oracle: Oracle, is_right: bool, what: impl FnOnce() -> String) {
        if is_right { self.hold(oracle) } else { self.find(oracle, what) }
    }

    /// What others have seen as well.
    pub fn merge(&mut self, others: &Self) {
        for (oracle, other) in &others.0 {
            let tally = self.0.entry(*oracle).or_default();
            tally.looked += other.looked;
            tally.unjudged += other.unjudged;
            tally.broken += other.broken;
            let room = TOLD_MAX.saturating_sub(tally.first.len());
            tally.first.extend(other.first.iter().take(room).cloned());
        }
    }

    /// One oracle's part.
    #[must_use]
    pub fn of(&self, oracle: Oracle) -> Option<&Tally> {
        self.0.get(&oracle)
    }

    /// Those that looked, in the order of reports.
    pub fn iter(&self) -> impl Iterator<Item = (Oracle, &Tally)> {
        self.0.iter().map(|(oracle, tally)| (*oracle, tally))
    }

    /// A line for every oracle that found something.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let broken = self.iter().filter(|(_, tally)| tally.broken > 0);
        let line = |(oracle, tally): (Oracle, &Tally)| {
            let first = tally.first.first().map_or("", String::as_str);
            format!("oracle {}: {first} ({} in all)", oracle.name(), tally.broken)
        };
        broken.map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_merged_adds_up_and_the_first_words_stay() {
        let (mut one, mut other) = (Verdicts::default(), Verdicts::default());
        one.hold(Oracle::Shadow);
        one.find(Oracle::OneEnd, || "first".to_owned());
        other.hold_times(Oracle::Shadow, 4);
        other.pass_over(Oracle::Shadow);
        (0..9).for_each(|number| other.find(Oracle::OneEnd, || number.to_string()));
        one.merge(&other);
        assert_eq!(one.of(Oracle::Shadow), Some(&Tally { looked: 5, unjudged: 1, ..Tally::default() }));
        assert_eq!(one.failures(), ["oracle one-end: first (10 in all)"]);
        assert_eq!(one.of(Oracle::OneEnd).map(|tally| tally.first.len()), Some(TOLD_MAX));
        assert!(one.of(Oracle::Credits).is_none());
    }

    #[test]
    fn names_in_files_are_those_of_reports() {
        for oracle in Oracle::ALL {
            let word = serde_json::to_string(&oracle).expect("a word");
            assert_eq!(word, format!("\"{}\"", oracle.name()));
        }
    }
}
