//! The legend: a sample and a name for each series, and meanings of marks and lines below them.

use super::model::{Chart, Meaning, Series};
use crate::number::coordinate;
use crate::palette::Look;
use crate::svg::{Anchor, Svg};
use crate::text::{FONT, width, wrapped};

/// Greatest width of a name.
const NAME_MAX: f64 = 170.0;
/// Lines of a name at most.
const LINES_MAX: usize = 4;
/// Width of a sample and its gap.
const SAMPLE: f64 = 36.0;
pub(super) const LINE_HEIGHT: f64 = 14.0;
const GAP: f64 = 6.0;

/// Legend whose texts are broken into lines.
#[derive(Debug)]
pub(super) struct Legend {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    sample: Sample,
    lines: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sample {
    Series { number: usize, has_line: bool, has_points: bool },
    Line,
    Point,
    Bar,
    Hollow,
}

impl Legend {
    /// Returns the legend of a chart.
    pub(super) fn of(chart: &Chart) -> Self {
        let points = || chart.series.iter().flat_map(|series| &series.points);
        let has_bars = points().any(|point| point.bar.is_some());
        let has_hollow = points().any(|point| point.is_hollow);
        let entry = |sample, words: &str| Entry { sample, lines: wrapped(words, FONT, NAME_MAX, LINES_MAX) };
        let is_drawn = |series: &Series| {
            !series.name.is_empty() && (!series.line.is_empty() || !series.points.is_empty())
        };
        let series = chart.series.iter().enumerate().filter(|(_, series)| is_drawn(series));
        let mut entries: Vec<Entry> = series
            .map(|(number, series)| {
                let sample = Sample::Series {
                    number,
                    has_line: !series.line.is_empty(),
                    has_points: !series.points.is_empty(),
                };
                entry(sample, &series.name)
            })
            .collect();
        entries.extend(chart.meanings.iter().filter_map(|meaning| match meaning {
            Meaning::Line(words) => Some(entry(Sample::Line, words)),
            Meaning::Point(words) => Some(entry(Sample::Point, words)),
            Meaning::Bar(words) => has_bars.then(|| entry(Sample::Bar, words)),
            Meaning::Hollow(words) => has_hollow.then(|| entry(Sample::Hollow, words)),
        }));
        Self { entries }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns width and height as one column.
    pub(super) fn column(&self) -> (f64, f64) {
        let widest = self.entries.iter().map(Entry::width).fold(0.0, f64::max);
        let heights: f64 = self.entries.iter().map(Entry::height).sum();
        (widest, heights + self.gap_before_meanings())
    }

    fn gap_before_meanings(&self) -> f64 {
        let is_series = |entry: &Entry| matches!(entry.sample, Sample::Series { .. });
        if self.entries.iter().any(is_series) && !self.entries.iter().all(is_series) {
            LINE_HEIGHT
        } else {
            0.0
        }
    }

    /// Draws one column below a point.
    pub(super) fn draw_column(&self, svg: &mut Svg, (x, y): (f64, f64)) {
        let mut y = y;
        let mut was_series = false;
        for entry in &self.entries {
            let is_series = matches!(entry.sample, Sample::Series { .. });
            if was_series && !is_series {
                y += LINE_HEIGHT;
            }
            was_series = is_series;
            entry.draw(svg, (x, y));
            y += entry.height();
        }
    }

    /// Returns the height of as many columns as fit into this width.
    pub(super) fn rows_height(&self, width_max: f64) -> f64 {
        self.rows(width_max)
            .iter()
            .map(|row| row.iter().map(|entry| entry.height()).fold(0.0, f64::max))
            .sum()
    }

    /// Draws columns below a point.
    pub(super) fn draw_rows(&self, svg: &mut Svg, (x, y): (f64, f64), width_max: f64) {
        let step = self.column().0 + 24.0;
        let mut y = y;
        for row in self.rows(width_max) {
            for (number, entry) in row.iter().enumerate() {
                entry.draw(svg, (x + step * number as f64, y));
            }
            y += row.iter().map(|entry| entry.height()).fold(0.0, f64::max);
        }
    }

    fn rows(&self, width_max: f64) -> Vec<Vec<&Entry>> {
        let columns = ((width_max + 24.0) / (self.column().0 + 24.0)).floor().max(1.0) as usize;
        let entries: Vec<&Entry> = self.entries.iter().collect();
        entries.chunks(columns).map(<[_]>::to_vec).collect()
    }
}

impl Entry {
    fn width(&self) -> f64 {
        SAMPLE + self.lines.iter().map(|line| width(line, FONT)).fold(0.0, f64::max)
    }

    fn height(&self) -> f64 {
        LINE_HEIGHT * self.lines.len() as f64 + GAP
    }

    /// Draws the entry below and to the right of a point.
    fn draw(&self, svg: &mut Svg, (x, y): (f64, f64)) {
        let middle = y + LINE_HEIGHT / 2.0;
        self.sample.draw(svg, x, middle);
        for (number, line) in self.lines.iter().enumerate() {
            let class = if matches!(self.sample, Sample::Series { .. }) { "" } else { "soft" };
            svg.text((x + SAMPLE, y + 11.0 + LINE_HEIGHT * number as f64), Anchor::Start, class, line);
        }
    }
}

impl Sample {
    fn draw(self, svg: &mut Svg, x: f64, y: f64) {
        let soft = "stroke=\"var(--rk-soft)\" stroke-width=\"1.5\"";
        match self {
            Self::Series { number, has_line, has_points } => {
                let look = Look::new(number);
                let colour = look.colour();
                if has_line {
                    let line = line_attributes(look, 1.8);
                    svg.line((x, y), (x + 28.0, y), &line);
                }
                if has_points {
                    let mark = look.mark(x + 14.0, y, 4.0);
                    svg.raw(&format!("<path d=\"{mark}\" style=\"fill:{colour};stroke:{colour}\"/>"));
                }
            }
            Self::Line => svg.line((x, y), (x + 28.0, y), soft),
            Self::Point | Self::Hollow => {
                let mark = Look::new(0).mark(x + 14.0, y, 4.0);
                let fill = if self == Self::Point { "var(--rk-soft)" } else { "var(--rk-paper)" };
                svg.raw(&format!(
                    "<path d=\"{mark}\" style=\"fill:{fill};stroke:var(--rk-soft);stroke-width:1.5\"/>"
                ));
            }
            Self::Bar => {
                let [left, middle, right] = [x + 10.0, x + 14.0, x + 18.0].map(coordinate);
                let [top, bottom] = [y - 6.0, y + 6.0].map(coordinate);
                let path = format!("M{left} {top}H{right}M{middle} {top}V{bottom}M{left} {bottom}H{right}");
                svg.raw(&format!("<path d=\"{path}\" fill=\"none\" {soft}/>"));
            }
        }
    }
}

/// Returns the attributes of a line of a series.
pub(super) fn line_attributes(look: Look, width: f64) -> String {
    let dash = look.dash();
    let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
    format!("fill=\"none\" style=\"stroke:{}\" stroke-width=\"{}\"{dash}", look.colour(), coordinate(width))
}
