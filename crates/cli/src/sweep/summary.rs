//! Summary of a sweep: counts, runs that did not pass, and a table in which runs that differ in their seed only are one row.
//!
//! A run of several operations, pairs or sizes has a row for each of them.

use std::collections::{BTreeMap, BTreeSet};

use super::grid::{Coordinate, SEED};
use super::rows::Row;
use crate::present::table::{Column, Table};
use crate::present::units;

/// Maximum number of runs that are listed because they did not pass.
const LISTED_MAX: usize = 20;

/// Rows of one combination of values and one measured thing, with all seeds. Each row is of another run.
#[derive(Debug)]
pub(super) struct Group<'a> {
    /// Values of all axes but the seed.
    pub(super) coordinates: Vec<&'a Coordinate>,
    pub(super) measured: Measured<'a>,
    /// Rows, in the order of the points. A run that failed or broke off and measured nothing is in all groups of its values.
    pub(super) rows: Vec<&'a Row>,
}

/// Least, mean and greatest of several numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) least: f64,
    pub(super) mean: f64,
    pub(super) most: f64,
}

impl Group<'_> {
    /// Returns the spread of one value over the runs that passed, or `None` if none has it.
    pub(super) fn spread(&self, value: impl Fn(&Row) -> Option<f64>) -> Option<Spread> {
        let values: Vec<f64> =
            self.rows.iter().filter(|row| row.is_pass()).filter_map(|row| value(row)).collect();
        let first = *values.first()?;
        let spread =
            Spread { least: first, mean: values.iter().sum::<f64>() / values.len() as f64, most: first };
        Some(values.iter().fold(spread, |spread, value| Spread {
            least: spread.least.min(*value),
            most: spread.most.max(*value),
            ..spread
        }))
    }
}

/// Returns the groups, in the order of their first rows.
pub(super) fn groups(rows: &[Row]) -> Vec<Group<'_>> {
    let has_algorithms = have_lists_of_algorithms(rows);
    let mut groups = Groups::default();
    let (measured, others): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.time_ns.is_some() || (row.is_pass() && !row.has_clean_error));
    measured.into_iter().for_each(|row| groups.add(row, Measured::by(row, has_algorithms)));
    others.into_iter().for_each(|row| groups.add_to_all(row));
    let mut groups = groups.groups;
    groups.iter_mut().for_each(|group| group.rows.sort_by_key(|row| row.index));
    groups.sort_by_key(|group| group.rows.first().map(|row| row.index));
    groups
}

/// Groups while rows are added.
#[derive(Default)]
struct Groups<'a> {
    groups: Vec<Group<'a>>,
    /// Indices of groups by their values, then by the measured thing.
    indices: BTreeMap<Vec<&'a str>, BTreeMap<Measured<'a>, usize>>,
}

impl<'a> Groups<'a> {
    fn add(&mut self, row: &'a Row, measured: Measured<'a>) {
        let next = self.groups.len();
        let index = *self.indices.entry(values(row)).or_default().entry(measured).or_insert(next);
        if index == next {
            let coordinates = coordinates(row).collect();
            self.groups.push(Group { coordinates, measured, rows: Vec::new() });
        }
        self.groups[index].rows.push(row);
    }

    /// Adds a row without results to all groups of its values, or to a group of its own if there are none.
    fn add_to_all(&mut self, row: &'a Row) {
        match self.indices.get(&values(row)) {
            Some(indices) => indices.values().for_each(|index| self.groups[*index].rows.push(row)),
            None => self.add(row, Measured::by(row, false)),
        }
    }
}

fn coordinates(row: &Row) -> impl Iterator<Item = &Coordinate> {
    row.coordinates.iter().filter(|coordinate| coordinate.key != SEED)
}

fn values(row: &Row) -> Vec<&str> {
    coordinates(row).map(|coordinate| coordinate.value.as_str()).collect()
}

/// Returns true if a run has results of several algorithms for one thing, because the rack file lists algorithms.
fn have_lists_of_algorithms(rows: &[Row]) -> bool {
    let mut seen = BTreeSet::new();
    !rows.iter().all(|row| seen.insert((row.index, Measured::by(row, false))))
}

/// Measured thing of a row, beside the values of the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Measured<'a> {
    /// Collective, operation or job.
    pub(super) what: &'a str,
    /// Pair of ranks of an operation.
    pub(super) pair: &'a str,
    /// Algorithm of a list. The one that `auto` has chosen may differ between seeds and is left out.
    pub(super) algorithm: &'a str,
    pub(super) size_bytes: Option<u64>,
}

impl<'a> Measured<'a> {
    fn by(row: &'a Row, has_algorithm: bool) -> Self {
        let algorithm = if has_algorithm { row.algorithm.as_str() } else { "" };
        Self { what: &row.what, pair: &row.pair, algorithm, size_bytes: row.size_bytes }
    }

    /// Returns the name of the collective, operation or job, with the algorithm of a list.
    pub(super) fn name(&self) -> String {
        let parts = [self.what, self.algorithm].into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(" ")
    }
}

/// Returns the summary as text.
pub(super) fn text(keys: &[String], points: u64, rows: &[Row]) -> String {
    let mut text = counts(points, rows);
    for row in failed(rows).take(LISTED_MAX) {
        text += &format!("\n{}", described(row));
    }
    let more = failed(rows).count().saturating_sub(LISTED_MAX);
    if more > 0 {
        text += &format!("\nand {more} more, in results.csv");
    }
    let clean: Vec<_> = first_of_runs(rows, |row| row.is_pass() && row.has_clean_error).collect();
    if let Some(first) = clean.first() {
        let count = units::count(clean.len() as u64);
        text += &format!(
            "\nruns with an error that the fault script permits: {count}, the first: {}",
            described(first)
        );
    }
    text + "\n\n" + &table(keys, rows)
}

/// Returns the first row of each run that has such rows.
fn first_of_runs(rows: &[Row], is_meant: impl Fn(&Row) -> bool) -> impl Iterator<Item = &Row> {
    let mut last = None;
    rows.iter().filter(move |row| is_meant(row) && last.replace(row.index) != Some(row.index))
}

/// Returns the first row of each run that did not pass.
pub(super) fn failed(rows: &[Row]) -> impl Iterator<Item = &Row> {
    first_of_runs(rows, |row| !row.is_pass())
}

pub(super) fn counts(points: u64, rows: &[Row]) -> String {
    let mut by_verdict: BTreeMap<&str, u64> = BTreeMap::new();
    first_of_runs(rows, |_| true).for_each(|row| *by_verdict.entry(&row.verdict).or_default() += 1);
    let counts: Vec<_> =
        by_verdict.iter().map(|(verdict, count)| format!("{} {verdict}", units::count(*count))).collect();
    format!("{} runs: {}", units::count(points), counts.join(", "))
}

pub(super) fn described(row: &Row) -> String {
    let values: Vec<_> = row.coordinates.iter().map(|one| format!("{}={}", one.key, one.value)).collect();
    let reason = if row.reason.is_empty() { String::new() } else { format!(": {}", row.reason) };
    format!("point {} ({}): {}{reason}", row.index, values.join(" "), row.verdict)
}

fn table(keys: &[String], rows: &[Row]) -> String {
    let groups = groups(rows);
    // Titles of columns are static, so the names of the axes are the first row.
    let mut columns = vec![Column::Left(""); keys.iter().filter(|key| *key != SEED).count()];
    columns.extend(["what", "between"].map(Column::Left));
    columns.extend(
        ["size (B)", "runs", "pass", "time (us)", "least", "most", "busbw (GB/s)", "p99 (us)"]
            .map(Column::Right),
    );
    let mut table = Table::new(&columns);
    let blanks = std::iter::repeat_n(String::new(), 10);
    table.row(keys.iter().filter(|key| *key != SEED).cloned().chain(blanks));
    for group in &groups {
        let Measured { pair, size_bytes, .. } = group.measured;
        let time = group.spread(|row| row.time_or_elapsed_ns());
        let us = |ns: Option<f64>| ns.map_or_else(dash, |ns| format!("{:.2}", ns / 1000.0));
        let gbps = group.spread(|row| row.bus_gbps.or(row.algorithm_gbps));
        let values = group.coordinates.iter().map(|coordinate| coordinate.value.clone());
        let measured = [
            group.measured.name(),
            pair.to_owned(),
            size_bytes.map_or_else(dash, |bytes| bytes.to_string()),
            group.rows.len().to_string(),
            group.rows.iter().filter(|row| row.is_pass()).count().to_string(),
            us(time.map(|time| time.mean)),
            us(time.map(|time| time.least)),
            us(time.map(|time| time.most)),
            gbps.map_or_else(dash, |gbps| format!("{:.4}", gbps.mean)),
            us(group.spread(|row| row.time_p99_ns).map(|time| time.mean)),
        ];
        table.row(values.chain(measured));
    }
    table.render()
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(index: u64, loss: &str, seed: &str, time_ns: f64) -> Row {
        let coordinate = |key: &str, value: &str| Coordinate { key: key.to_owned(), value: value.to_owned() };
        Row {
            index,
            coordinates: vec![coordinate("link.loss", loss), coordinate(SEED, seed)],
            verdict: "pass".to_owned(),
            time_ns: Some(time_ns),
            ..Row::default()
        }
    }

    #[test]
    fn runs_that_differ_in_their_seed_are_one_group() {
        let rows = [row(0, "0", "1", 10.0), row(1, "0", "2", 30.0), row(2, "1%", "1", 90.0)];
        let groups = groups(&rows);
        assert_eq!(groups.len(), 2);
        let spread = groups[0].spread(|row| row.time_ns);
        assert_eq!(spread, Some(Spread { least: 10.0, mean: 20.0, most: 30.0 }));
    }

    #[test]
    fn a_run_that_broke_off_has_no_time() {
        let note = "a clean error: n1: killed";
        let broken = Row {
            time_ns: None,
            elapsed_ns: Some(9_000),
            has_clean_error: true,
            reason: note.to_owned(),
            ..row(1, "0", "2", 0.0)
        };
        let rows = [row(0, "0", "1", 4_000.0), broken];
        let groups = groups(&rows);
        assert_eq!((groups.len(), groups[0].rows.len()), (1, 2));
        let text = text(&["link.loss".to_owned(), SEED.to_owned()], 2, &rows);
        assert!(text.contains("4.00") && !text.contains("9.00"), "{text}");
        assert!(text.contains("permits: 1, the first: point 1") && text.contains(note), "{text}");
    }

    #[test]
    fn each_operation_of_a_run_is_a_row_of_its_own() {
        let operation = |index, seed: &str, what: &str, time_ns| Row {
            what: what.to_owned(),
            pair: "n0->n1".to_owned(),
            size_bytes: Some(64),
            ..row(index, "0", seed, time_ns)
        };
        let died = |index, seed: &str| Row {
            verdict: "died".to_owned(),
            time_ns: None,
            ..row(index, "0", seed, 0.0)
        };
        let rows = [
            died(0, "1"),
            operation(1, "2", "store", 4000.0),
            operation(1, "2", "send", 2000.0),
            operation(2, "3", "store", 6000.0),
            operation(2, "3", "send", 2000.0),
        ];
        let text = text(&["link.loss".to_owned(), SEED.to_owned()], 3, &rows);
        let cells: Vec<Vec<_>> = text.lines().map(|line| line.split_whitespace().take(7).collect()).collect();
        for row in [
            ["0", "store", "n0->n1", "64", "3", "2", "5.00"],
            ["0", "send", "n0->n1", "64", "3", "2", "2.00"],
        ] {
            assert!(cells.iter().any(|cells| cells[..] == row), "{row:?} in {text}");
        }
        assert_eq!(groups(&rows).len(), 2, "a run that died counts in both");
    }

    #[test]
    fn algorithms_of_a_list_are_rows_and_those_that_auto_has_chosen_are_not() {
        let algorithm =
            |index, seed: &str, name: &str| Row { algorithm: name.to_owned(), ..row(index, "0", seed, 10.0) };
        let listed = [algorithm(0, "1", "ring"), algorithm(0, "1", "two-shot"), algorithm(1, "2", "ring")];
        let names = |rows: &[Row]| groups(rows).iter().map(|group| group.measured.name()).collect::<Vec<_>>();
        assert_eq!(names(&listed), ["ring", "two-shot"]);
        assert_eq!(names(&[algorithm(0, "1", "ring"), algorithm(1, "2", "two-shot")]), [""]);
    }

    #[test]
    fn runs_that_did_not_pass_are_listed_and_do_not_count_in_means() {
        let died = Row { verdict: "died".to_owned(), reason: "signal 9".to_owned(), ..row(1, "0", "2", 1e9) };
        let rows = [row(0, "0", "1", 10.0), died];
        let text = text(&["link.loss".to_owned(), SEED.to_owned()], 2, &rows);
        assert!(
            text.starts_with("2 runs: 1 died, 1 pass\npoint 1 (link.loss=0 seed=2): died: signal 9\n"),
            "{text}"
        );
        assert_eq!(groups(&rows)[0].spread(|row| row.time_ns).map(|spread| spread.most), Some(10.0));
    }
}
