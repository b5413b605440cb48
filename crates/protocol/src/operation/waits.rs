//! Waits on words of own memory, flushes and fences: things that end when something else has.

use alloc::vec::Vec;

use super::{Condition, OperationId};
use crate::ids::{NodeId, RegionId};

/// A wait on a word of own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordWait {
    /// The caller's name for it.
    pub operation: OperationId,
    /// Region of the word.
    pub region: RegionId,
    /// Its offset.
    pub offset: u64,
    /// What to compare for.
    pub condition: Condition,
    /// What to compare with.
    pub value: u64,
    /// The node whose loss ends the wait.
    pub depends_on: Option<NodeId>,
    /// A look at the word is under way.
    pub is_checking: bool,
    /// The word may have changed since that look began.
    pub is_stale: bool,
    /// The node whose loss ends the wait is lost: a last look decides.
    pub is_last: bool,
}

/// How far the streams to one node had got when a flush or fence was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The node.
    pub node: NodeId,
    /// Next operation of the request stream, then.
    pub request: u32,
    /// Long transfers asked for until then.
    pub bulk_asked: u64,
    /// Next operation of the bulk stream once the last of those had been cut into packets.
    pub bulk: Option<u32>,
}

/// A flush that waits.
#[derive(Clone, Debug)]
pub struct Flush {
    /// The caller's name for it.
    pub operation: OperationId,
    /// What must be reached.
    pub marks: Vec<Mark>,
    /// A node was lost, or a posted store to it had failed.
    pub failed: Option<(NodeId, crate::error::OperationError)>,
}
