//! Horizontal bars: a group for each name, and in it a bar for each series, with its value at its end.
//!
//! Series differ in colour and in filling: full, hatched, or outline alone.

use super::axis::{Axis, ScaleKind};
use super::legend::LINE_HEIGHT;
use super::scale::Scale;
use super::ticks;
use crate::number::coordinate;
use crate::palette::Look;
use crate::svg::{Anchor, Svg};
use crate::text::{FONT, HINT_MAX, TITLE_FONT, cut, escaped, shown, width, wrapped};

const WIDTH: f64 = 760.0;
const MARGIN: f64 = 14.0;
/// Widest name of a group.
const NAME_MAX: f64 = 210.0;
/// Distance between bars of a group, and height of a bar.
const STEP: f64 = 16.0;
const BAR_HEIGHT: f64 = 11.0;
/// Space between groups.
const GAP: f64 = 10.0;
/// Distance between the lines of a hatched bar.
const HATCH: f64 = 6.0;

/// Content of a chart of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Title.
    pub title: String,
    /// Text below the title. May be empty.
    pub note: String,
    /// Axis of the values. It begins at zero, and its scale is linear.
    pub value: Axis,
    /// Names of the groups, from top to bottom.
    pub names: Vec<String>,
    /// Series in the order of the legend.
    pub series: Vec<BarSeries>,
}

/// One bar in each group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarSeries {
    /// Name in the legend. A single series without a name has no legend.
    pub name: String,
    /// Values in the order of the groups; `None` for a group without a bar.
    pub values: Vec<Option<f64>>,
}

impl Bars {
    /// Returns the chart as SVG text.
    #[must_use]
    pub fn svg(&self) -> String {
        let (svg, size) = draw(self);
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        let description = format!("{} {}. Series: {}.", self.note, self.value.label, names.join(", "));
        svg.finish(size, &self.title, &description)
    }
}

fn draw(bars: &Bars) -> (Svg, (f64, f64)) {
    let mut svg = Svg::default();
    let top = header(&mut svg, &bars.title, &bars.note);
    let top = legend(&mut svg, bars, top);
    let names: Vec<Vec<String>> = bars.names.iter().map(|name| wrapped(name, FONT, NAME_MAX, 2)).collect();
    let widest = names.iter().flatten().map(|line| width(line, FONT)).fold(0.0, f64::max);
    let unit = &bars.value.unit;
    let values = || {
        let all = bars.series.iter().flat_map(|series| series.values.iter().flatten().copied());
        all.filter(|value| value.is_finite())
    };
    let label_width = values().map(|value| width(&unit.text(value), FONT)).fold(0.0, f64::max);
    let (left, right) = (MARGIN + widest + 10.0, WIDTH - MARGIN - label_width - 8.0);
    let axis = Axis { kind: ScaleKind::Linear, ..bars.value.clone() };
    let most = values().fold(0.0, f64::max);
    let scale = Scale::of_range(0.0, if most > 0.0 { most * 1.03 } else { 1.0 }, left, right);
    let height = group_height(bars.series.len());
    let bottom = top + height * names.len() as f64;

    let marks = ticks::level(&axis, &scale, &[], FONT);
    for (value, text) in &marks.marks {
        let Some(at) = scale.coordinate(*value) else { continue };
        svg.line((at, top), (at, bottom), "class=\"grid\"");
        svg.text((at, bottom + 17.0), Anchor::Middle, "", text);
    }
    for (index, lines) in names.iter().enumerate() {
        let middle = top + height * (index as f64 + 0.5);
        let first = middle + 4.0 - LINE_HEIGHT * (lines.len() - 1) as f64 / 2.0;
        for (number, line) in lines.iter().enumerate() {
            svg.text((left - 8.0, first + LINE_HEIGHT * number as f64), Anchor::End, "", line);
        }
        let upper = middle - STEP * bars.series.len() as f64 / 2.0;
        for (number, series) in bars.series.iter().enumerate() {
            let Some(value) = series.values.get(index).copied().flatten() else { continue };
            let Some(end) = scale.nearest(value) else { continue };
            let y = upper + STEP * number as f64 + (STEP - BAR_HEIGHT) / 2.0;
            let label = format!("{}: {}", shown(&cut(&bars.names[index], HINT_MAX)), unit.text(value));
            let label = if series.name.is_empty() {
                label
            } else {
                format!("{}: {label}", shown(&cut(&series.name, HINT_MAX)))
            };
            bar(&mut svg, number, (left, y), end - left, &label);
            svg.text((end + 6.0, y + BAR_HEIGHT - 1.0), Anchor::Start, "", &unit.text(value));
        }
    }
    svg.line((left, top), (left, bottom), "class=\"axis\"");
    let mut y = bottom + 24.0;
    for line in wrapped(&axis.label_with(marks.unit.as_deref()), FONT, right - left, 2) {
        y += 15.0;
        svg.text((f64::midpoint(left, right), y), Anchor::Middle, "", &line);
    }
    (svg, (WIDTH, y + MARGIN))
}

/// Returns the height of a group: that of its bars, and at least that of a name of two lines.
fn group_height(series: usize) -> f64 {
    (STEP * series as f64).max(LINE_HEIGHT * 2.0 - GAP + 2.0) + GAP
}

/// Draws title and note; returns the top of what follows.
pub(super) fn header(svg: &mut Svg, title: &str, note: &str) -> f64 {
    let length = WIDTH - 2.0 * MARGIN;
    let mut y = 10.0;
    for line in wrapped(title, TITLE_FONT * 1.08, length, 3) {
        y += 17.0;
        svg.text((MARGIN, y), Anchor::Start, "title", &line);
    }
    if !note.is_empty() {
        y += 4.0;
        for line in wrapped(note, FONT, length, 4) {
            y += 15.0;
            svg.text((MARGIN, y), Anchor::Start, "soft", &line);
        }
    }
    y + 16.0
}

/// Draws a sample and the name of each series in one row or several; returns the lower end.
fn legend(svg: &mut Svg, bars: &Bars, top: f64) -> f64 {
    let named: Vec<_> =
        bars.series.iter().enumerate().filter(|(_, series)| !series.name.is_empty()).collect();
    let (mut x, mut y) = (MARGIN, top);
    for (number, series) in &named {
        let name = crate::text::shortened(&series.name, FONT, 200.0);
        let length = 38.0 + width(&name, FONT) + 20.0;
        if x + length > WIDTH - MARGIN && x > MARGIN {
            (x, y) = (MARGIN, y + 18.0);
        }
        bar(svg, *number, (x, y), 30.0, &name);
        svg.text((x + 38.0, y + BAR_HEIGHT - 1.0), Anchor::Start, "", &name);
        x += length;
    }
    if named.is_empty() { top } else { y + 24.0 }
}

/// Draws a bar with a text that browsers show beside the pointer.
fn bar(svg: &mut Svg, number: usize, (x, y): (f64, f64), length: f64, label: &str) {
    let colour = Look::new(number).colour();
    let [left, top, wide, high] = [x, y, length.max(0.0), BAR_HEIGHT].map(coordinate);
    let fill = if number.is_multiple_of(3) { colour.as_str() } else { "var(--rk-paper)" };
    svg.raw(&format!(
        "<rect x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\" style=\"fill:{fill};stroke:{colour};stroke-width:1.2\"><title>{}</title></rect>",
        escaped(label)
    ));
    if number % 3 == 1 {
        let lines = (length - BAR_HEIGHT).max(0.0) / HATCH;
        let path: String = (0..=lines as usize)
            .map(|line| x + HATCH * line as f64)
            .filter(|at| at + BAR_HEIGHT <= x + length)
            .map(|at| {
                format!(
                    "M{} {}L{} {top}",
                    coordinate(at),
                    coordinate(y + BAR_HEIGHT),
                    coordinate(at + BAR_HEIGHT)
                )
            })
            .collect();
        svg.raw(&format!(
            "<path d=\"{path}\" style=\"stroke:{colour};stroke-width:1.6;pointer-events:none\"/>"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::overlaps;

    fn bars(names: &[&str], series: Vec<BarSeries>) -> Bars {
        Bars {
            title: "a title".into(),
            note: "a note".into(),
            value: Axis::linear("latency (ns)"),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            series,
        }
    }

    fn series(name: &str, values: &[f64]) -> BarSeries {
        BarSeries { name: name.into(), values: values.iter().map(|value| Some(*value)).collect() }
    }

    /// Returns the widths of the bars of each series, without the samples of the legend.
    fn widths(svg: &str) -> Vec<f64> {
        let rects = svg.lines().filter(|line| line.starts_with("<rect x="));
        let width = |line: &str| line.split("width=\"").nth(1)?.split('"').next()?.parse().ok();
        rects.filter_map(width).collect()
    }

    #[test]
    fn the_length_of_a_bar_is_its_share_of_the_longest() {
        let svg = bars(&["a", "b", "c"], vec![series("", &[500.0, 1000.0, 0.0])]).svg();
        let widths = widths(&svg);
        assert_eq!(widths.len(), 3);
        assert!((widths[0] / widths[1] - 0.5).abs() < 0.01 && widths[2] == 0.0, "{widths:?}");
        assert!(svg.contains(">500 ns</text>") && svg.contains("<title>b: 1 \u{b5}s</title>"), "{svg}");
    }

    #[test]
    fn series_differ_in_their_filling() {
        let svg =
            bars(&["a"], vec![series("p50", &[4e3]), series("p99", &[6e3]), series("max", &[9e3])]).svg();
        let rects: Vec<&str> = svg.lines().filter(|line| line.starts_with("<rect x=")).collect();
        assert_eq!(rects.len(), 6, "three samples and three bars");
        assert!(rects[3].contains("fill:var(--rk-0)") && rects[5].contains("fill:var(--rk-paper)"));
        assert_eq!(svg.matches("<path d=\"M").count(), 2, "the second one is hatched");
    }

    #[test]
    fn no_text_covers_another_or_leaves_the_picture() {
        let long = "a name that is much longer than the place left of the bars, so that it has two lines";
        for names in [&["a"][..], &["n0->n1", long, "n2->n3"], &[long; 40]] {
            for count in [1, 2, 3, 7] {
                for most in [0.0, 1.0, 123_456_789.0] {
                    let of = |number: usize| {
                        let values: Vec<f64> =
                            (0..names.len()).map(|at| most / (at + number + 1) as f64).collect();
                        series(&format!("series {number} with a name"), &values)
                    };
                    let chart = bars(names, (0..count).map(of).collect());
                    let (svg, (width, height)) = draw(&chart);
                    assert_eq!(overlaps(&svg), [], "texts cover each other");
                    for (words, [left, top, right, bottom]) in &svg.boxes {
                        assert!(
                            *left >= 0.0 && *top >= 0.0 && *right <= width && *bottom <= height,
                            "{words} leaves the picture"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn values_that_are_absent_or_no_numbers_have_no_bar() {
        let absent = BarSeries { name: "x".into(), values: vec![None, Some(f64::NAN)] };
        let svg = bars(&["a", "b", "c"], vec![absent]).svg();
        assert_eq!(widths(&svg).len(), 1, "the sample alone: {svg}");
    }

    #[test]
    fn hostile_names_are_text() {
        let hostile = "<script>\"'&\u{202e}\u{5d0}\n";
        let chart = Bars { title: hostile.into(), ..bars(&[hostile], vec![series(hostile, &[1.0])]) };
        let svg = chart.svg();
        assert!(!svg.contains("<script") && !svg.contains('\u{202e}'), "{svg}");
    }
}
