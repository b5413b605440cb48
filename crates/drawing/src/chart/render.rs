//! Layout and drawing of a chart.
//!
//! Header, plot and legend have areas of their own, from the sizes of their texts. The plot gets the rest.

use super::axis::{Axis, ScaleKind};
use super::coincide;
use super::legend::{LINE_HEIGHT, Legend, line_attributes};
use super::model::{Across, Chart, Point, Series};
use super::scale::Scale;
use super::ticks::{self, Ticks};
use crate::number::coordinate;
use crate::palette::Look;
use crate::svg::{Anchor, Svg};
use crate::text::{FONT, HINT_MAX, TITLE_FONT, cut, shortened, shown, width, wrapped};

pub(super) const WIDTH: f64 = 760.0;
const MARGIN: f64 = 14.0;
/// Height of a plot whose categories, if any, are beside each other.
const PLOT_HEIGHT: f64 = 310.0;
/// Width below which no plot is drawn beside a legend.
const PLOT_WIDTH_MIN: f64 = 300.0;
const RADIUS: f64 = 3.6;
/// Number of points up to which each point has a text that browsers show beside the pointer.
const LABELLED_MAX: usize = 400;
/// Widest name of a category that stands left of the plot.
const NAME_MAX: f64 = 230.0;
/// Greatest height of a plot with categories below each other.
const TURNED_HEIGHT_MAX: f64 = 1600.0;

impl Chart {
    /// Returns the chart as SVG text.
    #[must_use]
    pub fn svg(&self) -> String {
        let (svg, size) = drawn(self, &[]);
        svg.finish(size, &self.title, &description(self))
    }
}

/// Draws the chart. Its axes of numbers also cover these points, horizontal value first.
pub(super) fn drawn(chart: &Chart, covered: &[(f64, f64)]) -> (Svg, (f64, f64)) {
    draw(chart, covered, false)
}

pub(super) fn description(chart: &Chart) -> String {
    let across = across_label(chart);
    let names: Vec<&str> = chart.series.iter().map(|series| series.name.as_str()).collect();
    format!("{} {} over {across}. Series: {}.", chart.note, chart.y.label, names.join(", "))
}

/// Arrangement of categories.
#[derive(Clone, Debug, PartialEq)]
enum Names {
    /// Numbers instead of categories.
    None,
    /// Beside each other, in lines.
    Beside(Vec<Vec<String>>),
    /// Beside each other, each text sloping; all but every n-th are left out.
    Sloping(Vec<String>, usize),
    /// Below each other, in lines.
    Below(Vec<Vec<String>>),
}

/// Areas and scales of the plot.
struct Plot<'a> {
    chart: &'a Chart,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    across: Scale,
    value: Scale,
    names: Names,
    /// Distance between categories; 0 for numbers.
    slot: f64,
}

/// Draws the chart. If `is_below`, categories stand below each other even if they would fit beside each other.
fn draw(chart: &Chart, covered: &[(f64, f64)], is_below: bool) -> (Svg, (f64, f64)) {
    let values = |chart| values(chart).chain(covered.iter().map(|(_, value)| *value));
    let positions = |chart| positions(chart).chain(covered.iter().map(|(at, _)| *at));
    let mut svg = Svg::default();
    let top = header(&mut svg, chart);
    let legend = Legend::of(chart);
    let (legend_width, legend_height) = legend.column();
    let value_axis = drawable(&chart.y, values(chart));
    let names = match is_below {
        true => below_each_other(chart),
        false => arrangement(chart, WIDTH - 2.0 * MARGIN - 40.0 - legend_width),
    };
    let height = match &names {
        Names::Below(names) => {
            (row_height(names, chart.series.len()) * names.len() as f64).min(TURNED_HEIGHT_MAX)
        }
        _ => PLOT_HEIGHT,
    };
    let bottom = top + height;
    let is_turned = matches!(names, Names::Below(_));
    let label_lines = |words: &str, length: f64| wrapped(words, FONT, length, 2);

    // The left margin follows from the texts beside the axis.
    let value = Scale::over(value_axis.kind, values(chart), bottom, top);
    let upright = ticks::upright(&value_axis, &value, FONT);
    let (left_words, left_label) = match &names {
        Names::Below(names) => (widest(names.iter().flatten()), across_label(chart).to_owned()),
        _ => (
            widest(upright.marks.iter().map(|(_, text)| text)),
            value_axis.label_with(upright.unit.as_deref()),
        ),
    };
    let left_lines = label_lines(&left_label, height);
    let left_lines = if left_label.is_empty() { Vec::new() } else { left_lines };
    let left = MARGIN + LINE_HEIGHT * left_lines.len() as f64 + 8.0 + left_words + 8.0;

    let is_beside = legend_height <= height && WIDTH - MARGIN - legend_width - 20.0 - left >= PLOT_WIDTH_MIN;
    let right = if legend.is_empty() || !is_beside {
        WIDTH - MARGIN - 26.0
    } else {
        WIDTH - MARGIN - legend_width - 22.0
    };
    let names = if is_turned { names } else { arrangement(chart, right - left) };
    if !is_turned && matches!(names, Names::Below(_)) {
        // The texts beside the axis left too little.
        return draw(chart, covered, true);
    }

    let count = match &chart.x {
        Across::Categories { names, .. } => names.len().max(1) as f64,
        Across::Values(_) => 0.0,
    };
    let (from, to) = if is_turned { (top, bottom) } else { (left, right) };
    let across_axis = across_axis(chart, positions(chart));
    let across = match &across_axis {
        Some(axis) => Scale::over(axis.kind, positions(chart), from, to),
        None => Scale::of_range(0.5, count + 0.5, from, to),
    };
    let value = if is_turned { Scale::over(value_axis.kind, values(chart), left, right) } else { value };
    let slot = if count > 0.0 { (to - from) / count } else { 0.0 };
    let plot = Plot { chart, left, right, top, bottom, across, value, names, slot };

    let mut own_points: Vec<f64> =
        chart.series.iter().flat_map(|series| &series.points).map(|point| point.x).collect();
    if own_points.is_empty() {
        own_points = positions(chart).collect();
    }
    let level = match (&across_axis, is_turned) {
        (_, true) => Some((ticks::level(&value_axis, &plot.value, &[], FONT), &value_axis)),
        (Some(axis), false) => Some((ticks::level(axis, &plot.across, &own_points, FONT), axis)),
        (None, false) => None,
    };
    if !is_turned {
        plot.upright_marks(&mut svg, &upright);
    }
    let below = match &level {
        Some((ticks, axis)) => {
            plot.level_marks(&mut svg, ticks);
            let label = axis.label_with(ticks.unit.as_deref());
            plot.level_label(&mut svg, bottom + 17.0, &label)
        }
        None => bottom,
    };
    let below = plot.categories(&mut svg, below);
    for (number, line) in left_lines.iter().enumerate() {
        let at = (MARGIN + 10.0 + LINE_HEIGHT * number as f64, f64::midpoint(top, bottom));
        svg.turned(at, Anchor::Middle, "", line, -90.0);
    }
    plot.frame(&mut svg);
    plot.series(&mut svg);

    let end = if is_beside || legend.is_empty() {
        legend.draw_column(&mut svg, (right + 22.0, top));
        below
    } else {
        legend.draw_rows(&mut svg, (left, below + 12.0), WIDTH - MARGIN - left);
        below + 12.0 + legend.rows_height(WIDTH - MARGIN - left)
    };
    (svg, (WIDTH, end + MARGIN))
}

/// Draws title and note; returns the top of the plot.
fn header(svg: &mut Svg, chart: &Chart) -> f64 {
    let length = WIDTH - 2.0 * MARGIN;
    let mut y = 10.0;
    for line in wrapped(&chart.title, TITLE_FONT * 1.08, length, 3) {
        y += 17.0;
        svg.text((MARGIN, y), Anchor::Start, "title", &line);
    }
    if !chart.note.is_empty() {
        y += 4.0;
        for line in wrapped(&chart.note, FONT, length, 4) {
            y += 15.0;
            svg.text((MARGIN, y), Anchor::Start, "soft", &line);
        }
    }
    y + 20.0
}

fn widest<'a>(texts: impl Iterator<Item = &'a String>) -> f64 {
    texts.map(|text| width(text, FONT)).fold(0.0, f64::max)
}

/// Returns all points, and the ends of their bars and lines.
pub(super) fn extent(chart: &Chart) -> Vec<(f64, f64)> {
    let of_point = |point: &Point| {
        let bar = point.bar.unwrap_or((point.y, point.y));
        [point.y, bar.0, bar.1].map(|value| (point.x, value))
    };
    let of_series = |series: &Series| {
        series.points.iter().flat_map(of_point).chain(series.line.iter().copied()).collect()
    };
    chart.series.iter().flat_map(|series| -> Vec<(f64, f64)> { of_series(series) }).collect()
}

/// Returns all values that the value axis must cover.
fn values(chart: &Chart) -> impl Iterator<Item = f64> {
    let of_points = |point: &Point| {
        let bar = point.bar.unwrap_or((point.y, point.y));
        [point.y, bar.0, bar.1]
    };
    chart.series.iter().flat_map(move |series| {
        series.points.iter().flat_map(of_points).chain(series.line.iter().map(|(_, value)| *value))
    })
}

fn positions(chart: &Chart) -> impl Iterator<Item = f64> {
    chart.series.iter().flat_map(|series| {
        series.points.iter().map(|point| point.x).chain(series.line.iter().map(|(at, _)| *at))
    })
}

fn across_label(chart: &Chart) -> &str {
    match &chart.x {
        Across::Values(axis) => &axis.label,
        Across::Categories { label, .. } => label,
    }
}

fn across_axis(chart: &Chart, positions: impl Iterator<Item = f64>) -> Option<Axis> {
    match &chart.x {
        Across::Values(axis) => Some(drawable(axis, positions)),
        Across::Categories { .. } => None,
    }
}

/// Returns the axis with a scale on which every value has a position: with zeros or negative values, a logarithmic one becomes linear
/// around zero.
fn drawable(axis: &Axis, values: impl Iterator<Item = f64>) -> Axis {
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    let least =
        values.iter().map(|value| value.abs()).filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let kind = match axis.kind {
        ScaleKind::Logarithmic if values.iter().any(|value| *value <= 0.0) => {
            ScaleKind::Symlog(if least.is_finite() { least } else { 1.0 })
        }
        // A threshold that is not positive has no logarithm.
        ScaleKind::Symlog(threshold) if threshold.is_nan() || threshold <= 0.0 => ScaleKind::Linear,
        kind => kind,
    };
    Axis { kind, ..axis.clone() }
}

/// Returns how categories are arranged beside each other in this width, or below each other.
fn arrangement(chart: &Chart, length: f64) -> Names {
    let Across::Categories { names, is_ordered, .. } = &chart.x else { return Names::None };
    let slot = length / names.len().max(1) as f64;
    let is_whole = |name: &str, lines: &[String]| {
        lines.len() <= 3 && name.split(' ').all(|word| width(word, FONT) <= slot - 8.0)
    };
    let lines: Vec<Vec<String>> = names.iter().map(|name| wrapped(name, FONT, slot - 8.0, 99)).collect();
    if names.iter().zip(&lines).all(|(name, lines)| is_whole(name, lines)) {
        return Names::Beside(lines);
    }
    if *is_ordered {
        let short = names.iter().map(|name| shortened(name, FONT, 150.0)).collect();
        return Names::Sloping(short, (20.0 / slot).ceil().max(1.0) as usize);
    }
    below_each_other(chart)
}

fn below_each_other(chart: &Chart) -> Names {
    let Across::Categories { names, .. } = &chart.x else { return Names::None };
    Names::Below(names.iter().map(|name| wrapped(name, FONT, NAME_MAX, 2)).collect())
}

/// Returns the height of a category that stands below others.
fn row_height(names: &[Vec<String>], series: usize) -> f64 {
    let lines = names.iter().map(Vec::len).max().unwrap_or(1) as f64;
    (lines * LINE_HEIGHT + 10.0).max(series as f64 * 9.0 + 8.0).max(28.0)
}

impl Plot<'_> {
    const fn is_turned(&self) -> bool {
        matches!(self.names, Names::Below(_))
    }

    /// Returns the coordinates of a point, with a shift along the axis of the positions.
    fn place(&self, at: f64, value: f64, shift: f64) -> Option<(f64, f64)> {
        let (across, value) = (self.across.nearest(at)? + shift, self.value.nearest(value)?);
        Some(if self.is_turned() { (value, across) } else { (across, value) })
    }

    /// Returns coordinates as horizontal and vertical ones.
    const fn oriented(&self, across: f64, value: f64) -> (f64, f64) {
        if self.is_turned() { (value, across) } else { (across, value) }
    }

    fn upright_marks(&self, svg: &mut Svg, ticks: &Ticks) {
        for (value, text) in &ticks.marks {
            let Some(at) = self.value.coordinate(*value) else { continue };
            svg.line((self.left, at), (self.right, at), "class=\"grid\"");
            svg.text((self.left - 7.0, at + 4.0), Anchor::End, "", text);
        }
    }

    fn level_marks(&self, svg: &mut Svg, ticks: &Ticks) {
        let scale = if self.is_turned() { &self.value } else { &self.across };
        for (value, text) in &ticks.marks {
            let Some(at) = scale.coordinate(*value) else { continue };
            svg.line((at, self.top), (at, self.bottom), "class=\"grid\"");
            svg.text((at, self.bottom + 17.0), Anchor::Middle, "", text);
        }
    }

    /// Draws the label of the horizontal axis below a baseline; returns the lowest baseline.
    fn level_label(&self, svg: &mut Svg, above: f64, label: &str) -> f64 {
        if label.is_empty() {
            return above;
        }
        let mut y = above + 7.0;
        for line in wrapped(label, FONT, self.right - self.left, 2) {
            y += 15.0;
            svg.text((f64::midpoint(self.left, self.right), y), Anchor::Middle, "", &line);
        }
        y
    }

    /// Draws the names of categories; returns the lowest baseline.
    fn categories(&self, svg: &mut Svg, below: f64) -> f64 {
        let at = |index: usize| self.across.coordinate(index as f64 + 1.0).unwrap_or(self.left);
        let label = across_label(self.chart);
        match &self.names {
            Names::None => below,
            Names::Beside(names) => {
                for (index, lines) in names.iter().enumerate() {
                    for (number, line) in lines.iter().enumerate() {
                        let y = self.bottom + 17.0 + LINE_HEIGHT * number as f64;
                        svg.text((at(index), y), Anchor::Middle, "", line);
                    }
                }
                let lines = names.iter().map(Vec::len).max().unwrap_or(1);
                self.level_label(svg, self.bottom + 17.0 + LINE_HEIGHT * (lines - 1) as f64, label)
            }
            Names::Sloping(names, stride) => {
                for (index, name) in names.iter().enumerate().step_by(*stride) {
                    svg.turned((at(index) + 4.0, self.bottom + 14.0), Anchor::End, "", name, -40.0);
                }
                // The sine of the slope, and the height of a letter.
                let depth = names.iter().map(|name| width(name, FONT) * 0.643).fold(0.0, f64::max) + 14.0;
                self.level_label(svg, self.bottom + depth, label)
            }
            Names::Below(names) => {
                // Names that would touch are left out.
                let stride = (row_height(names, 0) - 10.0).max(LINE_HEIGHT) / self.slot.max(1.0);
                for (index, lines) in names.iter().enumerate().step_by(stride.ceil().max(1.0) as usize) {
                    let first = at(index) + 4.0 - LINE_HEIGHT * (lines.len() - 1) as f64 / 2.0;
                    for (number, line) in lines.iter().enumerate() {
                        svg.text(
                            (self.left - 9.0, first + LINE_HEIGHT * number as f64),
                            Anchor::End,
                            "",
                            line,
                        );
                    }
                    svg.line((self.left, at(index)), (self.right, at(index)), "class=\"grid\"");
                }
                below
            }
        }
    }

    fn frame(&self, svg: &mut Svg) {
        svg.line((self.left, self.bottom), (self.right, self.bottom), "class=\"axis\"");
        svg.line((self.left, self.top), (self.left, self.bottom), "class=\"axis\"");
    }

    /// Draws lines, error bars and points, in this order.
    fn series(&self, svg: &mut Svg) {
        let all = &self.chart.series;
        let is_apart = matches!(self.chart.x, Across::Categories { is_ordered: false, .. });
        let step = (self.slot * 0.7 / all.len().max(1) as f64).min(14.0);
        let beside = |number: usize| {
            if is_apart { (number as f64 - (all.len() - 1) as f64 / 2.0) * step } else { 0.0 }
        };
        if is_apart {
            let half = if all.len() == 1 { (self.slot * 0.3).min(20.0) } else { step / 2.0 + 2.0 };
            for (number, series) in all.iter().enumerate() {
                self.short_lines(svg, number, series, beside(number), half);
            }
        } else {
            self.lines(svg);
        }
        let marks: Vec<(usize, &Point, (f64, f64))> = all
            .iter()
            .enumerate()
            .flat_map(|(number, series)| series.points.iter().map(move |point| (number, point)))
            .filter_map(|(number, point)| {
                let (across, value) =
                    (self.across.nearest(point.x)? + beside(number), self.value.nearest(point.y)?);
                Some((number, point, (across, value)))
            })
            .collect();
        let extent = |point: &Point, value: f64| {
            let end = |end: f64| self.value.nearest(end).unwrap_or(value);
            let (one, other) = point.bar.map_or((value, value), |(low, high)| (end(low), end(high)));
            (one.min(other).min(value), one.max(other).max(value))
        };
        let at: Vec<_> = marks
            .iter()
            .map(|(number, point, (across, value))| (*number, *across, extent(point, *value)))
            .collect();
        let shifts = coincide::shifts(&at);
        for ((number, point, (across, _)), shift) in marks.iter().zip(&shifts) {
            self.bar(svg, *number, point, across + shift);
        }
        let is_labelled = marks.len() <= LABELLED_MAX;
        for ((number, point, (across, value)), shift) in marks.iter().zip(&shifts) {
            let label = is_labelled.then(|| self.label(&all[*number], point));
            self.point(svg, *number, point, self.oriented(across + shift, *value), label);
        }
    }

    /// Draws a line for each series.
    fn lines(&self, svg: &mut Svg) {
        let place = |series: &Series| -> Vec<(f64, f64)> {
            series.line.iter().filter_map(|(at, value)| self.place(*at, *value, 0.0)).collect()
        };
        let lines: Vec<_> = self.chart.series.iter().map(place).collect();
        let covered = coincide::covered(&lines);
        for (number, line) in lines.iter().enumerate() {
            let line = match line[..] {
                [] => continue,
                // A single point has a line too.
                [(x, y)] => vec![(x - 10.0, y), (x + 10.0, y)],
                _ => line.clone(),
            };
            let points: Vec<String> =
                line.iter().map(|(x, y)| format!("{},{}", coordinate(*x), coordinate(*y))).collect();
            let attributes = line_attributes(Look::new(number), 1.8 + 1.8 * covered[number].min(2) as f64);
            svg.raw(&format!("<polyline points=\"{}\" {attributes}/>", points.join(" ")));
        }
    }

    /// Draws a short line across each category.
    fn short_lines(&self, svg: &mut Svg, number: usize, series: &Series, shift: f64, half: f64) {
        for (at, value) in &series.line {
            let (Some(across), Some(value)) = (self.across.nearest(*at), self.value.nearest(*value)) else {
                continue;
            };
            let [from, to] = [-half, half].map(|end| self.oriented(across + shift + end, value));
            svg.line(
                from,
                to,
                &format!("style=\"stroke:{}\" stroke-width=\"2.4\"", Look::new(number).colour()),
            );
        }
    }

    fn bar(&self, svg: &mut Svg, number: usize, point: &Point, across: f64) {
        let Some((low, high)) = point.bar else { return };
        let (Some(low), Some(high)) = (self.value.nearest(low), self.value.nearest(high)) else { return };
        let attributes = format!("style=\"stroke:{}\" stroke-width=\"1.5\"", Look::new(number).colour());
        let mut line = |from: (f64, f64), to: (f64, f64)| {
            svg.line(self.oriented(from.0, from.1), self.oriented(to.0, to.1), &attributes);
        };
        line((across, low), (across, high));
        for end in [low, high] {
            line((across - 4.0, end), (across + 4.0, end));
        }
    }

    fn point(&self, svg: &mut Svg, number: usize, point: &Point, (x, y): (f64, f64), label: Option<String>) {
        let look = Look::new(number);
        let (mark, colour) = (look.mark(x, y, RADIUS), look.colour());
        let class = if point.is_hollow { " class=\"hollow\"" } else { "" };
        let label =
            label.map(|label| format!("<title>{}</title>", crate::text::escaped(&label))).unwrap_or_default();
        let style = format!("fill:{colour};stroke:{colour};stroke-width:1.4");
        svg.raw(&format!("<path d=\"{mark}\"{class} style=\"{style}\">{label}</path>"));
    }

    /// Returns the text that browsers show beside the pointer.
    fn label(&self, series: &Series, point: &Point) -> String {
        let at = match &self.chart.x {
            Across::Values(axis) => axis.unit.text(point.x),
            Across::Categories { names, .. } => {
                names.get(point.x as usize - usize::from(point.x >= 1.0)).cloned().unwrap_or_default()
            }
        };
        let unit = &self.chart.y.unit;
        let bar = point.bar.map(|(low, high)| format!(" ({} to {})", unit.text(low), unit.text(high)));
        format!(
            "{}: {}: {}{}",
            shown(&cut(&series.name, HINT_MAX)),
            shown(&cut(&at, HINT_MAX)),
            unit.text(point.y),
            bar.unwrap_or_default()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::Meaning;
    use super::*;
    use crate::svg::overlaps;

    fn chart(x: Across, y: Axis, series: Vec<Series>) -> Chart {
        let meanings = vec![
            Meaning::Line("closed form".into()),
            Meaning::Point("measured".into()),
            Meaning::Bar("least and greatest of all runs".into()),
            Meaning::Hollow("does not hold".into()),
        ];
        Chart { title: "a title".into(), note: "a question?".into(), x, y, series, meanings }
    }

    fn series(name: &str, values: &[(f64, f64)]) -> Series {
        let points = values.iter().map(|(at, value)| Point::new(*at, *value)).collect();
        Series { name: name.into(), line: values.to_vec(), points }
    }

    fn categories(names: &[&str], is_ordered: bool) -> Across {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Across::Categories { label: "kind".into(), names, is_ordered }
    }

    fn assert_readable(chart: &Chart) {
        let (svg, (width, height)) = drawn(chart, &[]);
        assert_eq!(overlaps(&svg), [], "texts cover each other");
        for (words, [left, top, right, bottom]) in &svg.boxes {
            assert!(
                *left >= 0.0 && *top >= 0.0 && *right <= width && *bottom <= height,
                "{words} leaves the picture"
            );
        }
    }

    #[test]
    fn no_text_covers_another_or_leaves_the_picture() {
        let ramp = |factor: f64| -> Vec<(f64, f64)> {
            (1..=40).map(|at| (f64::from(at), factor * f64::from(at))).collect()
        };
        let names = [
            "bulk blocked, a channel for each class, round-robin",
            "short",
            "leaf-spine-2x8, all links in use",
            "x",
        ];
        let long = "an axis with a label that is much longer than the plot is wide, so that it needs lines of its own (us)";
        let across = [
            Across::Values(Axis::linear("at (us)")),
            Across::Values(Axis::logarithmic(long)),
            categories(&names, false),
            categories(&names, true),
            categories(&["off", "on"], false),
            categories(&(0..200).map(|_| "a category of many").collect::<Vec<_>>(), false),
            categories(&(0..200).map(|_| "a step of many").collect::<Vec<_>>(), true),
        ];
        for across in across {
            for count in [0, 1, 3, 16, 40] {
                for axis in [Axis::linear(long), Axis::logarithmic("rate (Gbit/s)")] {
                    let name =
                        |number: usize| format!("series {number} {}", "with a long name ".repeat(number % 5));
                    let all =
                        (0..count).map(|number| series(&name(number), &ramp(number as f64 * 1e3))).collect();
                    assert_readable(&chart(across.clone(), axis, all));
                }
            }
        }
    }

    #[test]
    fn names_of_any_width_stand_either_beside_or_below_each_other() {
        for count in 1..20 {
            for length in 1..14 {
                let names: Vec<String> = (0..count).map(|_| "m".repeat(length)).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let points: Vec<_> = (1..=count).map(|at| (f64::from(at), 1e6 * f64::from(at))).collect();
                for number in [1, 3] {
                    let all = (0..number).map(|number| series(&format!("name {number}"), &points)).collect();
                    assert_readable(&chart(categories(&names, false), Axis::linear("count"), all));
                }
            }
        }
    }

    #[test]
    fn hostile_names_are_text_and_equal_charts_equal_texts() {
        let hostile = "<script>\"'&\u{202e}\u{5d0}\n\u{0}";
        let chart = Chart {
            title: hostile.into(),
            note: hostile.into(),
            ..chart(
                categories(&[hostile, "b"], false),
                Axis::linear(hostile),
                vec![series(hostile, &[(1.0, 2.0)])],
            )
        };
        let svg = chart.svg();
        assert!(!svg.contains("<script") && !svg.contains(['\u{202e}', '\u{0}']), "{svg}");
        assert!(svg.contains("&lt;script&gt;") && svg.contains('\u{2068}'));
        assert_eq!(svg, chart.clone().svg());
    }

    #[test]
    fn every_point_is_drawn_also_zero_on_a_logarithmic_axis() {
        let zero = chart(
            Across::Values(Axis::logarithmic("loss")),
            Axis::logarithmic("count"),
            vec![series("a", &[(0.0, 0.0), (0.1, 10.0), (1.0, 1000.0)])],
        );
        let svg = zero.svg();
        assert_eq!(svg.matches("<title>a: ").count(), 3, "{svg}");
        assert!(svg.contains(">0<"), "the axis shows zero");
    }

    #[test]
    fn series_with_equal_values_are_apart_and_their_lines_differ() {
        let values = [(1.0, 5.0), (2.0, 5.0), (3.0, 5.0)];
        let all = ["a", "b"].map(|name| series(name, &values)).to_vec();
        let svg = chart(Across::Values(Axis::linear("at")), Axis::linear("count"), all).svg();
        let starts: Vec<&str> = svg
            .lines()
            .filter(|line| line.contains("<title>"))
            .filter_map(|line| line.split(' ').nth(1))
            .collect();
        let mut different = starts.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!((starts.len(), different.len()), (7, 7), "the title and six marks: {starts:?}");
        let lines: Vec<&str> = svg.lines().filter(|line| line.starts_with("<polyline")).collect();
        assert!(lines[0].contains("stroke-width=\"3.6\"") && !lines[0].contains("dasharray"), "{lines:?}");
        assert!(lines[1].contains("stroke-width=\"1.8\"") && lines[1].contains("dasharray"), "{lines:?}");
    }

    #[test]
    fn an_error_bar_reaches_from_low_to_high_and_the_legend_says_so() {
        let mut one = series("a", &[(1.0, 5.0)]);
        let plain = chart(categories(&["x"], false), Axis::linear("count"), vec![one.clone()]);
        assert!(!plain.svg().contains("greatest of all runs"));
        one.points[0].bar = Some((3.0, 9.0));
        let svg = chart(categories(&["x"], false), Axis::linear("count"), vec![one]).svg();
        assert!(svg.contains("greatest of all") && svg.contains("(3 to 9)"), "{svg}");
    }

    #[test]
    fn categories_with_long_names_stand_below_each_other() {
        let long = "a category with a name that has no place beside others of its kind";
        let all = vec![series("a", &[(1.0, 1.0), (2.0, 2.0)])];
        let axis = Axis::linear("count");
        let of = |names: &[&str], is_ordered| {
            let chart = chart(categories(names, is_ordered), axis.clone(), all.clone());
            arrangement(&chart, 400.0)
        };
        assert!(matches!(of(&[long, long, long, long, long, long], false), Names::Below(_)));
        assert!(matches!(of(&[long, long, long, long, long, long], true), Names::Sloping(_, 1)));
        assert!(matches!(of(&["off", "on"], false), Names::Beside(_)));
    }
}
