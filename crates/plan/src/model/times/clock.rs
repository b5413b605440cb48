//! Clocks under which members run.

/// Clock under which a member runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Time of the host, for real processes.
    Wall,
    /// Simulated time.
    Virtual,
}
