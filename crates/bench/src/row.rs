//! One row of the table: its measurement, raw loop, unit and goal.

use rackloom_calibrate::{Expected, Goal};

use crate::bench::Bench;
use crate::measure_error::MeasureError;

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Operations, records or frames per second.
    PerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Per cent of one processor.
    Percent,
    /// Bytes of memory.
    Bytes,
}

impl Unit {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::PerSecond => "per_s",
            Self::Nanoseconds => "ns",
            Self::Percent => "percent",
            Self::Bytes => "bytes",
        }
    }

    /// Returns the symbols of the unit and its multiples in tables.
    #[cfg(test)]
    pub(super) const fn symbols(self) -> &'static [&'static str] {
        match self {
            Self::PerSecond => &["/s", "k/s", "M/s", "G/s"],
            Self::Nanoseconds => &["ns", "us", "ms", "s"],
            Self::Percent => &["%"],
            Self::Bytes => &["B", "KiB", "MiB", "GiB"],
        }
    }
}

/// One take of a figure.
pub(super) type Take<'b> = Box<dyn FnMut() -> Result<f64, MeasureError> + 'b>;

/// Both sides of a comparison, ready for measurement. A figure without a raw loop is not compared.
pub(super) struct Sides<'b> {
    pub(super) raw: Option<Take<'b>>,
    pub(super) ours: Take<'b>,
    /// Round trip of a cache line, for rows in which only takes with equally distant processors can be compared.
    pub(super) line_ns: Option<Take<'b>>,
}

impl<'b> Sides<'b> {
    pub(super) fn new(
        raw: impl FnMut() -> Result<f64, MeasureError> + 'b,
        ours: impl FnMut() -> Result<f64, MeasureError> + 'b,
    ) -> Self {
        Self { raw: Some(Box::new(raw)), ours: Box::new(ours), line_ns: None }
    }

    /// Creates sides that have a thread on each of two processors.
    pub(super) fn across(
        raw: impl FnMut() -> Result<f64, MeasureError> + 'b,
        ours: impl FnMut() -> Result<f64, MeasureError> + 'b,
        line_ns: impl FnMut() -> Result<f64, MeasureError> + 'b,
    ) -> Self {
        Self { line_ns: Some(Box::new(line_ns)), ..Self::new(raw, ours) }
    }
}

/// One row of the table.
pub(super) struct Row {
    /// Name for `--only`.
    pub(super) name: &'static str,
    /// Description of our side.
    pub(super) ours: &'static str,
    /// Description of the raw loop; empty if there is none.
    pub(super) raw: &'static str,
    pub(super) unit: Unit,
    pub(super) goal: Goal,
    /// Expected figure of the raw loop.
    pub(super) expected: Option<Expected>,
    /// Prepares both sides.
    pub(super) begin: fn(&Bench) -> Result<Sides<'_>, MeasureError>,
}
