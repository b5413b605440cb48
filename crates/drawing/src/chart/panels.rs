//! Several charts below each other in one picture: panels of one figure that has too many lines for one plot.
//!
//! All panels have one range of numbers on each axis, so that heights can be compared. A series has one look in all panels if it has one
//! index in all of them; a series without points keeps an index free and is in no legend.

use super::bars::header;
use super::model::Chart;
use super::render::{WIDTH, description, drawn, extent};
use crate::svg::Svg;

/// Space between panels.
const GAP: f64 = 6.0;

/// Charts below each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Panels {
    /// Title of the figure.
    pub title: String,
    /// Text below the title. May be empty.
    pub note: String,
    /// Charts from top to bottom. The only panel of a figure needs no title.
    pub panels: Vec<Chart>,
}

impl Panels {
    /// Divides the series of a chart among panels of at most `lines_max` lines. Of more than `panels_max` panels the first ones are kept, and
    /// the note says how many lines they have; `rest` says where the others are.
    #[must_use]
    pub fn divided(chart: Chart, lines_max: usize, panels_max: usize, rest: &str) -> Self {
        let (title, count) = (chart.title.clone(), chart.series.len());
        let lines_max = lines_max.max(1);
        if count <= lines_max {
            let note = chart.note.clone();
            return Self {
                title,
                note,
                panels: vec![Chart { title: String::new(), note: String::new(), ..chart }],
            };
        }
        let part = |(number, series): (usize, &[_])| Chart {
            title: format!("lines {} to {}", number * lines_max + 1, number * lines_max + series.len()),
            note: String::new(),
            series: series.to_vec(),
            ..chart.clone()
        };
        let panels: Vec<Chart> =
            chart.series.chunks(lines_max).take(panels_max.max(1)).enumerate().map(part).collect();
        let kept: usize = panels.iter().map(|panel| panel.series.len()).sum();
        let stated = if kept < count {
            format!("The first {kept} of {count} lines. {rest}")
        } else {
            format!("{count} lines in {} panels.", panels.len())
        };
        let note = [chart.note.as_str(), &stated].into_iter().filter(|part| !part.is_empty());
        Self { title, note: note.collect::<Vec<_>>().join(" "), panels }
    }

    /// Returns the figure as SVG text.
    #[must_use]
    pub fn svg(&self) -> String {
        if let [only] = &self.panels[..]
            && only.title.is_empty()
        {
            return Chart { title: self.title.clone(), note: self.note.clone(), ..only.clone() }.svg();
        }
        let (svg, size) = draw(self);
        let parts: Vec<String> =
            self.panels.iter().map(|panel| format!("{}: {}", panel.title, description(panel))).collect();
        svg.finish(size, &self.title, &format!("{} {}", self.note, parts.join(" ")))
    }
}

fn draw(panels: &Panels) -> (Svg, (f64, f64)) {
    let covered: Vec<(f64, f64)> = panels.panels.iter().flat_map(extent).collect();
    let mut svg = Svg::default();
    let mut y = header(&mut svg, &panels.title, &panels.note);
    let mut width = WIDTH;
    for panel in &panels.panels {
        let (part, size) = drawn(panel, &covered);
        svg.place_below(y, part);
        width = width.max(size.0);
        y += size.1 + GAP;
    }
    (svg, (width, y))
}

#[cfg(test)]
mod tests {
    use super::super::{Across, Axis, Meaning, Point, Series};
    use super::*;
    use crate::svg::overlaps;

    fn chart(count: usize) -> Chart {
        let series = |number: usize| Series {
            name: format!("line {number}"),
            line: vec![(1.0, number as f64), (2.0, 2.0 * number as f64)],
            points: vec![Point::new(1.0, number as f64), Point::new(2.0, 2.0 * number as f64)],
        };
        Chart {
            title: "a title".into(),
            note: "a note.".into(),
            x: Across::Values(Axis::linear("at")),
            y: Axis::from_zero("time (us)"),
            series: (0..count).map(series).collect(),
            meanings: vec![Meaning::Point("measured".into())],
        }
    }

    #[test]
    fn every_line_is_in_a_panel_and_no_text_covers_another() {
        for count in [0, 1, 16, 17, 60] {
            let panels = Panels::divided(chart(count), 16, 40, "");
            let svg = panels.svg();
            assert_eq!(svg.matches("<polyline").count(), count, "{count}");
            assert_eq!(svg.matches("<svg ").count(), 1);
            let (svg, (width, height)) = draw(&panels);
            assert_eq!(overlaps(&svg), [], "texts cover each other");
            for (words, [left, top, right, bottom]) in &svg.boxes {
                assert!(*left >= 0.0 && *top >= 0.0 && *right <= width && *bottom <= height, "{words}");
            }
        }
    }

    #[test]
    fn lines_beyond_the_bound_are_counted() {
        let panels = Panels::divided(chart(60), 16, 2, "The table has all.");
        assert_eq!(panels.note, "a note. The first 32 of 60 lines. The table has all.");
        assert_eq!((panels.panels.len(), panels.panels[1].title.as_str()), (2, "lines 17 to 32"));
        assert_eq!(panels.svg().matches("<polyline").count(), 32);
        assert_eq!(Panels::divided(chart(60), 16, 40, "").note, "a note. 60 lines in 4 panels.");
        assert_eq!(Panels::divided(chart(16), 16, 2, "").note, "a note.");
    }

    #[test]
    fn equal_values_have_equal_heights_in_all_panels() {
        let level = |value: f64, more: f64| Chart {
            title: "a panel".into(),
            series: vec![Series {
                name: "a".into(),
                line: vec![(1.0, value), (2.0, more)],
                points: Vec::new(),
            }],
            ..chart(0)
        };
        let panels = Panels {
            title: "a title".into(),
            note: String::new(),
            panels: vec![level(10.0, 10.0), level(10.0, 900.0)],
        };
        let svg = panels.svg();
        let heights: Vec<&str> = svg
            .lines()
            .filter_map(|line| line.strip_prefix("<polyline points=\"")?.split([',', ' ']).nth(1))
            .collect();
        assert_eq!((heights.len(), heights[0]), (2, heights[1]), "{svg}");
    }
}
