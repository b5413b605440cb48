//! Progress of a job in pieces.

use serde::{Deserialize, Serialize};

/// Progress of a rank's part of a job, counted in pieces that matter to a user: runs, phases, measurements.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Portion {
    /// Number of completed pieces.
    pub done: u64,
    /// Number of all pieces.
    pub total: u64,
    /// Thousandths of the current piece that are completed, below [`Self::WHOLE`]; 0 if the job does not know.
    pub within: u16,
}

impl Portion {
    /// Thousandths of a piece.
    pub const WHOLE: u16 = 1000;

    /// Returns the progress in whole pieces.
    #[must_use]
    pub const fn new(done: u64, total: u64) -> Self {
        Self { done, total, within: 0 }
    }

    /// Returns this progress with `done` of `total` parts of the current piece.
    #[must_use]
    pub fn with_parts(self, done: u64, total: u64) -> Self {
        let whole = u64::from(Self::WHOLE);
        let within = done.saturating_mul(whole).checked_div(total).unwrap_or(0);
        Self { within: within.min(whole - 1) as u16, ..self }
    }

    /// Returns the completed thousandths of a piece, and all of them.
    #[must_use]
    pub const fn thousandths(self) -> [u64; 2] {
        let whole = Self::WHOLE as u64;
        [self.done.saturating_mul(whole).saturating_add(self.within as u64), self.total.saturating_mul(whole)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_piece_counts_in_thousandths_and_never_as_a_whole_one() {
        assert_eq!(Portion::new(3, 20).with_parts(1, 4).thousandths(), [3250, 20_000]);
        assert_eq!(Portion::new(0, 1).with_parts(7, 7).thousandths(), [999, 1000]);
        assert_eq!(Portion::new(2, 4).with_parts(0, 0).thousandths(), [2000, 4000]);
    }
}
