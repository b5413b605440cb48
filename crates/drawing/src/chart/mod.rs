//! Charts: series of points with error bars and lines, over an axis of values or of categories.
//!
//! A chart is data ([`Chart`]); [`Chart::svg`] draws it. The legend stands beside the plot or below it, never on it. Categories
//! with long names stand below each other, with their values from left to right. [`Panels`] has several charts below each other, [`Bars`] has values as bars, and [`Lanes`] is a time line.

mod axis;
mod bars;
mod coincide;
mod lanes;
mod legend;
mod model;
mod panels;
mod render;
mod scale;
mod ticks;

pub use axis::{Axis, ScaleKind, Unit};
pub use bars::{BarSeries, Bars};
pub use lanes::{Lane, Lanes, Mark};
pub use model::{Across, Chart, Meaning, Point, Series};
pub use panels::Panels;
