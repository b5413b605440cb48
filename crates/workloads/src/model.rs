//! A workload: for each rank a graph of operations.
//!
//! An operation begins when all operations that it depends on have ended. They are earlier operations of the same rank.
//! Between ranks only messages and collectives create an order.
//!
//! Rules of an engine:
//! - A rank computes one operation at a time. Those that are ready at the same time begin in the order of the list.
//! - A send ends when its bytes are visible at the receiver. It does not wait for the receive.
//! - Messages of one sender to one receiver with the same tag match receives in the order of both lists. The sender issues them in
//!   this order: a send also waits for the begin of the previous one with the same receiver and tag.
//! - A receive ends when its message has arrived.
//! - Collectives of a group match by their order in the lists of its ranks. Those of one group run one after the other, like those
//!   of a communicator of NCCL.

use core::ops::Range;
use std::sync::Arc;

use rackloom_collectives::CollectiveKind;

/// Most ranks of a workload.
pub const RANKS_MAX: usize = 1 << 16;
/// Most phases of a workload.
pub const PHASES_MAX: usize = 1 << 12;
/// Most groups of a workload.
pub const GROUPS_MAX: usize = 1 << 16;
/// Most operations of all ranks together that readers accept, so that a short file cannot fill the memory.
pub const OPERATIONS_MAX: usize = 1 << 24;
/// Most dependencies of all ranks together that readers accept.
pub const DEPENDENCIES_MAX: usize = 1 << 25;

/// Workload of all ranks. Rank *i* is the *i*-th entry of [`Workload::ranks`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// Name for reports.
    pub name: String,
    /// Names of phases. Operations refer to them by index.
    pub phases: Vec<String>,
    /// Groups of ranks that perform collectives.
    pub groups: Vec<Group>,
    /// Operations of each rank.
    pub ranks: Vec<RankOperations>,
}

/// Ranks that perform collectives together, in the order of their positions in the group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Ranks, each once.
    pub ranks: Vec<u16>,
}

/// Operations of one rank, in a possible order of execution. A copy shares its memory until one of both changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankOperations {
    lists: Arc<Lists>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Lists {
    operations: Vec<Operation>,
    /// Dependencies of all operations, one list after the other.
    dependencies: Vec<u32>,
}

/// Operation of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Index of the phase.
    pub phase: u16,
    /// The work.
    pub work: Work,
    dependencies: Range<u32>,
}

/// Kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The rank is busy for a time.
    Compute {
        /// Duration in nanoseconds.
        duration_ns: u64,
    },
    /// The rank is busy for as long as its device takes: a computation that is stated by its work.
    Kernel {
        /// Floating-point operations.
        flops: u64,
        /// Bytes that are moved between memory and processor.
        bytes: u64,
    },
    /// Sends a message.
    Send {
        /// Receiving rank, never the sender.
        to: u16,
        /// Length in bytes.
        bytes: u64,
        /// Distinguishes messages of the same sender and receiver.
        tag: u32,
    },
    /// Waits for a message.
    Receive {
        /// Sending rank, never the receiver.
        from: u16,
        /// Length in bytes.
        bytes: u64,
        /// Tag of the message.
        tag: u32,
    },
    /// Takes part in a collective.
    Collective {
        /// Index of the group.
        group: u16,
        /// Kind of the collective.
        kind: CollectiveKind,
        /// Bytes of the whole array, as [`rackloom_collectives::Collective`] counts them.
        bytes: u64,
        /// Position of the root in the group; 0 for a collective without root.
        root: u16,
    },
}

impl RankOperations {
    /// Adds an operation. Returns its index. `dependencies`: indices of earlier operations of this rank.
    pub fn add(&mut self, phase: u16, work: Work, dependencies: impl IntoIterator<Item = u32>) -> u32 {
        let lists = Arc::make_mut(&mut self.lists);
        let start = lists.dependencies.len() as u32;
        lists.dependencies.extend(dependencies);
        let dependencies = start..lists.dependencies.len() as u32;
        lists.operations.push(Operation { phase, work, dependencies });
        (lists.operations.len() - 1) as u32
    }

    /// Replaces the work of operations: `replace` gets each index and work, and returns the new work, or `None` to keep it.
    ///
    /// # Errors
    ///
    /// Returns the first error of `replace`. Operations behind it are not replaced.
    pub fn replace_work<E>(
        &mut self,
        mut replace: impl FnMut(usize, Work) -> Result<Option<Work>, E>,
    ) -> Result<(), E> {
        for index in 0..self.lists.operations.len() {
            if let Some(work) = replace(index, self.lists.operations[index].work)? {
                Arc::make_mut(&mut self.lists).operations[index].work = work;
            }
        }
        Ok(())
    }

    /// Returns the number of dependencies of all operations.
    #[must_use]
    pub fn dependency_count(&self) -> usize {
        self.lists.dependencies.len()
    }

    /// Returns all operations.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.lists.operations
    }

    /// Returns the indices of the operations that must have ended before an operation of this rank begins.
    #[must_use]
    pub fn dependencies(&self, operation: &Operation) -> &[u32] {
        let Range { start, end } = operation.dependencies;
        &self.lists.dependencies[start as usize..end as usize]
    }
}
