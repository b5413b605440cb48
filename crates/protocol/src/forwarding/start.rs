//! Start of a member: no member is announced as lost while a path to it may still come up.

use alloc::vec::Vec;

use super::forwarder::{Forwarder, ReachCheck};
use super::start_phase::Start;
use crate::ids::NodeId;
use crate::time::Instant;

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
                self.reach_check = ReachCheck::All;
            }
            _ => {}
        }
    }
}
