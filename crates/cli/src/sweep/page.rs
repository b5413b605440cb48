//! Page of a sweep: counts, the figure, a row for each combination of values, and the runs.

use rackloom_page::{Block, Cell, Column, Figure, Page, Row as Cells, Section, Table, Tone, Value, text};

use super::grid::SEED;
use super::plot;
use super::rows::Row;
use super::summary::{Group, counts, described, failed, groups};
use crate::arguments::command_line;

/// Rows of a table, and lines of a list, at most.
const ROWS_MAX: usize = 1000;
const LINES_MAX: usize = 50;

/// Returns the page of a sweep over these keys.
pub(super) fn page(keys: &[String], points: u64, rows: &[Row]) -> Page {
    let is_pass = rows.iter().all(Row::is_pass);
    let verdict = if is_pass {
        Cell::text("verdict: pass").with_tone(Tone::Good)
    } else {
        Cell::text("verdict: fail").with_tone(Tone::Bad)
    };
    let mut failures: Vec<String> = failed(rows).take(LINES_MAX).map(described).collect();
    let more = failed(rows).count().saturating_sub(LINES_MAX);
    failures.extend((more > 0).then(|| format!("and {more} more, in results.csv")));
    let sections = vec![
        Section::new("Result", vec![Block::Text(counts(points, rows)), Block::List(failures)]),
        Section::new("Figure", vec![Block::figure(Figure::Panels(plot::figure(rows)))]),
        Section::new("Combinations", vec![Block::Table(combinations(keys, rows))]),
        Section::new("Runs", vec![Block::Table(runs(keys, rows))]),
        Section::new(
            "Repeat this sweep",
            vec![
                Block::Command(command_line()),
                Block::Values(vec![
                    Value::new("version", env!("CARGO_PKG_VERSION")),
                    Value::new("commit", rackloom_runtime::outcome::meta::COMMIT),
                ]),
            ],
        ),
    ];
    Page {
        title: "Sweep".to_owned(),
        subtitle: format!(
            "Runs in virtual time over {}",
            if keys.is_empty() { "one point".to_owned() } else { keys.join(", ") }
        ),
        verdict: Some(verdict),
        sections,
    }
}

fn microseconds(ns: Option<f64>) -> Cell {
    ns.map_or_else(Cell::absent, |ns| Cell::number(text::time(ns), ns))
}

fn time_of(row: &Row) -> Option<f64> {
    row.time_or_elapsed_ns()
}

/// Returns a value of an axis. Numbers are sorted as numbers.
fn value(text: &str) -> Cell {
    Cell { key: text.parse().ok(), ..Cell::text(text) }
}

fn size(bytes: Option<u64>) -> Cell {
    bytes.map_or_else(Cell::absent, text::bytes_cell)
}

/// Returns a row for runs that differ in their seeds only.
fn combinations(keys: &[String], rows: &[Row]) -> Table {
    let columns =
        keys.iter().filter(|key| *key != SEED).map(Column::text).chain(["what", "between"].map(Column::text));
    let numbers = ["size", "runs", "passed", "mean time", "least", "greatest", "p99", "bus bandwidth (GB/s)"];
    let mut table = Table::new(
        "Combinations of values, over all seeds",
        columns.chain(numbers.map(Column::number)).collect(),
    );
    for group in &groups(rows) {
        table.rows.push(combination(group));
    }
    table.without_empty_columns().bounded(ROWS_MAX, "the first ones of the grid")
}

fn combination(group: &Group<'_>) -> Cells {
    let time = group.spread(time_of);
    let passed = group.rows.iter().filter(|row| row.is_pass()).count() as u64;
    let mut cells: Cells = group.coordinates.iter().map(|coordinate| value(&coordinate.value)).collect();
    cells.push(group.measured.name().into());
    cells.push(group.measured.pair.into());
    cells.push(size(group.measured.size_bytes));
    cells.push(text::count_cell(group.rows.len() as u64));
    let tone = if passed == group.rows.len() as u64 { Tone::Plain } else { Tone::Bad };
    cells.push(text::count_cell(passed).with_tone(tone));
    cells.push(microseconds(time.map(|time| time.mean)));
    cells.push(microseconds(time.map(|time| time.least)));
    cells.push(microseconds(time.map(|time| time.most)));
    cells.push(microseconds(group.spread(|row| row.time_p99_ns).map(|time| time.mean)));
    cells.push(text::decimal_cell(
        group.spread(|row| row.bus_gbps.or(row.algorithm_gbps)).map(|gbps| gbps.mean),
    ));
    cells
}

/// Returns a row for each result. Of too many, runs that did not pass are kept first.
fn runs(keys: &[String], rows: &[Row]) -> Table {
    let columns = [Column::number("point")].into_iter().chain(keys.iter().map(Column::text));
    let texts = ["verdict", "what", "between", "algorithm that ran"].map(Column::text);
    let numbers = ["size", "time", "bus bandwidth (GB/s)", "retransmitted", "dropped", "bytes on the wire"]
        .map(Column::number);
    let columns = columns.chain(texts).chain(numbers).chain([Column::text("reason")]).collect();
    let mut order: Vec<&Row> = rows.iter().collect();
    if rows.len() > ROWS_MAX {
        order.sort_by_key(|row| row.is_pass());
    }
    let mut table = Table::new("Runs", columns);
    table.rows = order.into_iter().take(ROWS_MAX).map(run).collect();
    if rows.len() > ROWS_MAX {
        table.note = format!(
            "{ROWS_MAX} of {} rows: runs that did not pass, then the first ones. results.csv has all of them.",
            rows.len()
        );
    }
    table.without_empty_columns()
}

fn run(row: &Row) -> Cells {
    let count = |count: Option<u64>| count.map_or_else(Cell::absent, text::count_cell);
    let tone = if row.is_pass() { Tone::Good } else { Tone::Bad };
    let mut cells: Cells = vec![text::count_cell(row.index)];
    cells.extend(row.coordinates.iter().map(|coordinate| value(&coordinate.value)));
    cells.push(Cell::text(row.verdict.as_str()).with_tone(tone));
    cells.extend([row.what.as_str(), row.pair.as_str(), row.algorithm.as_str()].map(Cell::from));
    cells.extend([
        size(row.size_bytes),
        microseconds(time_of(row)),
        text::decimal_cell(row.bus_gbps.or(row.algorithm_gbps)),
    ]);
    cells.extend([row.retransmitted, row.dropped].map(count));
    cells.push(size(row.bytes_on_wire));
    cells.push(row.reason.as_str().into());
    cells
}
