//! Charts: series of points with error bars and lines, over an axis of values or of categories.
//!
//! A chart is data ([`Chart`]); [`Chart::svg`] draws it. The legend stands beside the plot or below it, never on it. Categories
//! with long names stand below each other, with their values from left to right.

mod axis;
mod coincide;
mod legend;
mod model;
mod render;
mod scale;
mod ticks;

pub use axis::{Axis, ScaleKind, Unit};
pub use model::{Across, Chart, Meaning, Point, Series};
