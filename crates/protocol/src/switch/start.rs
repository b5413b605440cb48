//! Start of a member: no member is announced as lost while a path to it may still come up.

use alloc::vec::Vec;

use super::forwarder::Forwarder;
use crate::ids::NodeId;
use crate::time::Instant;

/// Phase of the start. A rack comes up link by link, and the first path to a member may go down before the second is
/// known. During the time after which a silent neighbour counts as dead, a member that was reached is not announced
/// as lost while a path may lead there over links that have not been up yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Start {
    /// No time has passed yet.
    #[default]
    Ahead,
    /// The phase lasts until then. `is_awaiting` is true if any member is waited for.
    Under { until: Instant, is_awaiting: bool },
    /// Members without a path are lost.
    Over,
}

impl Start {
    /// Returns true if any member that was reached is waited for.
    pub(super) const fn is_awaiting(self) -> bool {
        matches!(self, Self::Under { is_awaiting: true, .. })
    }

    /// Returns the time at which awaited members count as lost.
    pub(super) const fn deadline(self) -> Instant {
        match self {
            Self::Under { until, is_awaiting: true } => until,
            _ => Instant::NEVER,
        }
    }
}

impl Forwarder {
    /// During the start: returns, by member, if a path may still come up. Returns `None` if all reached members still
    /// are, or the start is over.
    pub(super) fn may_still_reach(&mut self) -> Option<Vec<bool>> {
        let Start::Under { is_awaiting, .. } = &mut self.start else { return None };
        let is_gone =
            |(index, reached): (usize, &bool)| *reached && !self.table.reaches(NodeId(index as u16));
        *is_awaiting = self.reached.iter().enumerate().any(is_gone);
        is_awaiting.then(|| self.table.may_reach(self.config.node))
    }

    /// Ends the start if its time is over.
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
