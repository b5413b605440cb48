//! Direction in which a figure is good: rates and durations.

/// Direction in which a figure is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// Rates: higher is better.
    HigherIsBetter,
    /// Durations, processor time, memory: lower is better.
    LowerIsBetter,
}
