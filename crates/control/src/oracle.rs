//! Oracles: properties that must hold in every run, under every fault, and the number of times each was checked.
//!
//! A fault script states how a run may end. An oracle states what must never happen during the run. Each part that can
//! check a property counts its checks here: ranks check their own operations (`ranks/issuer.rs`), owners check their own
//! bytes (the jobs), and the simulator checks properties that need all memories and links at once. The report has one
//! line per oracle that was checked.
//!
//! This module only counts. It performs no checks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::zero::is_zero;

/// Number of findings of one oracle that are kept as text. Further findings are only counted.
const FIRST_MAX: usize = 4;

/// A property that must hold under every fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Oracle {
    /// An operation that completed successfully has left its bytes at the target.
    Shadow,
    /// Every byte of an operation is written once, and every atomic is applied once.
    ExactlyOnce,
    /// Operations take effect in the order that the rack declares. A signal arrives after its data.
    Order,
    /// An operation completes once.
    OneEnd,
    /// Memory changes only where an outstanding operation may change it.
    Untouched,
    /// An operation with an unknown outcome had a target that was lost. An operation that was reported as not performed
    /// was not performed.
    UnknownIfTrue,
    /// No frame to an earlier incarnation is used.
    Incarnations,
    /// After all faults are healed, every live member can reach every other live member.
    Progress,
    /// All credits and all grants are free when the rack is at rest.
    Credits,
    /// No owner refuses an access, unless the job or the fault script provokes it.
    Refusals,
}

impl Oracle {
    /// All oracles, in the order of reports.
    pub const ALL: [Self; 10] = [
        Self::Shadow,
        Self::ExactlyOnce,
        Self::Order,
        Self::OneEnd,
        Self::Untouched,
        Self::UnknownIfTrue,
        Self::Incarnations,
        Self::Progress,
        Self::Credits,
        Self::Refusals,
    ];

    /// Returns the oracle's name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shadow => "shadow",
            Self::ExactlyOnce => "exactly-once",
            Self::Order => "order",
            Self::OneEnd => "one-end",
            Self::Untouched => "untouched",
            Self::UnknownIfTrue => "unknown-if-true",
            Self::Incarnations => "incarnations",
            Self::Progress => "progress",
            Self::Credits => "credits",
            Self::Refusals => "refusals",
        }
    }
}

/// Checks of one oracle, as a part of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Number of checks that had a result: right or broken.
    pub looked: u64,
    /// Number of checks without a result, because other operations were allowed to change the same thing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unjudged: u64,
    /// Number of checks that found a violation.
    pub broken: u64,
    /// Descriptions of the first violations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<String>,
}

/// Checks of all oracles. Oracles that were never checked are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Verdicts(BTreeMap<Oracle, Tally>);

impl Verdicts {
    /// Returns whether no check was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts one check that passed.
    pub fn hold(&mut self, oracle: Oracle) {
        self.hold_times(oracle, 1);
    }

    /// Counts `times` checks that passed.
    pub fn hold_times(&mut self, oracle: Oracle, times: u64) {
        if times > 0 {
            self.0.entry(oracle).or_default().looked += times;
        }
    }

    /// Counts one check without a result.
    pub fn pass_over(&mut self, oracle: Oracle) {
        self.0.entry(oracle).or_default().unjudged += 1;
    }

    /// Counts one check that found a violation, and keeps `what()` if there is space.
    pub fn find(&mut self, oracle: Oracle, what: impl FnOnce() -> String) {
        let tally = self.0.entry(oracle).or_default();
        tally.looked += 1;
        tally.broken += 1;
        if tally.first.len() < FIRST_MAX {
            tally.first.push(what());
        }
    }

    /// Counts one check: it passed if `is_right`; otherwise it is a violation that `what()` describes.
    pub fn judge(&mut self, oracle: Oracle, is_right: bool, what: impl FnOnce() -> String) {
        if is_right { self.hold(oracle) } else { self.find(oracle, what) }
    }

    /// Adds the checks of `others`.
    pub fn merge(&mut self, others: &Self) {
        for (oracle, other) in &others.0 {
            let tally = self.0.entry(*oracle).or_default();
            tally.looked += other.looked;
            tally.unjudged += other.unjudged;
            tally.broken += other.broken;
            let free = FIRST_MAX.saturating_sub(tally.first.len());
            tally.first.extend(other.first.iter().take(free).cloned());
        }
    }

    /// Returns the checks of one oracle, or `None` if it was never checked.
    #[must_use]
    pub fn of(&self, oracle: Oracle) -> Option<&Tally> {
        self.0.get(&oracle)
    }

    /// Returns the oracles that were checked, in the order of reports.
    pub fn iter(&self) -> impl Iterator<Item = (Oracle, &Tally)> {
        self.0.iter().map(|(oracle, tally)| (*oracle, tally))
    }

    /// Returns one line for every oracle that found a violation.
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
        assert_eq!(one.of(Oracle::OneEnd).map(|tally| tally.first.len()), Some(FIRST_MAX));
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
