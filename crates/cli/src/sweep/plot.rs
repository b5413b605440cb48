//! Figure of a sweep: the first axis with several values from left to right, and a line for each combination of the others.
//!
//! Values stand at equal distances, as they were written: a loss of 0 beside one of 1e-6 has no place on any scale. The height is the mean
//! over all seeds, and bars reach from the least to the greatest value.

use rackloom_drawing::chart::{Across, Axis, Chart, Meaning, Point, Series};

use super::grid::Coordinate;
use super::rows::Row;
use super::summary::{Group, Spread, groups};

/// Maximum number of lines. More would leave the figure.
const SERIES_MAX: usize = 16;

/// Quantity of the vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Height {
    BusBandwidth,
    Time,
}

impl Height {
    fn of(self, group: &Group<'_>) -> Option<Spread> {
        match self {
            Self::BusBandwidth => group.spread(|row| row.bus_gbps),
            Self::Time => {
                group.spread(|row| row.time_ns.or(row.elapsed_ns.map(|ns| ns as f64)).map(|ns| ns / 1000.0))
            }
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::BusBandwidth => "bus bandwidth (GB/s)",
            Self::Time => "time (us)",
        }
    }
}

/// Returns the figure.
pub(super) fn chart(rows: &[Row]) -> Chart {
    let groups = groups(rows);
    let height =
        if rows.iter().any(|row| row.bus_gbps.is_some()) { Height::BusBandwidth } else { Height::Time };
    let key = horizontal(&groups);
    let mut names: Vec<String> = Vec::new();
    let mut series: Vec<Series> = Vec::new();
    let mut is_cut = false;
    for group in &groups {
        let Some(value) = height.of(group) else { continue };
        let (name, line) = (place(group, &key), line_of(group, &key));
        let at = position(&mut names, &name);
        let index = series.iter().position(|one| one.name == line);
        let bar = (value.least < value.most).then_some((value.least, value.most));
        let point = Point { bar, ..Point::new(at, value.mean) };
        match index {
            Some(index) => series[index].points.push(point),
            None if series.len() == SERIES_MAX => is_cut = true,
            None => series.push(Series { name: line, points: vec![point], line: Vec::new() }),
        }
    }
    for one in &mut series {
        one.points.sort_by(|point, other| point.x.total_cmp(&other.x));
        one.line = one.points.iter().map(|point| (point.x, point.y)).collect();
    }
    let note = if is_cut { "the first lines; results.csv has all" } else { "" };
    Chart {
        title: "rackloom sweep".to_owned(),
        note: note.to_owned(),
        x: Across::Categories { label: key, names, is_ordered: true },
        y: Axis::linear(height.label()),
        series,
        meanings: vec![
            Meaning::Point("mean over all seeds".to_owned()),
            Meaning::Bar("least and greatest of all seeds".to_owned()),
        ],
    }
}

/// Returns the name of the horizontal axis: the first one with several values, or the size.
fn horizontal(groups: &[Group<'_>]) -> String {
    let Some(first) = groups.first() else { return SIZE.to_owned() };
    let varies = |index: usize| {
        groups.iter().any(|group| {
            let value = |group: &Group<'_>| group.coordinates.get(index).map(|one| one.value.clone());
            value(group) != value(first)
        })
    };
    let index = (0..first.coordinates.len()).find(|index| varies(*index));
    index
        .and_then(|index| first.coordinates.get(index))
        .map_or_else(|| SIZE.to_owned(), |one| one.key.clone())
}

/// Name of the axis of sizes, in bytes.
const SIZE: &str = "size (B)";

/// Returns the value of the horizontal axis.
fn place(group: &Group<'_>, key: &str) -> String {
    let coordinate = group.coordinates.iter().find(|coordinate| coordinate.key == key);
    coordinate.map_or_else(|| size_of(group), |coordinate| coordinate.value.clone())
}

fn size_of(group: &Group<'_>) -> String {
    let size = group.rows.first().and_then(|row| row.size_bytes);
    size.map_or_else(|| "run".to_owned(), |bytes| bytes.to_string())
}

/// Returns the name of the line: all other values.
fn line_of(group: &Group<'_>, key: &str) -> String {
    let others = group.coordinates.iter().filter(|coordinate| coordinate.key != key);
    let mut parts: Vec<String> = others.map(|Coordinate { key, value }| format!("{key} {value}")).collect();
    let first = group.rows.first();
    parts.extend(first.map(|row| row.pair.clone()).filter(|pair| !pair.is_empty()));
    if key != SIZE {
        parts.extend(first.and_then(|row| row.size_bytes).map(|bytes| format!("{bytes} B")));
    }
    parts.join(", ")
}

/// Returns the position of a name on the axis, counted from 1. A new name is added.
fn position(names: &mut Vec<String>, name: &str) -> f64 {
    let found = names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    (found + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(rows: &[Row]) -> String {
        chart(rows).svg()
    }

    fn row(planes: &str, algorithm: &str, gbps: f64) -> Row {
        let coordinate = |key: &str, value: &str| Coordinate { key: key.to_owned(), value: value.to_owned() };
        Row {
            coordinates: vec![coordinate("planes", planes), coordinate("algorithm", algorithm)],
            verdict: "pass".to_owned(),
            bus_gbps: Some(gbps),
            ..Row::default()
        }
    }

    #[test]
    fn each_other_value_has_a_line() {
        let rows = [row("1", "ring", 1.0), row("1", "two-shot", 2.0), row("2", "ring", 3.0)];
        let svg = figure(&rows);
        assert_eq!(svg.matches("<polyline").count(), 2, "{svg}");
        assert_eq!(svg.matches("</title></path>").count(), 3, "a mark for each value");
        assert!(!svg.contains("least and greatest"), "one seed has no spread");
        for text in [">planes<", ">1<", ">2<", "algorithm ring", "algorithm two-shot", "bus bandwidth"] {
            assert!(svg.contains(text), "{text} in {svg}");
        }
    }

    #[test]
    fn several_seeds_are_a_mean_with_a_bar() {
        let svg = figure(&[row("1", "ring", 1.0), row("1", "ring", 4.0), row("2", "ring", 3.0)]);
        assert!(svg.contains("algorithm ring: 1: 2.5 GB/s (1 GB/s to 4 GB/s)"), "{svg}");
        assert!(svg.contains("least and greatest of"), "{svg}");
    }

    #[test]
    fn a_sweep_without_results_has_an_empty_figure() {
        assert!(figure(&[]).ends_with("</svg>\n"));
    }
}
