//! One row: what is measured, by which loop, in which unit, and what is asked of it.

use std::io;

use rackloom_calibrate::{Expected, Goal};

use super::bench::Bench;

/// Why there is no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// The machine does not allow it or lacks what it takes: nobody's fault.
    NotHere(String),
    /// Something that should work did not.
    Failed(String),
    /// Somebody wanted it to end.
    Interrupted,
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<rackloom::fabric::Error> for Obstacle {
    fn from(error: rackloom::fabric::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<rackloom::memory::AllocateError> for Obstacle {
    fn from(error: rackloom::memory::AllocateError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// In what a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Operations, records or frames per second.
    PerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Of one processor.
    Percent,
    /// Of memory.
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
}

/// One take of a figure.
pub(super) type Take<'b> = Box<dyn FnMut() -> Result<f64, Obstacle> + 'b>;

/// The two sides, ready to be taken; without a raw loop the figure stands alone.
pub(super) struct Sides<'b> {
    pub(super) raw: Option<Take<'b>>,
    pub(super) ours: Take<'b>,
    /// What a cache line takes there and back, where only takes that find the processors equally far apart can be compared.
    pub(super) line_ns: Option<Take<'b>>,
}

impl<'b> Sides<'b> {
    pub(super) fn new(
        raw: impl FnMut() -> Result<f64, Obstacle> + 'b,
        ours: impl FnMut() -> Result<f64, Obstacle> + 'b,
    ) -> Self {
        Self { raw: Some(Box::new(raw)), ours: Box::new(ours), line_ns: None }
    }

    /// The same, where each side has a thread on either of two processors.
    pub(super) fn across(
        raw: impl FnMut() -> Result<f64, Obstacle> + 'b,
        ours: impl FnMut() -> Result<f64, Obstacle> + 'b,
        line_ns: impl FnMut() -> Result<f64, Obstacle> + 'b,
    ) -> Self {
        Self { line_ns: Some(Box::new(line_ns)), ..Self::new(raw, ours) }
    }
}

/// One row of the table.
pub(super) struct Row {
    /// What `--only` takes.
    pub(super) name: &'static str,
    /// What ours does.
    pub(super) ours: &'static str,
    /// What the raw loop does; empty if the figure stands alone.
    pub(super) raw: &'static str,
    pub(super) unit: Unit,
    pub(super) goal: Goal,
    /// What one may expect of the raw loop.
    pub(super) expected: Option<Expected>,
    /// Make both sides ready.
    pub(super) begin: fn(&Bench) -> Result<Sides<'_>, Obstacle>,
}
