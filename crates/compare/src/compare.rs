//! Comparison of two sides: facts of all reports are paired by section and name, and judged.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rackloom_control::report::Report;

use crate::comparison::{Basis, Comparison};
use crate::facts::{self, Common, Fact, Key, Value};
use crate::judge::{self, Finding, Origin};
use crate::over_time;
use crate::row::{Direction, Evidence, Judgement, Row, Section, Side, Texts};
use crate::runs::{Runs, VIRTUAL};
use crate::thresholds::{Limits, Thresholds};

/// Expected number of false alarms from which a note says so.
const FALSE_ALARMS_NOTED: f64 = 0.5;

/// Values of one fact by run. A run without the fact is `None`.
struct Column {
    unit: &'static str,
    direction: Direction,
    is_zero_if_absent: bool,
    before: Vec<Option<Value>>,
    after: Vec<Option<Value>>,
}

/// Compares the runs before with the runs after. The crate's documentation states the rule.
#[must_use]
pub fn compare(before: &[Report], after: &[Report], limits: &Limits) -> Comparison {
    let [runs_before, runs_after] = [before, after].map(Runs::of);
    let (before, after) = (runs_before.reports.as_slice(), runs_after.reports.as_slice());
    let common = Common::of(before, after);
    let origin = origin(before, after);
    let mut columns = HashMap::<Key, Column>::new();
    for (index, report) in before.iter().chain(after).enumerate() {
        for (key, fact) in facts::facts(report, &common) {
            let column = columns.entry(key).or_insert_with(|| Column::new(&fact, before.len(), after.len()));
            let (side, run) = match index.checked_sub(before.len()) {
                None => (&mut column.before, index),
                Some(run) => (&mut column.after, run),
            };
            side[run] = Some(fact.value);
        }
    }
    let rows = columns.into_iter().map(|(key, column)| row(key, column, &origin, &limits.thresholds));
    let rows: Vec<Row> = rows.collect();
    let is_same_rack = before.iter().chain(after).all(|report| common.has_all_of(report));
    let basis = basis(before, after, &origin, rows.iter().filter(|row| may_be_chance(row)).count());
    let copies = [runs_before.note("before"), runs_after.note("after")].into_iter().flatten();
    let mut notes: Vec<String> = copies.chain(notes(&basis, &origin, is_same_rack)).collect();
    if let Some(sections) = limits.thresholds.only() {
        let names: Vec<_> = sections.map(Section::name).collect();
        notes.push(format!("only these sections are compared with a threshold: {}", names.join(", ")));
    }
    let have_series = before.iter().chain(after).all(|report| report.series.is_some());
    if have_series && common.interval_ns().is_none() {
        notes.push(
            "the series have intervals that do not fit together, so rates over time are not compared"
                .to_owned(),
        );
    }
    let rows_max = limits.rows_max.unwrap_or(Limits::ROWS);
    let over_time = common.interval_ns().map(|interval_ns| {
        over_time::differences(before, after, interval_ns, |link| common.has_link(link), rows_max)
    });
    Comparison::of(rows, basis, is_same_rack, notes, over_time, rows_max)
}

impl Column {
    fn new(fact: &Fact, before: usize, after: usize) -> Self {
        let Fact { unit, direction, is_zero_if_absent, .. } = *fact;
        Self { unit, direction, is_zero_if_absent, before: vec![None; before], after: vec![None; after] }
    }

    /// Returns the numbers of the runs of one side.
    fn numbers(&self, side: &[Option<Value>]) -> Vec<Option<f64>> {
        let absent = self.is_zero_if_absent.then_some(0.0);
        side.iter()
            .map(|value| match value {
                Some(Value::Number(number)) => Some(*number),
                _ => absent,
            })
            .collect()
    }

    fn has_numbers(&self) -> bool {
        self.before.iter().chain(&self.after).flatten().any(|value| matches!(value, Value::Number(_)))
    }
}

/// Returns the texts of the runs of one side.
fn texts(side: &[Option<Value>]) -> Vec<Option<&str>> {
    side.iter()
        .map(|value| match value {
            Some(Value::Text(text) | Value::Ranked(text, _)) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn ranks(side: &[Option<Value>]) -> Vec<u8> {
    let rank = |value: &Option<Value>| match value {
        Some(Value::Ranked(_, rank)) => Some(*rank),
        _ => None,
    };
    side.iter().filter_map(rank).collect()
}

fn row((section, name): Key, column: Column, origin: &Origin, thresholds: &Thresholds) -> Row {
    let threshold = thresholds.share(section);
    if column.has_numbers() {
        return number_row(section, name, &column, origin, threshold);
    }
    let (before, after) = (texts(&column.before), texts(&column.after));
    let (first, second) = (ranks(&column.before), ranks(&column.after));
    let finding = match section {
        _ if !first.is_empty() || !second.is_empty() => judge::of_ranks(&first, &second),
        Section::Configuration => judge::of_choices(&before, &after),
        _ => judge::of_texts(&before, &after, origin),
    };
    let side = |texts: Vec<Option<&str>>| {
        let mut counts = BTreeMap::new();
        texts.into_iter().flatten().for_each(|text| *counts.entry(text.to_owned()).or_default() += 1);
        (!counts.is_empty()).then_some(Side::Text(Texts { texts: counts }))
    };
    Row {
        section,
        name,
        unit: String::new(),
        direction: column.direction,
        before: side(before),
        after: side(after),
        change: None,
        judgement: finding.judgement,
        evidence: finding.evidence,
        is_over_threshold: finding.judgement == Judgement::Worse
            && (threshold.is_some() || section.is_complete()),
        is_suspect: false,
    }
}

/// `threshold` is `None` for a section that is not judged.
fn number_row(
    section: Section,
    name: String,
    column: &Column,
    origin: &Origin,
    threshold: Option<f64>,
) -> Row {
    let (first, second) = (column.numbers(&column.before), column.numbers(&column.after));
    let Finding { judgement, evidence } = judge::of_numbers(&first, &second, column.direction, origin);
    let (before, after) = (judge::spread(&first), judge::spread(&second));
    let medians = before.zip(after).map(|(before, after)| (before.median, after.median));
    let change = medians.and_then(|(before, after)| change(before, after));
    // A change that is no number comes from zero, or from a value close to it, and is over any threshold.
    let is_large = threshold.is_some_and(|threshold| change.is_none_or(|change| change.abs() > threshold));
    let is_more = medians.is_some_and(|(before, after)| after > before);
    let is_less = medians.is_some_and(|(before, after)| after < before);
    let is_bad = match column.direction {
        Direction::Lower => is_more,
        Direction::Higher => is_less,
        Direction::None => false,
    };
    let is_uncertain = matches!(evidence, Some(Evidence::TooFewRuns | Evidence::DifferentClocks));
    Row {
        section,
        name,
        unit: column.unit.to_owned(),
        direction: column.direction,
        before: before.map(Side::Number),
        after: after.map(Side::Number),
        change,
        judgement,
        evidence,
        is_over_threshold: judgement == Judgement::Worse && is_large,
        is_suspect: is_uncertain && is_bad && is_large,
    }
}

/// Returns the relative change; `None` if it is no finite number.
fn change(before: f64, after: f64) -> Option<f64> {
    if before == after {
        return Some(0.0);
    }
    let change = (after - before) / before.abs();
    change.is_finite().then_some(change)
}

fn origin(before: &[&Report], after: &[&Report]) -> Origin {
    let all = || before.iter().chain(after);
    let mut clocks = all().map(|report| report.clock.as_str());
    let first = clocks.next();
    if clocks.any(|clock| Some(clock) != first) {
        return Origin::DifferentClocks;
    }
    let by_seed = |side: &[&Report]| {
        let mut runs: Vec<_> = side.iter().map(|report| report.seed).zip(0..).collect();
        runs.sort_unstable();
        runs
    };
    let pairs: Vec<((u64, usize), (u64, usize))> = by_seed(before).into_iter().zip(by_seed(after)).collect();
    let is_paired = before.len() == after.len() && pairs.iter().all(|(first, second)| first.0 == second.0);
    if first == Some(VIRTUAL) && is_paired {
        return Origin::Pairs(pairs.into_iter().map(|(first, second)| (first.1, second.1)).collect());
    }
    Origin::Samples
}

/// Returns whether chance alone could have made the row worse.
fn may_be_chance(row: &Row) -> bool {
    let is_number = matches!((&row.before, &row.after), (Some(Side::Number(_)), Some(Side::Number(_))));
    is_number && row.direction != Direction::None && row.judgement != Judgement::Equal
}

fn basis(before: &[&Report], after: &[&Report], origin: &Origin, rows: usize) -> Basis {
    let clocks: BTreeSet<_> = before.iter().chain(after).map(|report| report.clock.clone()).collect();
    let (runs_before, runs_after) = (before.len(), after.len());
    let false_alarm = (*origin == Origin::Samples).then(|| judge::false_alarm(runs_before, runs_after));
    Basis {
        runs_before,
        runs_after,
        clocks: clocks.into_iter().collect(),
        has_equal_seeds: matches!(origin, Origin::Pairs(_)),
        false_alarm,
        false_alarms: false_alarm.map(|chance| chance * rows as f64),
    }
}

fn notes(basis: &Basis, origin: &Origin, is_same_rack: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let (before, after) = (basis.runs_before, basis.runs_after);
    match origin {
        Origin::DifferentClocks => {
            notes.push("the runs have different clocks, so nothing is judged better or worse".to_owned());
        }
        Origin::Samples if !judge::are_enough(before, after) => notes.push(format!(
            "runs before: {before}, after: {after}; too few to know the spread, so nothing is judged better or worse; three of each are enough"
        )),
        Origin::Pairs(_) | Origin::Samples => {}
    }
    if let Some(count) = basis.false_alarms.filter(|count| *count >= FALSE_ALARMS_NOTED) {
        notes.push(format!(
            "up to {count:.1} rows would be worse by chance if nothing had changed; more runs lower this"
        ));
    }
    if !is_same_rack {
        notes
            .push("the racks differ, so rows of single members and links are those of both sides".to_owned());
    }
    notes
}
