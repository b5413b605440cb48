//! Result of a comparison: rows, counts by section, and the outcome for an exit code.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::over_time::OverTime;
use crate::row::{Judgement, Row, Section};

/// Outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// No row is worse by more than its threshold, and the verdict is no worse.
    Within,
    /// A row is worse by more than its threshold, or the verdict is worse.
    Over,
    /// A value is worse by more than its threshold, but there are too few runs, or clocks differ. No other row is over.
    CouldNotTell,
}

/// Runs of a comparison, and chances of errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Basis {
    /// Number of runs before. Several reports of one run count once.
    pub runs_before: usize,
    /// Number of runs after. Several reports of one run count once.
    pub runs_after: usize,
    /// Clocks of the runs: `wall`, `virtual`, or both.
    pub clocks: Vec<String>,
    /// True if all runs are in virtual time and both sides have the same seeds. Every difference is then real.
    pub has_equal_seeds: bool,
    /// Chance that a row which has not changed is judged worse: 1 / C(n + m, n), or 0 with too few runs, which are never judged worse.
    /// Thresholds lower it further. Absent with equal seeds and with different clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub false_alarm: Option<f64>,
    /// Number of rows that are expected to be judged worse if nothing has changed: this chance, times the rows that differ and have a better
    /// direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub false_alarms: Option<f64>,
}

/// Number of rows of one section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SectionCounts {
    /// Section.
    pub section: Section,
    /// All rows.
    pub rows: usize,
    /// Rows with equal values.
    pub equal: usize,
    /// Rows that changed.
    pub changed: usize,
    /// Rows that are better.
    pub better: usize,
    /// Rows that are worse.
    pub worse: usize,
    /// Rows that are noise.
    pub noise: usize,
    /// Rows of one side only.
    pub one_sided: usize,
    /// Rows over the threshold.
    pub over: usize,
    /// Rows that `rows` of the comparison leaves out. Those that changed most are kept.
    pub left_out: usize,
}

/// Differences between two sides of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Outcome over all rows, those left out included.
    pub outcome: Outcome,
    /// Runs and chances of errors.
    pub basis: Basis,
    /// True if both sides have the same members and links. Otherwise rows of single members and links exist for those in both.
    pub is_same_rack: bool,
    /// Remarks that a reader of the rows needs.
    pub notes: Vec<String>,
    /// Rates of links over time; absent unless all runs have time series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_time: Option<OverTime>,
    /// Number of rows by section; sections without rows are left out.
    pub sections: Vec<SectionCounts>,
    /// Rows by section, in each section the most important first.
    pub rows: Vec<Row>,
}

impl Comparison {
    /// Returns whether the side after is a regression: a row is worse by more than its threshold, or the verdict is worse.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.outcome == Outcome::Over
    }

    /// Returns all rows, the most important first: rows over their threshold, then worse, better and changed ones, then rows of one
    /// side, noise, and equal rows. Among these, the verdict precedes results of the whole rack, and these precede single links and
    /// members. Larger differences precede smaller ones.
    #[must_use]
    pub fn by_importance(&self) -> Vec<&Row> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        let group = |row: &Row| match row.section {
            Section::Verdict => 0,
            Section::Links | Section::Nodes => 2,
            _ => 1,
        };
        rows.sort_by(|one, other| {
            let by_group = class(one).cmp(&class(other)).then_with(|| group(one).cmp(&group(other)));
            by_group.then_with(|| order(one, other)).then_with(|| one.section.cmp(&other.section))
        });
        rows
    }

    /// Returns whether no row differs beyond noise, those left out included.
    #[must_use]
    pub fn has_no_difference(&self) -> bool {
        self.sections.iter().all(|section| section.equal + section.noise == section.rows)
    }

    /// Makes the result from all rows. Each section that is not complete by its kind keeps `rows_max` rows.
    pub(crate) fn of(
        mut rows: Vec<Row>,
        basis: Basis,
        is_same_rack: bool,
        notes: Vec<String>,
        over_time: Option<OverTime>,
        rows_max: usize,
    ) -> Self {
        rows.sort_by(|one, other| one.section.cmp(&other.section).then_with(|| order(one, other)));
        let outcome = if rows.iter().any(|row| row.is_over_threshold) {
            Outcome::Over
        } else if rows.iter().any(|row| row.is_suspect) {
            Outcome::CouldNotTell
        } else {
            Outcome::Within
        };
        let mut sections = Vec::new();
        let mut kept = Vec::new();
        for section_rows in rows.chunk_by(|one, other| one.section == other.section) {
            let section = section_rows[0].section;
            let most = if section.is_complete() { section_rows.len() } else { rows_max };
            let first = &section_rows[..section_rows.len().min(most)];
            sections.push(counts(section, section_rows, first.len()));
            kept.extend_from_slice(first);
        }
        Self { outcome, basis, is_same_rack, notes, over_time, sections, rows: kept }
    }
}

fn counts(section: Section, rows: &[Row], kept: usize) -> SectionCounts {
    let of = |judgement: Judgement| rows.iter().filter(|row| row.judgement == judgement).count();
    SectionCounts {
        section,
        rows: rows.len(),
        equal: of(Judgement::Equal),
        changed: of(Judgement::Changed),
        better: of(Judgement::Better),
        worse: of(Judgement::Worse),
        noise: of(Judgement::Noise),
        one_sided: of(Judgement::OnlyBefore) + of(Judgement::OnlyAfter),
        over: rows.iter().filter(|row| row.is_over_threshold).count(),
        left_out: rows.len() - kept,
    }
}

/// Returns the class of a row by importance, the most important first.
fn class(row: &Row) -> (bool, bool, u8) {
    let judgement = match row.judgement {
        Judgement::Worse => 0,
        Judgement::Better => 1,
        Judgement::Changed => 2,
        Judgement::OnlyBefore | Judgement::OnlyAfter => 3,
        Judgement::Noise => 4,
        Judgement::Equal => 5,
    };
    (!row.is_over_threshold, !row.is_suspect, judgement)
}

/// Orders rows by importance. Rows of one section have distinct names, so that the order is total within a section.
fn order(one: &Row, other: &Row) -> Ordering {
    let by_size = other.magnitude().total_cmp(&one.magnitude());
    class(one).cmp(&class(other)).then(by_size).then_with(|| one.name.cmp(&other.name))
}
