//! States of the re-choice of one lane, by size, and the result of a trial.
//!
//! Each lane has a state for each size that its calls use, because the calls of a lane have one order on all members.

use rackloom_collectives::Collective;
use rackloom_collectives::adapt::{Adaptation, Outcome};

use super::schedules::Size;

/// Largest number of sizes of a lane. The one whose last call was first is dropped.
const SIZES_MAX: usize = 16;

/// Trial of all suitable algorithms for a collective of one size, and its result.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rechoice {
    /// The collective.
    pub collective: Collective,
    /// Number of bytes of the whole array, or of its first piece if the array does not fit into the staging.
    pub bytes: usize,
    /// Lane of the calls.
    pub lane: usize,
    /// Cause, times and result. Runs are calls.
    pub outcome: Outcome,
}

/// States of the sizes of a lane, in the order of their last calls. `None` for a size with one suitable algorithm.
#[derive(Debug, Default)]
pub(super) struct Adaptations(Vec<(Size, Option<Adaptation>)>);

impl Adaptations {
    /// Returns the state of a size, which becomes the last one.
    pub(super) fn of(
        &mut self,
        size: &Size,
        begin: impl FnOnce() -> Option<Adaptation>,
    ) -> Option<&mut Adaptation> {
        let known = self.0.iter().position(|(known, _)| known == size);
        let entry = match known {
            Some(index) => self.0.remove(index),
            None => (size.clone(), begin()),
        };
        if self.0.len() >= SIZES_MAX {
            self.0.remove(0);
        }
        self.0.push(entry);
        self.0.last_mut().and_then(|(_, adaptation)| adaptation.as_mut())
    }
}
