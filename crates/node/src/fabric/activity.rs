//! Work of several operations that goes on by itself, turn by turn, whoever drives the node: submitted collectives.
//!
//! An activity is looked at after every turn. It may make turns of its own, which look at no other. What has ended is kept until the
//! lock is free, because it may hold the last handle of a region, which takes the lock when it goes.

use rackloom_protocol::OperationId;

use super::core::Core;
use super::error::Error;
use super::table::Ended;

/// Something that goes on.
pub(super) trait Activity: Send {
    /// Go on as far as possible; `None` while it waits.
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
    /// Whether none goes on.
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Everything, to be dropped without the lock.
    pub(super) fn take_all(&mut self) -> Vec<Box<dyn Activity>> {
        let running = std::mem::take(&mut self.running).into_iter().map(|(_, activity)| activity);
        running.chain(std::mem::take(&mut self.ended)).collect()
    }

    /// Whether something waits to be dropped without the lock.
    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// What has ended, to be dropped without the lock.
    pub(super) fn take_ended(&mut self) -> Vec<Box<dyn Activity>> {
        std::mem::take(&mut self.ended)
    }
}

impl Core {
    /// Begin an activity; its end is that of `operation`.
    pub(super) fn begin(&mut self, operation: OperationId, activity: Box<dyn Activity>) {
        self.activities.running.push((operation, activity));
        self.advance_activities();
    }

    /// Let every activity go on.
    pub(super) fn advance_activities(&mut self) {
        // Empty also while they are being looked at: their own turns find none.
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
