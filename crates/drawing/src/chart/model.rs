//! Content of a chart.

use super::axis::Axis;

/// Content of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Title.
    pub title: String,
    /// Text below the title, such as a question that the chart answers. May be empty.
    pub note: String,
    /// Horizontal axis.
    pub x: Across,
    /// Axis of the values.
    pub y: Axis,
    /// Series in the order of the legend.
    pub series: Vec<Series>,
    /// Meanings of marks and lines, below the legend.
    pub meanings: Vec<Meaning>,
}

/// Axis across which the values are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Across {
    /// Numbers.
    Values(Axis),
    /// Kinds, at 1, 2, ... in the order of their names.
    Categories {
        /// Text beside the axis.
        label: String,
        /// Names.
        names: Vec<String>,
        /// True if the names are steps of one quantity, so that lines between them have a meaning.
        is_ordered: bool,
    },
}

/// Points of one kind, with a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points of the line, horizontal value first. In categories without an order, each is a line of its own.
    pub line: Vec<(f64, f64)>,
    /// Points.
    pub points: Vec<Point>,
}

/// Point of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Horizontal value.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// Ends of the error bar, the lower one first.
    pub bar: Option<(f64, f64)>,
    /// True to draw the outline alone.
    pub is_hollow: bool,
}

impl Point {
    /// Returns a filled point without an error bar.
    #[must_use]
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, bar: None, is_hollow: false }
    }
}

/// Meaning of a kind of mark, for the legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Meaning of lines.
    Line(String),
    /// Meaning of points.
    Point(String),
    /// Meaning of error bars. It is left out if no point has one.
    Bar(String),
    /// Meaning of outlines. It is left out if no point is one.
    Hollow(String),
}
