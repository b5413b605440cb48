//! Axes of the figure of an experiment.

use rackloom_drawing::chart as drawing;

/// Label and kind of an axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis<'a> {
    /// Text beside the axis, with the unit of the values in parentheses at the end.
    pub label: &'a str,
    /// True if equal steps are equal factors.
    pub is_logarithmic: bool,
}

/// Both axes of a figure.
#[derive(Clone, Copy, Debug)]
pub struct Axes<'a> {
    /// Horizontal.
    pub x: Axis<'a>,
    /// Vertical.
    pub y: Axis<'a>,
    /// Names of the kinds 1, 2, ... of a horizontal axis that shows kinds instead of numbers. If the slice is empty, each series is a
    /// kind, or each row, named by its setting, if a series has several.
    pub names: Option<&'a [&'a str]>,
}

impl Axis<'_> {
    /// Returns the axis of a chart.
    pub(crate) fn drawn(self) -> drawing::Axis {
        if self.is_logarithmic {
            drawing::Axis::logarithmic(self.label)
        } else {
            drawing::Axis::linear(self.label)
        }
    }
}
