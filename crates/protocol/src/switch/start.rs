//! The first moments of a member's life, in which nobody is called lost who may still be reached.

use alloc::vec::Vec;

use super::forwarder::Forwarder;
use crate::ids::NodeId;
use crate::time::Instant;

/// A rack comes up link by link, and the first path to a member may go before the second has been heard of. For as long as a
/// silent neighbour is given, a member that has been reached is not called lost while a path may lead there over links that
/// have not been up yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Start {
    /// No time has passed yet.
    #[default]
    Ahead,
    /// Until then. Whether anybody is being waited for.
    Under { until: Instant, is_awaiting: bool },
    /// Who has no path is lost.
    Over,
}

impl Start {
    /// Whether anybody who has been reached is waited for.
    pub(super) const fn is_awaiting(self) -> bool {
        matches!(self, Self::Under { is_awaiting: true, .. })
    }

    /// When whoever is being waited for is given up.
    pub(super) const fn deadline(self) -> Instant {
        match self {
            Self::Under { until, is_awaiting: true } => until,
            _ => Instant::NEVER,
        }
    }
}

impl Forwarder {
    /// At the start: by member, whether a path may still come. Nothing where all that were reached still are, or no more.
    pub(super) fn may_still_reach(&mut self) -> Option<Vec<bool>> {
        let Start::Under { is_awaiting, .. } = &mut self.start else { return None };
        let is_gone =
            |(index, reached): (usize, &bool)| *reached && !self.table.reaches(NodeId(index as u16));
        *is_awaiting = self.reached.iter().enumerate().any(is_gone);
        is_awaiting.then(|| self.table.may_reach(self.config.node))
    }

    /// The start does not last.
    pub(super) fn end_start(&mut self, now: Instant) {
        match self.start {
            Start::Ahead => {
                let until = now + self.config.timers.detection_ns();
                self.start = Start::Under { until, is_awaiting: false };
            }
            Start::Under { until, is_awaiting } if now >= until => {
                self.start = Start::Over;
                self.table_is_stale |= is_awaiting;
                self.reach_is_stale = true;
            }
            _ => {}
        }
    }
}
