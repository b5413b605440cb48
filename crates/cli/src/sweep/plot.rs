//! Figure of a sweep: the first axis with several values from left to right, and a line for each combination of the others.
//!
//! Values that are numbers or quantities of one unit stand on an axis of numbers; other values are kinds beside each other, without lines
//! between them. The height is the mean over all seeds, and bars reach from the least to the greatest value. Lines that are too many for one
//! plot are divided among panels: a panel for each value of one or several other axes.

use std::collections::BTreeMap;

use rackloom_drawing::chart::{Across, Axis, Chart, Meaning, Panels, Point, ScaleKind, Series};
use rackloom_plan::units;

use super::grid::Coordinate;
use super::rows::Row;
use super::summary::{Group, Spread, groups};

const TITLE: &str = "rackloom sweep";
/// Maximum number of lines of a panel.
const LINES_MAX: usize = 16;
/// Maximum number of panels.
const PANELS_MAX: usize = 40;
/// Place of lines that are left out.
const REST: &str = "results.csv has all.";
/// Ratio of the greatest to the least value from which on an axis is logarithmic.
const WIDE: f64 = 8.0;

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
            Self::Time => group.spread(|row| row.time_or_elapsed_ns().map(|ns| ns / 1000.0)),
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::BusBandwidth => "bus bandwidth (GB/s)",
            Self::Time => "time (us)",
        }
    }
}

/// Values of a group over all seeds.
struct Mean {
    /// Horizontal value, as it was written.
    at: String,
    value: Spread,
    /// Name of the line in parts: the values of all other axes, and the measured thing. A part that does not exist is empty.
    line: Vec<String>,
}

/// Returns the figure.
pub(super) fn figure(rows: &[Row]) -> Panels {
    let groups = groups(rows);
    let height =
        if rows.iter().any(|row| row.bus_gbps.is_some()) { Height::BusBandwidth } else { Height::Time };
    let key = horizontal(&groups);
    let are_named = groups.iter().any(|group| group.measured.name() != groups[0].measured.name());
    let mean = |group: &Group<'_>| {
        let (at, line) = (place(group, &key), line_of(group, &key, are_named));
        Some(Mean { at, value: height.of(group)?, line })
    };
    let means: Vec<Mean> = groups.iter().filter_map(mean).collect();
    let lines = in_order(means.iter().map(|mean| &mean.line));
    let apart = parts_of_panels(&lines);
    let names = in_order(lines.iter().map(|line| joined(line, |part| !apart.contains(&part))));
    let positions = Positions::of(&key, &means);
    let chart = |title: String, means: &[&Mean]| Chart {
        title,
        note: String::new(),
        x: positions.across.clone(),
        y: Axis::linear(height.label()),
        series: series(&names, &apart, &positions, means),
        meanings: vec![
            Meaning::Point("mean over all seeds".to_owned()),
            Meaning::Bar("least and greatest of all seeds".to_owned()),
        ],
    };
    if apart.is_empty() {
        let means: Vec<&Mean> = means.iter().collect();
        return Panels::divided(chart(TITLE.to_owned(), &means), LINES_MAX, PANELS_MAX, REST);
    }
    let title = |line: &[String]| joined(line, |part| apart.contains(&part));
    let titles = in_order(lines.iter().map(|line| title(line)));
    let shown = &titles[..titles.len().min(PANELS_MAX)];
    let mut by_title: BTreeMap<String, Vec<&Mean>> = BTreeMap::new();
    means.iter().for_each(|mean| by_title.entry(title(&mean.line)).or_default().push(mean));
    let kept = lines.iter().filter(|line| shown.contains(&title(line))).count();
    let note = match shown.last() {
        Some(last) if shown.len() < titles.len() => format!(
            "The first {} of {} panels, to {last}: {kept} of {} lines. {REST}",
            shown.len(),
            titles.len(),
            lines.len()
        ),
        _ => format!("{} lines in {} panels.", lines.len(), titles.len()),
    };
    let panel = |title: &String| chart(title.clone(), by_title.get(title).map_or(&[], Vec::as_slice));
    Panels { title: TITLE.to_owned(), note, panels: shown.iter().map(panel).collect() }
}

/// Returns the different items, in the order of their first ones.
fn in_order<T: Ord + Clone>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = std::collections::BTreeSet::new();
    items.filter(|item| seen.insert(item.clone())).collect()
}

/// Returns the parts of a line's name that `is_wanted` selects by their index, as one text.
fn joined(line: &[String], is_wanted: impl Fn(usize) -> bool) -> String {
    let parts = line.iter().enumerate().filter(|(index, part)| is_wanted(*index) && !part.is_empty());
    parts.map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(", ")
}

/// Returns the parts of the lines' names by which lines are divided among panels. Empty if one panel is enough, or if panels would
/// have so few lines that they take more space than lines one after the other.
fn parts_of_panels(lines: &[&Vec<String>]) -> Vec<usize> {
    let longest = |apart: &[usize]| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        lines.iter().for_each(|line| {
            *counts.entry(joined(line, |part| apart.contains(&part))).or_default() += 1;
        });
        (counts.values().copied().max().unwrap_or(0), counts.len())
    };
    let mut apart: Vec<usize> = Vec::new();
    let mut most = lines.len();
    while most > LINES_MAX {
        let parts = 0..lines.first().map_or(0, |line| line.len());
        let tried = parts.filter(|part| !apart.contains(part)).map(|part| {
            let (most, panels) = longest(&[&apart[..], &[part]].concat());
            // As few panels as possible, if their lines are few enough; else as few lines as possible.
            (if most <= LINES_MAX { (0, panels) } else { (1, most) }, part, most)
        });
        let Some((_, part, left)) = tried.min() else { break };
        apart.push(part);
        most = left;
    }
    if most * 4 > LINES_MAX { apart } else { Vec::new() }
}

/// Returns a series for each name. Series without values keep the looks of the others equal in all panels.
fn series(names: &[String], apart: &[usize], positions: &Positions, means: &[&Mean]) -> Vec<Series> {
    let index: BTreeMap<&str, usize> =
        names.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    let mut series: Vec<Series> =
        names.iter().map(|name| Series { name: name.clone(), ..Series::default() }).collect();
    for mean in means {
        let name = joined(&mean.line, |part| !apart.contains(&part));
        let (Some(index), Some(at)) = (index.get(name.as_str()), positions.at.get(&mean.at)) else {
            continue;
        };
        let Spread { least, mean, most } = mean.value;
        let bar = (least < most).then_some((least, most));
        series[*index].points.push(Point { bar, ..Point::new(*at, mean) });
    }
    for one in &mut series {
        one.points.sort_by(|point, other| point.x.total_cmp(&other.x));
        if matches!(positions.across, Across::Values(_)) {
            one.line = one.points.iter().map(|point| (point.x, point.y)).collect();
        }
    }
    series
}

/// Horizontal axis, and the position of each of its values by the text of the value.
struct Positions {
    across: Across,
    at: BTreeMap<String, f64>,
}

impl Positions {
    fn of(key: &str, means: &[Mean]) -> Self {
        let texts = in_order(means.iter().map(|mean| mean.at.clone()));
        let quantities: Option<Vec<(f64, &str)>> = texts.iter().map(|text| quantity(text)).collect();
        if let Some((values, unit)) = quantities.and_then(|quantities| of_one_unit(&quantities)) {
            let label =
                if unit.is_empty() || key == SIZE { key.to_owned() } else { format!("{key} ({unit})") };
            let axis = Axis::new(&label, scale_of(&values));
            return Self { across: Across::Values(axis), at: texts.into_iter().zip(values).collect() };
        }
        let at = texts.iter().enumerate().map(|(index, text)| (text.clone(), (index + 1) as f64)).collect();
        Self { across: Across::Categories { label: key.to_owned(), names: texts, is_ordered: false }, at }
    }
}

/// Reads a number or a quantity, in its base unit.
fn quantity(text: &str) -> Option<(f64, &'static str)> {
    let whole = |value: Option<u64>, unit| value.map(|value| (value as f64, unit));
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number
        .or_else(|| units::probability(text))
        .map(|number| (number, ""))
        .or_else(|| whole(units::time_ns(text), "ns"))
        .or_else(|| whole(units::size_bytes(text), "B"))
        .or_else(|| whole(units::length_mm(text), "mm"))
        .or_else(|| whole(units::rate_bits_per_s(text), "bit/s"))
}

/// Returns the values and their unit, if there is one for all. Zero has any unit.
fn of_one_unit<'a>(quantities: &[(f64, &'a str)]) -> Option<(Vec<f64>, &'a str)> {
    let has_unit = |(value, unit): &&(f64, &str)| *value != 0.0 || !unit.is_empty();
    let (_, unit) = quantities.iter().find(has_unit).or_else(|| quantities.first())?;
    let is_one = quantities.iter().filter(has_unit).all(|(_, other)| other == unit);
    is_one.then(|| (quantities.iter().map(|(value, _)| *value).collect(), *unit))
}

/// Returns a logarithmic scale for values that are far apart, which begins with zero if that is one of them.
fn scale_of(values: &[f64]) -> ScaleKind {
    let positive = values.iter().copied().filter(|value| *value > 0.0);
    let (least, most) = (positive.clone().fold(f64::INFINITY, f64::min), positive.fold(0.0, f64::max));
    let is_wide = most >= least * WIDE && values.iter().all(|value| *value >= 0.0);
    if is_wide { ScaleKind::Logarithmic } else { ScaleKind::Linear }
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
    group.measured.size_bytes.map_or_else(|| "run".to_owned(), |bytes| bytes.to_string())
}

/// Returns the parts of the name of the line: all other values, and the measured thing if it is not the only one.
fn line_of(group: &Group<'_>, key: &str, is_named: bool) -> Vec<String> {
    let others = group.coordinates.iter().filter(|coordinate| coordinate.key != key);
    let mut parts: Vec<String> = others.map(|Coordinate { key, value }| format!("{key} {value}")).collect();
    let measured = group.measured;
    parts.push(if is_named { measured.name() } else { String::new() });
    parts.push(measured.pair.to_owned());
    let size = measured.size_bytes.filter(|_| key != SIZE);
    parts.push(size.map_or_else(String::new, |bytes| format!("{bytes} B")));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(rows: &[Row]) -> String {
        super::figure(rows).svg()
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
    fn operations_have_lines_of_their_own() {
        let operation = |planes: &str, what: &str| Row { what: what.to_owned(), ..row(planes, "ring", 1.0) };
        let one = [operation("1", "store"), operation("2", "store")];
        assert!(!figure(&one).contains("store"), "the only operation needs no name");
        let svg = figure(&[&one[..], &[operation("1", "send"), operation("2", "send")]].concat());
        assert_eq!(svg.matches("<polyline").count(), 2, "{svg}");
        assert!(svg.contains("algorithm ring, store") && svg.contains("algorithm ring, send"), "{svg}");
    }

    #[test]
    fn several_seeds_are_a_mean_with_a_bar() {
        let svg = figure(&[row("1", "ring", 1.0), row("1", "ring", 4.0), row("2", "ring", 3.0)]);
        assert!(svg.contains("algorithm ring: 1: 2.5 GB/s (1 GB/s to 4 GB/s)"), "{svg}");
        assert!(svg.contains("least and greatest of"), "{svg}");
    }

    fn grid(axes: &[(&str, &[&str])]) -> Vec<Row> {
        let mut rows = vec![Row { verdict: "pass".to_owned(), bus_gbps: Some(0.0), ..Row::default() }];
        for (key, values) in axes {
            let with = |row: &Row, value: &str| {
                let mut row = row.clone();
                row.coordinates.push(Coordinate { key: (*key).to_owned(), value: value.to_owned() });
                row
            };
            rows = rows.iter().flat_map(|row| values.iter().map(move |value| with(row, value))).collect();
        }
        for (number, row) in rows.iter_mut().enumerate() {
            (row.index, row.bus_gbps) = (number as u64, Some(number as f64));
        }
        rows
    }

    #[test]
    fn every_line_of_a_large_grid_is_drawn_in_a_panel() {
        let rows = grid(&[
            ("link.delay", &["100ns", "500ns", "2us"]),
            ("link.rate", &["50Gbit/s", "100Gbit/s", "400Gbit/s"]),
            ("algorithm", &["ring", "two-shot", "halving-doubling"]),
            ("window", &["1", "2", "3"]),
        ]);
        let panels = super::figure(&rows);
        let titles: Vec<&str> = panels.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["link.rate 50Gbit/s", "link.rate 100Gbit/s", "link.rate 400Gbit/s"]);
        assert_eq!(panels.note, "27 lines in 3 panels.");
        let svg = panels.svg();
        assert_eq!(svg.matches("<polyline").count(), 27);
        assert_eq!(svg.matches("</title></path>").count(), rows.len(), "a mark for each value");
        let looks = |panel: &Chart| panel.series.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        assert!(panels.panels.iter().all(|panel| looks(panel) == looks(&panels.panels[0])));
    }

    #[test]
    fn lines_of_one_axis_are_divided_and_lines_beyond_the_bound_are_counted() {
        let values: Vec<String> = (1..=41).map(|value| format!("x{value}")).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let one_axis = super::figure(&grid(&[("planes", &["1", "2"]), ("name", &values)]));
        assert_eq!((one_axis.panels.len(), one_axis.note.as_str()), (3, "41 lines in 3 panels."));
        // A panel for each name would have two lines.
        let two = super::figure(&grid(&[("planes", &["1", "2"]), ("name", &values), ("kind", &["a", "b"])]));
        assert_eq!(
            (two.note.as_str(), two.svg().matches("<polyline").count()),
            ("82 lines in 6 panels.", 82)
        );
        let panels =
            super::figure(&grid(&[("planes", &["1", "2"]), ("name", &values), ("kind", &values[..16])]));
        assert_eq!(panels.panels.len(), PANELS_MAX);
        assert_eq!(
            panels.note,
            "The first 40 of 41 panels, to name x40: 640 of 656 lines. results.csv has all."
        );
        assert_eq!(panels.svg().matches("<polyline").count(), 640);
    }

    #[test]
    fn quantities_stand_at_their_values_and_kinds_have_no_lines() {
        let of = |values: &[&str]| super::figure(&grid(&[("link.delay", values)])).panels[0].clone();
        let delays = of(&["100ns", "200ns", "10us", "0"]);
        let at: Vec<f64> = delays.series[0].points.iter().map(|point| point.x).collect();
        assert_eq!(at, [0.0, 100.0, 200.0, 10_000.0]);
        assert_eq!(delays.series[0].line.len(), 4);
        let Across::Values(axis) = &delays.x else { panic!("kinds") };
        assert_eq!((axis.kind, axis.unit.text(100.0).as_str()), (ScaleKind::Logarithmic, "100 ns"));
        let rates = of(&["50Gbit/s", "100Gbit/s"]);
        assert!(matches!(&rates.x, Across::Values(axis) if axis.kind == ScaleKind::Linear), "{:?}", rates.x);
        assert_eq!(rates.series[0].points[1].x, 1e11);
        for kinds in [&["100ns", "4KiB"][..], &["ring", "mesh"], &["1", "all"]] {
            let chart = of(kinds);
            assert!(matches!(chart.x, Across::Categories { is_ordered: false, .. }), "{kinds:?}");
            assert!(chart.series[0].line.is_empty() && chart.series[0].points.len() == 2);
        }
        assert!(matches!(of(&["0", "1%", "1e-6"]).x, Across::Values(_)));
    }

    #[test]
    fn a_sweep_without_results_has_an_empty_figure() {
        assert!(figure(&[]).ends_with("</svg>\n"));
    }
}
