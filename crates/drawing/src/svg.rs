//! Elements of SVG as lines of text.

use crate::number::coordinate;
use crate::palette::STYLE;
use crate::text::{escaped, hint};

/// Side of a text at which its point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Elements of one picture, and the texts' boxes, by which tests find texts that cover each other.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    body: String,
    #[cfg(test)]
    pub(crate) boxes: Vec<(String, [f64; 4])>,
}

impl Svg {
    /// Adds a line of text that is SVG.
    pub(crate) fn raw(&mut self, line: &str) {
        self.body.push_str(line);
        self.body.push('\n');
    }

    /// Adds another picture below a height.
    pub(crate) fn place_below(&mut self, y: f64, other: Self) {
        #[cfg(test)]
        self.boxes.extend(other.boxes.iter().map(|(words, [left, top, right, bottom])| {
            (words.clone(), [*left, top + y, *right, bottom + y])
        }));
        self.raw(&format!("<g transform=\"translate(0 {})\">", coordinate(y)));
        self.body.push_str(&other.body);
        self.raw("</g>");
    }

    /// Adds a straight line.
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), attributes: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(coordinate);
        self.raw(&format!(r#"<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {attributes}/>"#));
    }

    /// Adds a text at a point of its baseline. The font is of the usual size unless the class has another one.
    pub(crate) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, words: &str) {
        self.turned((x, y), anchor, class, words, 0.0);
    }

    /// Adds a text of this size that begins at a point of its baseline.
    pub(crate) fn sized(&mut self, at: (f64, f64), class: &str, words: &str, font_size: f64) {
        let [x, y, size] = [at.0, at.1, font_size].map(coordinate);
        #[cfg(test)]
        self.note(at, Anchor::Start, font_size, words, 0.0);
        let words = escaped(words);
        self.raw(&format!(
            r#"<text x="{x}" y="{y}" class="{class}" style="font-size:{size}px">{words}</text>"#
        ));
    }

    /// Adds a text that is turned by degrees around its point.
    pub(crate) fn turned(&mut self, at: (f64, f64), anchor: Anchor, class: &str, words: &str, degrees: f64) {
        let [x, y] = [at.0, at.1].map(coordinate);
        let anchor_text = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let class_text = if class.is_empty() { String::new() } else { format!(r#" class="{class}""#) };
        let turn = if degrees == 0.0 {
            String::new()
        } else {
            format!(r#" transform="rotate({} {x} {y})""#, coordinate(degrees))
        };
        #[cfg(test)]
        self.note(at, anchor, if class.contains("title") { 16.0 } else { 12.0 }, words, degrees);
        let words = escaped(words);
        self.raw(&format!(r#"<text x="{x}" y="{y}"{anchor_text}{class_text}{turn}>{words}</text>"#));
    }

    /// Notes the box of a text that is level or upright.
    #[cfg(test)]
    fn note(&mut self, (x, y): (f64, f64), anchor: Anchor, size: f64, words: &str, degrees: f64) {
        let width = crate::text::width(words, size);
        let before = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        let bounds = match degrees {
            0.0 => [x - before, y - size * 0.8, x - before + width, y + size * 0.25],
            // Upward.
            -90.0 => [x - size * 0.8, y - width + before, x + size * 0.25, y + before],
            _ => return,
        };
        self.boxes.push((words.to_owned(), bounds));
    }

    /// Ends the picture. A screen reader reads `title` and `description`.
    pub(crate) fn finish(self, (width, height): (f64, f64), title: &str, description: &str) -> String {
        let [width, height] = [width, height].map(|length| coordinate(length.ceil()));
        let [title, description] = [title, description].map(hint);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"rk\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\" aria-label=\"{title}\">\n\
             <title>{title}</title>\n<desc>{description}</desc>\n<style>{STYLE}</style>\n\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// Returns pairs of texts whose boxes cover each other.
#[cfg(test)]
pub(crate) fn overlaps(svg: &Svg) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (index, (words, one)) in svg.boxes.iter().enumerate() {
        for (others, other) in &svg.boxes[index + 1..] {
            if one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3] {
                found.push((words.clone(), others.clone()));
            }
        }
    }
    found
}
