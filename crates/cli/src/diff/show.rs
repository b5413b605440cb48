//! Result of a comparison as a table, the most important rows first.

use rackloom_compare::{Comparison, Evidence, Judgement, Outcome, OverTime, Row, Section, Side};
use rackloom_plan::printable;

use crate::present::table::{Column, Table};
use crate::present::units;

/// Maximum number of rows of results that are printed.
const ROWS_MAX: usize = 60;
/// Maximum number of links whose rates over time are printed.
const LINKS_MAX: usize = 8;
/// Maximum number of texts in a cell.
const TEXTS_MAX: usize = 2;

/// Formats a comparison: configuration, results, counts, notes and the outcome.
pub(super) fn comparison(comparison: &Comparison) -> String {
    let shown: Vec<_> =
        comparison.by_importance().into_iter().filter(|row| row.judgement.is_difference()).collect();
    let (options, results): (Vec<_>, Vec<_>) =
        shown.into_iter().partition(|row| row.section == Section::Configuration);
    let omitted = results.len().saturating_sub(ROWS_MAX);
    let more = (omitted > 0).then(|| format!("{omitted} more rows; `--json` has all"));
    let parts = [
        (!options.is_empty()).then(|| table("configuration", &options)),
        (!results.is_empty()).then(|| table("result", &results[..results.len().min(ROWS_MAX)])),
        more,
        rates(comparison),
        Some(counts(comparison)),
        (!comparison.notes.is_empty()).then(|| notes(comparison)),
        Some(outcome(comparison)),
    ];
    parts.into_iter().flatten().map(|part| part.trim_end().to_owned()).collect::<Vec<_>>().join("\n\n")
}

fn table(title: &'static str, rows: &[&Row]) -> String {
    let mut table = Table::new(&[
        Column::Left(title),
        Column::Left("section"),
        Column::Right("before"),
        Column::Right("after"),
        Column::Right("change"),
        Column::Left("judgement"),
    ]);
    for row in rows {
        let change = row.change.map_or_else(|| "-".to_owned(), |change| format!("{:+.1} %", change * 100.0));
        table.row([
            row.name.clone(),
            row.section.name().to_owned(),
            side(row.before.as_ref(), &row.unit),
            side(row.after.as_ref(), &row.unit),
            change,
            judgement(row),
        ]);
    }
    table.render()
}

/// Formats the links whose rates differ the most; `None` if nothing differs beyond noise.
fn rates(comparison: &Comparison) -> Option<String> {
    let OverTime { interval_ns, links, left_out } = comparison.over_time.as_ref()?;
    if links.is_empty() || comparison.has_no_difference() {
        return None;
    }
    let mut table = Table::new(&[
        Column::Left("largest difference of a rate"),
        Column::Right("at"),
        Column::Right("before"),
        Column::Right("after"),
    ]);
    for link in links.iter().take(LINKS_MAX) {
        let [before, after] = [link.before, link.after].map(|rate| number(rate, "B/s"));
        table.row([link.link.clone(), units::time(link.at_ns), before, after]);
    }
    let more = left_out + links.len().saturating_sub(LINKS_MAX);
    let more = if more > 0 { format!("{more} more links differ; ") } else { String::new() };
    let interval = units::time(*interval_ns);
    Some(
        table.render() + &format!("\n{more}times count from the first operation, in intervals of {interval}"),
    )
}

/// Formats the values of one side: the median, and the range of several runs.
fn side(side: Option<&Side>, unit: &str) -> String {
    match side {
        None => "-".to_owned(),
        Some(Side::Number(spread)) if spread.least < spread.most => format!(
            "{} ({} to {})",
            number(spread.median, unit),
            number(spread.least, unit),
            number(spread.most, unit)
        ),
        Some(Side::Number(spread)) => number(spread.median, unit),
        Some(Side::Text(texts)) => {
            let names: Vec<_> = texts.texts.keys().take(TEXTS_MAX).cloned().collect();
            let more = texts.texts.len().saturating_sub(TEXTS_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            names.join(", ") + &more
        }
    }
}

fn number(value: f64, unit: &str) -> String {
    match unit {
        "ns" if value >= 0.0 => units::time(value.round() as u64),
        "B" if value >= 0.0 => units::bytes(value.round() as u64),
        "B/s" if value >= 0.0 => units::rate(value.round() as u64),
        "" if value.fract() == 0.0 && (0.0..1e15).contains(&value) => units::count(value as u64),
        "" => format!("{value:.4}"),
        unit => format!("{value:.3} {unit}"),
    }
}

fn judgement(row: &Row) -> String {
    let name = match row.judgement {
        Judgement::OnlyBefore => "only before",
        Judgement::OnlyAfter => "only after",
        other => other.name(),
    };
    let reason = match row.evidence {
        Some(Evidence::TooFewRuns) => ", too few runs to judge",
        Some(Evidence::DifferentClocks) => ", other clock",
        _ => "",
    };
    let over = if row.is_over_threshold { ", over the threshold" } else { "" };
    format!("{name}{reason}{over}")
}

fn counts(comparison: &Comparison) -> String {
    let sum = |count: fn(&rackloom_compare::SectionCounts) -> usize| {
        comparison.sections.iter().map(count).sum::<usize>()
    };
    let basis = &comparison.basis;
    let mut line = format!(
        "{} facts: {} equal, {} within noise, {} better, {} worse, {} changed, {} of one side; {} and {} runs",
        sum(|section| section.rows),
        sum(|section| section.equal),
        sum(|section| section.noise),
        sum(|section| section.better),
        sum(|section| section.worse),
        sum(|section| section.changed),
        sum(|section| section.one_sided),
        basis.runs_before,
        basis.runs_after,
    );
    let left_out = sum(|section| section.left_out);
    if left_out > 0 {
        line += &format!("; {left_out} rows of single links and members are left out");
    }
    line
}

fn notes(comparison: &Comparison) -> String {
    comparison.notes.iter().map(|note| format!("note: {}\n", printable(note))).collect()
}

fn outcome(comparison: &Comparison) -> String {
    match comparison.outcome {
        Outcome::Within if comparison.has_no_difference() => "nothing has changed".to_owned(),
        Outcome::Within => "nothing is worse by more than the threshold".to_owned(),
        Outcome::Over => {
            let over: usize = comparison.sections.iter().map(|section| section.over).sum();
            format!("worse by more than the threshold: {over}")
        }
        Outcome::CouldNotTell => {
            "something looks worse by more than the threshold, and there are too few runs to know".to_owned()
        }
    }
}
