//! The figure of an experiment: the closed form as a line, measurements as points with their spread.

use rackloom_drawing::chart::{Across, Chart, Meaning, Point, Series};

pub use crate::axes::{Axes, Axis};
use crate::experiment::{Experiment, Findings, Row, Verdict};

/// Number of x values at which a curve is computed.
const SAMPLES: u32 = 80;

/// Returns the figure of an experiment's findings as SVG text.
#[must_use]
pub fn figure(experiment: &Experiment, findings: &Findings) -> String {
    chart(experiment, findings).svg()
}

/// Returns the figure of an experiment's findings.
#[must_use]
pub fn chart(experiment: &Experiment, findings: &Findings) -> Chart {
    let drawn: Vec<&Row> = findings.rows.iter().filter(|row| row.is_drawn).collect();
    let mut names: Vec<&str> = Vec::new();
    drawn.iter().for_each(|row| {
        if !names.contains(&row.series.as_str()) {
            names.push(&row.series);
        }
    });
    let (x, series) = match experiment.axes.names {
        Some(kinds) => categories(experiment.axes.x.label, kinds, &drawn, &names),
        None => {
            let series = |name: &&str| {
                let rows: Vec<&Row> = drawn.iter().copied().filter(|row| row.series == *name).collect();
                let line = line(&rows, |at| (experiment.curve)(name, at));
                Series { name: (*name).to_owned(), line, points: points(&rows, |row| row.x) }
            };
            (Across::Values(experiment.axes.x.drawn()), names.iter().map(series).collect())
        }
    };
    Chart {
        title: experiment.name.to_owned(),
        note: experiment.question.to_owned(),
        x,
        y: experiment.axes.y.drawn(),
        series,
        meanings: meanings(&drawn),
    }
}

/// Returns an axis of kinds and the series over it. If no kind has two series, their names would repeat those of the kinds, so all rows
/// are one series.
fn categories(label: &str, kinds: &[&str], rows: &[&Row], names: &[&str]) -> (Across, Vec<Series>) {
    let is_row_each = kinds.is_empty() && rows.len() > names.len();
    // A kind that was not measured, such as one that the reduced set leaves out, has no place.
    let is_measured = |kind: usize| rows.iter().any(|row| row.x == (kind + 1) as f64);
    let measured: Vec<usize> = (0..kinds.len()).filter(|kind| is_measured(*kind)).collect();
    let kinds: Vec<String> = match (kinds, is_row_each) {
        ([], true) => rows.iter().map(|row| row.setting.clone()).collect(),
        ([], false) => names.iter().map(|name| (*name).to_owned()).collect(),
        (kinds, _) => measured.iter().map(|kind| kinds[*kind].to_owned()).collect(),
    };
    let position =
        |index: usize, row: &Row| match measured.iter().position(|kind| row.x == (*kind + 1) as f64) {
            _ if is_row_each => index as f64 + 1.0,
            Some(kind) => kind as f64 + 1.0,
            None => row.x,
        };
    let mut positions: Vec<f64> = rows.iter().enumerate().map(|(index, row)| position(index, row)).collect();
    positions.sort_by(f64::total_cmp);
    let is_apart = positions.windows(2).all(|pair| pair[0] < pair[1]);
    let of = |name: &str, is_of: &dyn Fn(&Row) -> bool| {
        let rows = || rows.iter().enumerate().filter(|(_, row)| is_of(row));
        Series {
            name: name.to_owned(),
            line: rows().map(|(index, row)| (position(index, row), row.expected)).collect(),
            points: rows().filter_map(|(index, row)| point(row, position(index, row))).collect(),
        }
    };
    let series = match is_apart {
        true => vec![of("", &|_| true)],
        false => names.iter().map(|name| of(name, &|row| row.series == *name)).collect(),
    };
    (Across::Categories { label: label.to_owned(), names: kinds, is_ordered: false }, series)
}

fn points(rows: &[&Row], position: impl Fn(&Row) -> f64) -> Vec<Point> {
    rows.iter().filter_map(|row| point(row, position(row))).collect()
}

fn point(row: &Row, x: f64) -> Option<Point> {
    let bar = row.spread.map(|spread| (spread.low, spread.high));
    Some(Point { x, y: row.measured?, bar, is_hollow: row.verdict != Verdict::Pass })
}

fn meanings(rows: &[&Row]) -> Vec<Meaning> {
    let spread = rows.iter().find_map(|row| row.spread);
    let bar = spread.map(|spread| Meaning::Bar(spread.of.to_owned()));
    let mut meanings = vec![Meaning::Line("closed form".to_owned()), Meaning::Point("measured".to_owned())];
    meanings.extend(bar);
    meanings.push(Meaning::Hollow("measured, does not hold".to_owned()));
    meanings
}

/// Returns the expected line: along the closed form if there is one, else from point to point.
fn line(rows: &[&Row], closed_form: impl Fn(f64) -> Option<f64>) -> Vec<(f64, f64)> {
    let mut line: Vec<(f64, f64)> = rows.iter().map(|row| (row.x, row.expected)).collect();
    line.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (Some((first, _)), Some((last, _))) = (line.first().copied(), line.last().copied()) else {
        return line;
    };
    // Equal factors: every axis along which a closed form bends is logarithmic.
    let sample = |number| first * (last / first).powf(f64::from(number) / f64::from(SAMPLES));
    let along = (0..=SAMPLES).map(sample).map(|at| Some((at, closed_form(at)?)));
    match along.collect::<Option<Vec<_>>>() {
        Some(curve) if first > 0.0 && last > first => curve,
        _ => line,
    }
}
