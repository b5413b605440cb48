//! Report for people.

use std::fmt::Write as _;

use rackloom_calibrate::Alternations;

use crate::output::report::{
    DistanceReport, MachineReport, ManifestReport, Overall, Report, RowReport, RunConditions, Side,
};
use crate::output::table::{Column, Table};
use rackloom_runtime::units;

/// Formats the whole report.
pub(crate) fn table(report: &Report) -> String {
    let mut text = machine(&report.machine);
    if !report.facts.is_empty() {
        text = format!("{text}\n{}\n", facts(report));
    }
    let _ = write!(text, "\n{}\n", rows(&report.rows));
    for (row, distance) in report.rows.iter().filter_map(|row| Some((row.name, row.distance.as_ref()?))) {
        let _ = write!(text, "\n{row}: {}", apart(distance));
    }
    if report.rows.iter().any(|row| row.distance.is_some()) {
        text.push('\n');
    }
    for row in &report.rows {
        if let Some(reason) = &row.reason {
            let _ = write!(text, "\n{}: {reason}", row.name);
        }
    }
    if report.rows.iter().any(|row| row.reason.is_some()) {
        text.push('\n');
    }
    let _ = write!(text, "\n{}", closing(report));
    text
}

/// Heading of the table of current figures in `docs/measuring.md`.
pub(crate) const MARKDOWN_HEADING: &str = "| row | raw loop | rackloom | ratio | spread | verdict |";

/// Formats the rows as the table of current figures, below a line that names code and machine.
pub(crate) fn markdown(report: &Report) -> String {
    let MachineReport { processors, model, kernel, .. } = &report.machine;
    let [before, after] = loads(&report.machine);
    let ManifestReport { version, commit, .. } = &report.manifest;
    let mut text = format!(
        "Version {version}, commit {commit}, {processors} processors of {model}, Linux {kernel}, load {before} to {after}\
         {}.\n\n{MARKDOWN_HEADING}\n|---|---|---|---|---|---|",
        report.conditions.reservation()
    );
    for row in &report.rows {
        let median = |side: &Option<Side>| {
            side.as_ref().map_or_else(|| "-".to_owned(), |side| figure(side.unit, side.median))
        };
        let [ratio, spread] = match (&row.ratio, &row.ours) {
            (Some(ratio), _) => {
                [format!("{:.3}", ratio.median), format!("{:.3} to {:.3}", ratio.min, ratio.max)]
            }
            (None, Some(ours)) => {
                let [min, max] = [ours.min, ours.max].map(|value| figure(ours.unit, value));
                ["-".to_owned(), format!("{min} to {max}")]
            }
            (None, None) => ["-"; 2].map(str::to_owned),
        };
        let (raw, ours) = (median(&row.raw), median(&row.ours));
        let _ = write!(text, "\n| `{}` | {raw} | {ours} | {ratio} | {spread} | {} |", row.name, row.verdict);
    }
    text
}

/// Formats the load average before and after the measurement.
fn loads(machine: &MachineReport) -> [String; 2] {
    machine.load.map(|load| load.map_or_else(|| "?".to_owned(), |load| format!("{load:.1}")))
}

/// Formats the distance of the processors in the takes that count.
fn apart(distance: &DistanceReport) -> String {
    let left_out = match distance.left_out {
        0 => String::new(),
        1 => "; an alternation that found it otherwise is left out".to_owned(),
        count => format!("; {count} alternations that found it otherwise are left out"),
    };
    let line = figure("ns", distance.line_ns_median);
    format!("a cache line took {line} there and back between the two processors{left_out}")
}

fn machine(machine: &MachineReport) -> String {
    let MachineReport { processors, model, kernel, is_guest, .. } = machine;
    let guest = if *is_guest { " · a guest of a hypervisor" } else { "" };
    let load = loads(machine);
    format!("{processors} processors · {model} · Linux {kernel}{guest} · load {} to {}\n", load[0], load[1])
}

fn facts(report: &Report) -> String {
    let columns =
        [Column::Left("machine"), Column::Right("median"), Column::Right("min"), Column::Right("max")];
    let mut table = Table::new(&columns);
    for fact in &report.facts {
        let side = &fact.side;
        let figures = [side.median, side.min, side.max].map(|value| figure(side.unit, value));
        table.row([side.what.to_owned()].into_iter().chain(figures));
    }
    table.render()
}

fn rows(rows: &[RowReport]) -> String {
    let mut table = Table::new(&[
        Column::Left("row"),
        Column::Right("raw loop"),
        Column::Right("ours"),
        Column::Right("ratio"),
        Column::Right("min"),
        Column::Right("max"),
        Column::Right("floor"),
        Column::Right("good"),
        Column::Left("verdict"),
    ]);
    for row in rows {
        let median = |side: &Option<Side>| {
            side.as_ref().map_or_else(|| "-".to_owned(), |side| figure(side.unit, side.median))
        };
        let ratios = row.ratio.as_ref().map(|ratio| [ratio.median, ratio.min, ratio.max]);
        let [ratio, min, max] = match (ratios, &row.ours) {
            (Some(ratios), _) => ratios.map(|ratio| format!("{ratio:.3}")),
            (None, Some(ours)) => ["-".to_owned(), figure(ours.unit, ours.min), figure(ours.unit, ours.max)],
            (None, None) => ["-"; 3].map(str::to_owned),
        };
        let unit = row.ours.as_ref().filter(|_| row.ratio.is_none()).map(|ours| ours.unit);
        let goal = |value: f64| unit.map_or_else(|| format!("{value:.2}"), |unit| figure(unit, value));
        let sign = if row.goal == "at-least" { ">= " } else { "<= " };
        table.row([
            row.name.to_owned(),
            median(&row.raw),
            median(&row.ours),
            ratio,
            min,
            max,
            format!("{sign}{}", goal(row.floor)),
            format!("{sign}{}", goal(row.good)),
            row.verdict.to_owned(),
        ]);
    }
    table.render()
}

/// Formats a finished row as one line.
pub(crate) fn line(row: &RowReport) -> String {
    let mut line = format!("{:18}", row.name);
    for (name, side) in [("raw", &row.raw), ("ours", &row.ours)] {
        if let Some(side) = side {
            let _ = write!(line, " {name} {:>10}", figure(side.unit, side.median));
        }
    }
    if let Some(ratio) = &row.ratio {
        let _ = write!(line, " ratio {:.3}", ratio.median);
    }
    format!("{line} {}", row.verdict)
}

fn closing(report: &Report) -> String {
    let verdict = match report.verdict {
        Overall::Pass => "pass",
        Overall::Fail => "fail: a row lies below its floor, or could not be taken",
        Overall::NoVerdict => "none: see above, or nothing could be measured",
    };
    let RunConditions { rounds, interrupted, .. } = report.conditions;
    let quick = report.conditions.reservation();
    let interrupted = if interrupted { "\ninterrupted: rows without figures were not measured" } else { "" };
    let least = Alternations::ROUNDS_MIN.min(rounds);
    format!(
        "medians of {rounds} alternations (at least {least} where they take long); ratio is ours over the raw loop's, min and max of single alternations{quick}{interrupted}\nverdict: {verdict}"
    )
}

/// Formats a number with its unit.
fn figure(unit: &str, value: f64) -> String {
    match unit {
        "ns" if value < 1000.0 => format!("{value:.1} ns"),
        "ns" => units::time(value.round() as u64),
        "per_s" if value >= 1e9 => format!("{:.2} G/s", value / 1e9),
        "per_s" if value >= 1e6 => format!("{:.2} M/s", value / 1e6),
        "per_s" if value >= 1e3 => format!("{:.1} k/s", value / 1e3),
        "per_s" => format!("{value:.1} /s"),
        "bytes" => units::bytes(value.round() as u64),
        "percent" => format!("{value:.2} %"),
        _ => format!("{value:.2} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_the_distance_of_the_processors() {
        let apart = |left_out| apart(&DistanceReport { line_ns: vec![61.0], line_ns_median: 61.0, left_out });
        let line = "a cache line took 61.0 ns there and back between the two processors";
        assert_eq!(apart(0), line);
        assert_eq!(apart(1), format!("{line}; an alternation that found it otherwise is left out"));
        assert_eq!(apart(3), format!("{line}; 3 alternations that found it otherwise are left out"));
    }

    #[test]
    fn figures_have_their_units() {
        let shown = [
            ("ns", 55.25),
            ("ns", 1500.0),
            ("per_s", 8.43e9),
            ("per_s", 20.9e6),
            ("per_s", 4500.0),
            ("per_s", 12.0),
        ];
        let shown = shown.map(|(unit, value)| figure(unit, value));
        assert_eq!(shown, ["55.2 ns", "1.50 us", "8.43 G/s", "20.90 M/s", "4.5 k/s", "12.0 /s"]);
    }
}
