//! Work that consists of several operations and advances with each poll of the node: submitted collectives.
//!
//! Activities advance after every poll, in the thread that drives the node. They may poll the node themselves; such a poll advances no other
//! activity. Ended activities are kept until the lock is released: one may hold the last handle of a region, whose drop takes the lock.

use rackloom_protocol::OperationId;

use crate::fabric::error::Error;

/// Work that advances with each poll of a node. `C` is the state under the node's lock.
pub(in crate::fabric) trait Activity<C>: Send {
    /// Advances as far as possible. `None` while it waits.
    fn advance(&mut self, core: &mut C) -> Option<Result<(), Error>>;
}

/// All activities of a node.
pub(in crate::fabric) struct Activities<C> {
    pub(in crate::fabric) running: Vec<(OperationId, Box<dyn Activity<C>>)>,
    pub(in crate::fabric) ended: Vec<Box<dyn Activity<C>>>,
}

impl<C> Default for Activities<C> {
    fn default() -> Self {
        Self { running: Vec::new(), ended: Vec::new() }
    }
}

impl<C> std::fmt::Debug for Activities<C> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Activities").field("running", &self.running.len()).finish_non_exhaustive()
    }
}

impl<C> Activities<C> {
    /// Returns `true` if there is no activity.
    pub(in crate::fabric) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Takes all activities, to be dropped without the lock.
    pub(in crate::fabric) fn take_all(&mut self) -> Vec<Box<dyn Activity<C>>> {
        let running = std::mem::take(&mut self.running).into_iter().map(|(_, activity)| activity);
        running.chain(std::mem::take(&mut self.ended)).collect()
    }

    /// Returns `true` if ended activities wait to be dropped without the lock.
    pub(in crate::fabric) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Takes the ended activities, to be dropped without the lock.
    pub(in crate::fabric) fn take_ended(&mut self) -> Vec<Box<dyn Activity<C>>> {
        std::mem::take(&mut self.ended)
    }
}
