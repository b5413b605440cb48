//! Figures as SVG text: points that lines join ([`plot`]), and the parts of other figures.
//!
//! Written by hand, without a library: a page of elements whose numbers are readable. Equal findings make
//! equal text, so figures can be committed and compared.

mod scale;

use std::fmt::Write;

pub use scale::{Axes, Axis, Scale};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
#[allow(missing_docs)]
pub const LEFT: f64 = 78.0;
#[allow(missing_docs)]
pub const RIGHT: f64 = 540.0;
#[allow(missing_docs)]
pub const TOP: f64 = 58.0;
#[allow(missing_docs)]
pub const BOTTOM: f64 = 376.0;
/// Colours that also differ in brightness, for readers who do not distinguish hues.
#[allow(missing_docs)]
pub const COLOURS: [&str; 10] = [
    "#0b559f", "#d95f02", "#1b9e77", "#7b3294", "#b8860b", "#c2185b", "#4d4d4d", "#66a61e", "#5ab4e5",
    "#8c510a",
];
/// Radius of a measured point.
#[allow(missing_docs)]
pub const RADIUS: f64 = 3.0;
/// Distance between two lines of text.
const LINE: f64 = 14.0;

/// Line of a plot, with its points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points, horizontal value first.
    pub points: Vec<(f64, f64)>,
}

/// Returns a figure of points that lines join, as SVG text.
#[must_use]
pub fn plot(title: &str, note: &str, axes: Axes<'_>, series: &[Series]) -> String {
    let all = || series.iter().flat_map(|one| &one.points);
    let x = Scale::over(axes.x, all().map(|(at, _)| *at), LEFT, RIGHT);
    let y = Scale::over(axes.y, all().map(|(_, value)| *value), BOTTOM, TOP);
    let mut svg = Svg::begin(title, note);
    frame(&mut svg, axes, &x, &y);
    let mut legend_height = TOP + 8.0;
    for (one, colour) in series.iter().zip(COLOURS.iter().cycle()) {
        draw(&mut svg, colour, &one.points, &x, &y);
        for (at, value) in &one.points {
            if let (Some(at), Some(height)) = (x.coordinate(*at), y.coordinate(*value)) {
                svg.circle((at, height), RADIUS, colour, colour);
            }
        }
        legend_height = legend(&mut svg, legend_height, colour, &one.name);
    }
    svg.line("</svg>");
    svg.text
}

#[allow(missing_docs)]
pub fn frame(svg: &mut Svg, axes: Axes<'_>, x: &Scale, y: &Scale) {
    let marks = match axes.names {
        None => x.marks(),
        Some(names) => names.iter().zip(1..).map(|(name, at)| (f64::from(at), (*name).to_owned())).collect(),
    };
    for (value, words) in marks {
        let Some(at) = x.coordinate(value) else { continue };
        svg.stroke((at, TOP), (at, BOTTOM), "#e4e4e4", 1.0);
        svg.text(at, BOTTOM + 17.0, "middle", "", &words);
    }
    for (value, words) in y.marks() {
        let Some(at) = y.coordinate(value) else { continue };
        svg.stroke((LEFT, at), (RIGHT, at), "#e4e4e4", 1.0);
        svg.text(LEFT - 7.0, at + 4.0, "end", "", &words);
    }
    svg.stroke((LEFT, BOTTOM), (RIGHT, BOTTOM), "#222222", 1.5);
    svg.stroke((LEFT, TOP), (LEFT, BOTTOM), "#222222", 1.5);
    svg.text((LEFT + RIGHT) / 2.0, BOTTOM + 42.0, "middle", "", axes.x.label);
    let middle = (TOP + BOTTOM) / 2.0;
    let turned = format!(r#" transform="rotate(-90 18 {middle})""#);
    svg.text(18.0, middle, "middle", &turned, axes.y.label);
}

#[allow(missing_docs)]
pub fn draw(svg: &mut Svg, colour: &str, line: &[(f64, f64)], x: &Scale, y: &Scale) {
    let coordinates = line.iter().filter_map(|(at, value)| Some((x.coordinate(*at)?, y.coordinate(*value)?)));
    let mut coordinates: Vec<(f64, f64)> = coordinates.collect();
    if let [(at, height)] = coordinates[..] {
        // A single point has a line too.
        coordinates = vec![(at - 10.0, height), (at + 10.0, height)];
    }
    let points: Vec<String> = coordinates.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let points = points.join(" ");
    svg.line(&format!(r#"<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>"#));
}

/// Draws one series' entry of the legend; returns the height of the next one.
#[allow(missing_docs)]
pub fn legend(svg: &mut Svg, height: f64, colour: &str, name: &str) -> f64 {
    svg.stroke((RIGHT + 18.0, height), (RIGHT + 46.0, height), colour, 1.6);
    svg.line(&format!(r#"<circle cx="{:.1}" cy="{height:.1}" r="4" fill="{colour}"/>"#, RIGHT + 32.0));
    let lines = wrapped(name);
    for (line, number) in lines.iter().zip(0..) {
        svg.text(RIGHT + 54.0, height + 4.0 + f64::from(number) * LINE, "start", "", line);
    }
    height + LINE * (lines.len() - 1) as f64 + 20.0
}

/// Breaks a text into lines that fit beside the figure.
fn wrapped(words: &str) -> Vec<String> {
    const CHARACTERS_MAX: usize = 26;
    let mut lines: Vec<String> = Vec::new();
    for word in words.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= CHARACTERS_MAX => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Lines of SVG.
#[derive(Default)]
#[allow(missing_docs)]
pub struct Svg {
    pub text: String,
}

impl Svg {
    /// Begins a figure.
    #[allow(missing_docs)]
    pub fn begin(title: &str, note: &str) -> Self {
        let mut svg = Self::default();
        svg.line(&format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">"#
        ));
        svg.line(r##"<rect width="100%" height="100%" fill="#ffffff"/>"##);
        svg.text(LEFT, 22.0, "start", r#" font-size="15" font-weight="bold""#, title);
        svg.text(LEFT, 42.0, "start", r##" fill="#444444""##, note);
        svg
    }

    #[allow(missing_docs)]
    pub fn circle(&mut self, (x, y): (f64, f64), radius: f64, fill: &str, stroke: &str) {
        self.line(&format!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{fill}" stroke="{stroke}" stroke-width="1.5"/>"#
        ));
    }

    #[allow(missing_docs)]
    pub fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    #[allow(missing_docs)]
    pub fn stroke(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        self.line(&format!(
            r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" stroke="{colour}" stroke-width="{width}"/>"#,
            from.0, from.1, to.0, to.1
        ));
    }

    #[allow(missing_docs)]
    pub fn text(&mut self, x: f64, y: f64, anchor: &str, attributes: &str, words: &str) {
        let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        // Writing to a String cannot fail.
        let _ = writeln!(
            self.text,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}"{attributes}>{words}</text>"#
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legend_is_complete_and_no_line_leaves_the_figure() {
        let name = "bulk blocked, a channel for each class, round-robin";
        let lines = wrapped(name);
        assert!(lines.len() > 1 && lines.iter().all(|line| line.len() <= 26), "{lines:?}");
        assert_eq!(lines.join(" "), name);
    }

    #[test]
    fn a_plot_has_a_line_for_each_series_and_a_mark_for_each_name() {
        let axis = |label| Axis { label, is_logarithmic: false };
        let axes = Axes { x: axis("planes"), y: axis("time"), names: Some(&["one", "two"]) };
        let series = |name: &str| Series { name: name.to_owned(), points: vec![(1.0, 5.0), (2.0, 7.0)] };
        let svg = plot("t", "n", axes, &[series("a"), series("b & c")]);
        assert_eq!(svg.matches("<polyline").count(), 2);
        for text in [">one<", ">two<", ">planes<", ">b &amp; c<"] {
            assert!(svg.contains(text), "{text} in {svg}");
        }
    }
}
