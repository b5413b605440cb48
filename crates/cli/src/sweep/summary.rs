//! Summary of a sweep: counts, runs that did not pass, and a table in which runs that differ in their seed only are one row.

use std::collections::BTreeMap;

use super::grid::{Coordinate, SEED};
use super::rows::Row;
use crate::present::table::{Column, Table};
use crate::present::units;

/// Maximum number of runs that are listed because they did not pass.
const LISTED_MAX: usize = 20;

/// Rows of one combination of values, with all seeds.
#[derive(Debug, Default)]
pub(super) struct Group<'a> {
    /// Values of all axes but the seed.
    pub(super) coordinates: Vec<&'a Coordinate>,
    /// Rows, in the order of the points.
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
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut indices: BTreeMap<(Vec<&str>, Measured<'_>), usize> = BTreeMap::new();
    for row in rows {
        let coordinates: Vec<_> =
            row.coordinates.iter().filter(|coordinate| coordinate.key != SEED).collect();
        let values = coordinates.iter().map(|coordinate| coordinate.value.as_str()).collect();
        let next = groups.len();
        let index = *indices.entry((values, Measured::by(row))).or_insert(next);
        if index == next {
            groups.push(Group { coordinates, rows: Vec::new() });
        }
        groups[index].rows.push(row);
    }
    groups
}

/// Measured thing of a row, beside the values of the axes. The algorithm that `auto` has chosen may differ between seeds and is none.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Measured<'a> {
    pair: &'a str,
    size_bytes: Option<u64>,
}

impl<'a> Measured<'a> {
    fn by(row: &'a Row) -> Self {
        Self { pair: &row.pair, size_bytes: row.size_bytes }
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
    text + "\n\n" + &table(keys, rows)
}

/// Returns the first row of each run that did not pass.
pub(super) fn failed(rows: &[Row]) -> impl Iterator<Item = &Row> {
    let mut last = None;
    rows.iter().filter(move |row| !row.is_pass() && last.replace(row.index) != Some(row.index))
}

pub(super) fn counts(points: u64, rows: &[Row]) -> String {
    let mut by_verdict: BTreeMap<&str, u64> = BTreeMap::new();
    let mut last = None;
    for row in rows {
        if last.replace(row.index) != Some(row.index) {
            *by_verdict.entry(&row.verdict).or_default() += 1;
        }
    }
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
    columns.push(Column::Left("between"));
    columns.extend(
        ["size (B)", "runs", "pass", "time (us)", "least", "most", "busbw (GB/s)", "p99 (us)"]
            .map(Column::Right),
    );
    let mut table = Table::new(&columns);
    let blanks = std::iter::repeat_n(String::new(), 9);
    table.row(keys.iter().filter(|key| *key != SEED).cloned().chain(blanks));
    for group in &groups {
        let first = group.rows.first();
        let time = group.spread(|row| row.time_ns.or(row.elapsed_ns.map(|ns| ns as f64)));
        let us = |ns: Option<f64>| ns.map_or_else(dash, |ns| format!("{:.2}", ns / 1000.0));
        let gbps = group.spread(|row| row.bus_gbps.or(row.algorithm_gbps));
        let size = first.and_then(|row| row.size_bytes);
        let values = group.coordinates.iter().map(|coordinate| coordinate.value.clone());
        let measured = [
            first.map(|row| row.pair.clone()).unwrap_or_default(),
            size.map_or_else(dash, |bytes| bytes.to_string()),
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
