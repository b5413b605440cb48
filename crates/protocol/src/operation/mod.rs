//! Operations as the caller states them, and how they travel and end.
//!
//! A command is accepted or refused at once. An accepted one ends in exactly one [`crate::Event::Completed`], except a
//! posted store and a fence, which end silently (a posted store that fails makes the next flush fail).

pub mod bulk;
pub mod groups;
pub mod messages;
pub mod outstanding;
pub mod waits;

use crate::ids::{Key, NodeId, RegionId};

/// The caller's own name for an operation; comes back in its completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u64);

/// An address in a remote node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
    /// Owner of the memory.
    pub node: NodeId,
    /// Region of the owner.
    pub region: RegionId,
    /// First byte.
    pub offset: u64,
    /// The region's key.
    pub key: Key,
}

/// Bytes of the member's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalRange {
    /// One of the member's own regions.
    pub region: RegionId,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

/// When an operation counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Completion {
    /// As soon as the core has taken it ("posted"); no event follows.
    Accepted,
    /// When its bytes are visible at the target.
    Visible,
}

/// Operand width of atomics and waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 4 bytes.
    Four,
    /// 8 bytes.
    Eight,
}

impl Width {
    /// The width in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    /// The bits of `value` that take part.
    #[must_use]
    pub const fn truncate(self, value: u64) -> u64 {
        match self {
            Self::Four => value & 0xffff_ffff,
            Self::Eight => value,
        }
    }
}

/// What an atomic does to the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicKind {
    /// Add the operand, wrapping.
    FetchAdd,
    /// Replace the word by the operand if it equals `compare`.
    CompareSwap,
    /// Replace the word by the operand.
    Swap,
    /// Replace the word by the operand; the old value is of no interest (a signal's "set").
    Set,
}

/// One atomic; little endian in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Atomic {
    /// What to do.
    pub kind: AtomicKind,
    /// On how many bytes.
    pub width: Width,
    /// Addend or new value.
    pub operand: u64,
    /// Expected value (compare-swap only).
    pub compare: u64,
}

impl Atomic {
    /// The word after this atomic met `old`.
    #[must_use]
    pub const fn apply(&self, old: u64) -> u64 {
        match self.kind {
            AtomicKind::FetchAdd => self.width.truncate(old.wrapping_add(self.operand)),
            AtomicKind::Swap | AtomicKind::Set => self.width.truncate(self.operand),
            AtomicKind::CompareSwap => {
                if old == self.width.truncate(self.compare) {
                    self.width.truncate(self.operand)
                } else {
                    old
                }
            }
        }
    }
}

/// How a signal changes its word (8 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignalKind {
    /// Store the value.
    Set,
    /// Add the value, wrapping.
    Add,
}

/// An update of a word at the target that becomes visible after the data it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Region of the word, at the put's target.
    pub region: RegionId,
    /// The word's offset, a multiple of 8.
    pub offset: u64,
    /// Key of that region.
    pub key: Key,
    /// Set or add.
    pub kind: SignalKind,
    /// Operand.
    pub value: u64,
}

impl Signal {
    /// Store `value` in the word at this address; the node is that of the put.
    #[must_use]
    pub const fn set(word: RemoteAddress, value: u64) -> Self {
        Self::at(word, SignalKind::Set, value)
    }

    /// Add `value` to the word at this address, wrapping; the node is that of the put.
    #[must_use]
    pub const fn add(word: RemoteAddress, value: u64) -> Self {
        Self::at(word, SignalKind::Add, value)
    }

    const fn at(word: RemoteAddress, kind: SignalKind, value: u64) -> Self {
        let RemoteAddress { region, offset, key, .. } = word;
        Self { region, offset, key, kind, value }
    }
}

/// What a wait compares for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Condition {
    /// The word equals the value.
    Equal,
    /// The word differs from the value.
    NotEqual,
    /// The word is at least the value, unsigned.
    AtLeast,
}

impl Condition {
    /// Whether `word` satisfies the condition against `value`.
    #[must_use]
    pub const fn holds(self, word: u64, value: u64) -> bool {
        match self {
            Self::Equal => word == value,
            Self::NotEqual => word != value,
            Self::AtLeast => word >= value,
        }
    }
}

/// What a caller may ask of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command<'a> {
    /// Write a few bytes (copied now; at most the load/store limit of the endpoint).
    Store {
        /// The caller's name for it.
        operation: OperationId,
        /// Where.
        target: RemoteAddress,
        /// What.
        data: &'a [u8],
        /// Posted or acknowledged.
        completion: Completion,
    },
    /// Read bytes of a remote region into local memory, in requests of at most 256 bytes.
    Load {
        /// The caller's name for it.
        operation: OperationId,
        /// From where.
        target: RemoteAddress,
        /// To where, and how many bytes.
        into: LocalRange,
    },
    /// Fetch-add, compare-swap or swap; the completion carries the old value.
    Atomic {
        /// The caller's name for it.
        operation: OperationId,
        /// The word, naturally aligned.
        target: RemoteAddress,
        /// What to do.
        atomic: Atomic,
    },
    /// RDMA write. The source must stay unchanged until completion: a retransmission reads it again.
    Put {
        /// The caller's name for it.
        operation: OperationId,
        /// Where.
        target: RemoteAddress,
        /// From where, and how many bytes (may be 0 with a signal).
        source: LocalRange,
        /// A word to update after the data.
        signal: Option<Signal>,
    },
    /// RDMA read.
    Get {
        /// The caller's name for it.
        operation: OperationId,
        /// From where.
        target: RemoteAddress,
        /// To where, and how many bytes.
        into: LocalRange,
    },
    /// Send a tagged message. The source must stay unchanged until completion, which says that the target holds the
    /// message (eager) or its receiver has it (rendezvous).
    Send {
        /// The caller's name for it.
        operation: OperationId,
        /// To whom.
        target: NodeId,
        /// The tag.
        tag: u64,
        /// What; may be empty.
        source: LocalRange,
    },
    /// Receive a tagged message. An [`crate::Event::MessageMatched`] says which; the completion carries its length.
    Receive {
        /// The caller's name for it.
        operation: OperationId,
        /// From whom; `None` takes a message of anybody.
        source: Option<NodeId>,
        /// The tag.
        tag: u64,
        /// Bits of the tag that do not matter.
        ignore: u64,
        /// Where to. A longer message ends in an error and is dropped.
        into: LocalRange,
    },
    /// Complete when a word of the member's own memory satisfies a condition.
    WaitUntil {
        /// The caller's name for it.
        operation: OperationId,
        /// Region of the word.
        region: RegionId,
        /// Its offset, a multiple of 8.
        offset: u64,
        /// What to compare for.
        condition: Condition,
        /// What to compare with.
        value: u64,
        /// The nodes whose death ends the wait; `None` is: only a cancel ends it.
        depends_on: Option<NodeId>,
    },
    /// Later operations to `target` (all nodes if `None`) become visible only after earlier ones.
    Fence {
        /// One node or all.
        target: Option<NodeId>,
    },
    /// Complete when everything accepted before is visible at its target.
    Flush {
        /// The caller's name for it.
        operation: OperationId,
        /// One node or all.
        target: Option<NodeId>,
    },
    /// End a wait or an unmatched receive with [`crate::OperationError::Cancelled`].
    Cancel {
        /// The name of the wait or receive.
        operation: OperationId,
    },
}
