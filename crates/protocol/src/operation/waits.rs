//! Waits for words of own memory, flushes and fences.

use alloc::vec::Vec;

use super::{Condition, OperationId};
use crate::ids::{NodeId, RegionId};

/// Wait for a word of own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordWait {
    /// Identifier chosen by the caller.
    pub operation: OperationId,
    /// Region of the word.
    pub region: RegionId,
    /// Offset of the word.
    pub offset: u64,
    /// Condition to satisfy.
    pub condition: Condition,
    /// Value to compare with.
    pub value: u64,
    /// Node whose loss ends the wait.
    pub depends_on: Option<NodeId>,
    /// True if a read of the word is outstanding.
    pub is_checking: bool,
    /// True if the word may have changed since that read began.
    pub is_stale: bool,
    /// True if the node is lost, so that one last read decides.
    pub is_last: bool,
}

impl WordWait {
    /// Returns true if the condition holds. `read` returns a word of own memory.
    pub fn is_satisfied(&self, read: &mut impl FnMut(RegionId, u64) -> Option<u64>) -> bool {
        read(self.region, self.offset).is_some_and(|word| self.condition.holds(word, self.value))
    }
}

/// Progress of the streams to one node when a flush or fence began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Target node.
    pub node: NodeId,
    /// Number of the next operation of the request stream at that time.
    pub request: u32,
    /// Number of long transfers begun until then.
    pub bulk_requested: u64,
    /// Number of the next operation of the bulk stream after the last of those was cut into packets.
    pub bulk: Option<u32>,
}

/// Waiting flush.
#[derive(Clone, Debug)]
pub struct Flush {
    /// Identifier chosen by the caller.
    pub operation: OperationId,
    /// Marks that must be reached.
    pub marks: Vec<Mark>,
    /// The node that was lost, or that refused a posted store, and the error.
    pub failed: Option<(NodeId, crate::error::OperationError)>,
}
