//! Work that consists of several operations and advances with each poll of the node: submitted collectives.
//!
//! Activities advance after every poll, in the thread that drives the node. They may poll the node themselves; such a poll advances no other
//! activity. Ended activities are kept until the lock is released: one may hold the last handle of a region, whose drop takes the lock.

use rackloom_protocol::OperationId;

use super::core::Core;
use super::error::Error;
use super::table::Ended;

/// Work that advances with each poll.
pub(super) trait Activity: Send {
    /// Advances as far as possible. `None` while it waits.
    fn advance(&mut self, core: &mut Core) -> Option<Result<(), Error>>;
}

/// All activities of a node.
#[derive(Default)]
pub(super) struct Activities {
    running: Vec<(OperationId, Box<dyn Activity>)>,
    ended: Vec<Box<dyn Activity>>,
}

impl std::fmt::Debug for Activities {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Activities").field("running", &self.running.len()).finish_non_exhaustive()
    }
}

impl Activities {
    /// Returns `true` if there is no activity.
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Takes all activities, to be dropped without the lock.
    pub(super) fn take_all(&mut self) -> Vec<Box<dyn Activity>> {
        let running = std::mem::take(&mut self.running).into_iter().map(|(_, activity)| activity);
        running.chain(std::mem::take(&mut self.ended)).collect()
    }

    /// Returns `true` if ended activities wait to be dropped without the lock.
    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Takes the ended activities, to be dropped without the lock.
    pub(super) fn take_ended(&mut self) -> Vec<Box<dyn Activity>> {
        std::mem::take(&mut self.ended)
    }
}

impl Core {
    /// Begins an activity. Its end completes `operation`.
    pub(super) fn begin(&mut self, operation: OperationId, activity: Box<dyn Activity>) {
        self.activities.running.push((operation, activity));
        self.advance_activities();
    }

    /// Advances every activity.
    pub(super) fn advance_activities(&mut self) {
        // The list is empty meanwhile, so polls by an activity find none.
        let mut running = std::mem::take(&mut self.activities.running);
        let mut place = 0;
        while place < running.len() {
            match running[place].1.advance(self) {
                None => place += 1,
                Some(result) => {
                    let (operation, activity) = running.remove(place);
                    self.table.conclude(operation, result.map(|()| Ended::default()));
                    self.activities.ended.push(activity);
                }
            }
        }
        running.append(&mut self.activities.running);
        self.activities.running = running;
    }
}
