//! Operations: commands of the caller, and their progress and completion.
//!
//! A command is accepted or refused at once. An accepted one ends in exactly one [`crate::Event::Completed`], except a
//! posted store and a fence, which end silently (a posted store that fails makes the next flush fail).

pub mod bulk;
pub mod groups;
pub mod messages;
pub mod outstanding;
pub mod waits;

use crate::ids::{Key, NodeId, RegionId};

/// Identifier of an operation, chosen by the caller and repeated in its completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u64);

/// Address in a remote node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
    /// Owner of the memory.
    pub node: NodeId,
    /// Region of the owner.
    pub region: RegionId,
    /// First byte in the region.
    pub offset: u64,
    /// Key of the region.
    pub key: Key,
}

/// Range of the member's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalRange {
    /// Region of this member.
    pub region: RegionId,
    /// First byte in the region.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

/// Moment at which an operation counts as complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Completion {
    /// When the core has accepted it ("posted"). No event follows.
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
    /// Returns the width in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    /// Returns the number whose two's complement in this width is `value`.
    #[must_use]
    pub const fn signed(self, value: u64) -> i64 {
        match self {
            Self::Four => value as u32 as i32 as i64,
            Self::Eight => value as i64,
        }
    }

    /// Returns the bits of `value` within the width.
    #[must_use]
    pub const fn truncate(self, value: u64) -> u64 {
        match self {
            Self::Four => value & 0xffff_ffff,
            Self::Eight => value,
        }
    }
}

/// Largest store or load command, in bytes. Longer ones are puts and gets.
pub const LOAD_STORE_BYTES_MAX: usize = 16384;
/// Largest get, in bytes.
pub const GET_BYTES_MAX: u64 = u32::MAX as u64;

/// Effect of an atomic operation on its word.
///
/// The numbers of the kinds are those of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AtomicKind {
    /// Adds the operand, wrapping.
    FetchAdd,
    /// Replaces the word by the operand if it equals `compare`.
    CompareSwap,
    /// Replaces the word by the operand.
    Swap,
    /// Replaces the word by the operand without returning the old value (the "set" of a signal).
    Set,
    /// Keeps the bits that the operand has as well.
    And,
    /// Sets the bits of the operand.
    Or,
    /// Inverts the bits of the operand.
    Xor,
    /// Replaces the word by the operand if that is smaller, without signs.
    Min,
    /// Replaces the word by the operand if that is larger, without signs.
    Max,
    /// Replaces the word by the operand if that is smaller, both in two's complement.
    MinSigned,
    /// Replaces the word by the operand if that is larger, both in two's complement.
    MaxSigned,
}

impl AtomicKind {
    /// All kinds, in the order of their numbers in a frame.
    pub const ALL: [Self; 11] = [
        Self::FetchAdd,
        Self::CompareSwap,
        Self::Swap,
        Self::Set,
        Self::And,
        Self::Or,
        Self::Xor,
        Self::Min,
        Self::Max,
        Self::MinSigned,
        Self::MaxSigned,
    ];

    /// Returns the name of the kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FetchAdd => "fetch-add",
            Self::CompareSwap => "compare-swap",
            Self::Swap => "swap",
            Self::Set => "set",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
            Self::Min => "min",
            Self::Max => "max",
            Self::MinSigned => "min-signed",
            Self::MaxSigned => "max-signed",
        }
    }
}

/// One atomic operation. Words are little endian in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Atomic {
    /// Operation to perform.
    pub kind: AtomicKind,
    /// Width of the word.
    pub width: Width,
    /// Addend or new value.
    pub operand: u64,
    /// Expected value (compare-swap only).
    pub compare: u64,
}

impl Atomic {
    /// Returns the word after this operation, from its `old` value.
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
            AtomicKind::And => old & self.width.truncate(self.operand),
            AtomicKind::Or => old | self.width.truncate(self.operand),
            AtomicKind::Xor => old ^ self.width.truncate(self.operand),
            AtomicKind::Min => self.chosen(old, self.width.truncate(self.operand) < old),
            AtomicKind::Max => self.chosen(old, self.width.truncate(self.operand) > old),
            AtomicKind::MinSigned => {
                self.chosen(old, self.width.signed(self.operand) < self.width.signed(old))
            }
            AtomicKind::MaxSigned => {
                self.chosen(old, self.width.signed(self.operand) > self.width.signed(old))
            }
        }
    }

    const fn chosen(&self, old: u64, is_replaced: bool) -> u64 {
        if is_replaced { self.width.truncate(self.operand) } else { old }
    }
}

/// Effect of a signal on its word of 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignalKind {
    /// Stores the value.
    Set,
    /// Adds the value, wrapping.
    Add,
}

impl SignalKind {
    /// Returns the atomic operation that a signal with this value performs on its word.
    #[must_use]
    pub const fn atomic(self, value: u64) -> Atomic {
        let kind = match self {
            Self::Set => AtomicKind::Set,
            Self::Add => AtomicKind::FetchAdd,
        };
        Atomic { kind, width: Width::Eight, operand: value, compare: 0 }
    }
}

/// Update of a word at the target, which becomes visible after the data before it.
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
    /// Returns a signal that stores `value` in the word at this address. The node must be that of the put.
    #[must_use]
    pub const fn set(word: RemoteAddress, value: u64) -> Self {
        Self::at(word, SignalKind::Set, value)
    }

    /// Returns a signal that adds `value` to the word at this address, wrapping. The node must be that of the put.
    #[must_use]
    pub const fn add(word: RemoteAddress, value: u64) -> Self {
        Self::at(word, SignalKind::Add, value)
    }

    const fn at(word: RemoteAddress, kind: SignalKind, value: u64) -> Self {
        let RemoteAddress { region, offset, key, .. } = word;
        Self { region, offset, key, kind, value }
    }
}

/// Condition of a wait.
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
    /// Returns true if `word` satisfies the condition against `value`.
    #[must_use]
    pub const fn holds(self, word: u64, value: u64) -> bool {
        match self {
            Self::Equal => word == value,
            Self::NotEqual => word != value,
            Self::AtLeast => word >= value,
        }
    }
}

/// Command of a caller to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command<'a> {
    /// Writes a few bytes (copied now; at most the load/store limit of the endpoint).
    Store {
        /// Identifier chosen by the caller.
        operation: OperationId,
        /// Address of the destination.
        target: RemoteAddress,
        /// Bytes to write.
        data: &'a [u8],
        /// Posted or acknowledged.
        completion: Completion,
    },
    /// Reads bytes of a remote region into local memory, in requests of at most 256 bytes.
    Load {
        /// Identifier chosen by the caller.
        operation: OperationId,
        /// Address of the source.
        target: RemoteAddress,
        /// Destination and length.
        into: LocalRange,
    },
    /// Fetch-add, compare-swap or swap. The completion carries the old value.
    Atomic {
        /// Identifier chosen by the caller.
        operation: OperationId,
        /// Address of the word, naturally aligned.
        target: RemoteAddress,
        /// Operation to perform.
        atomic: Atomic,
    },
    /// RDMA write. The source must not change until completion: a retransmission reads it again.
    Put {
        /// Identifier chosen by the caller.
        operation: OperationId,
        /// Address of the destination.
        target: RemoteAddress,
        /// Source and length, which may be 0 with a signal.
        source: LocalRange,
        /// Signal to update after the data.
        signal: Option<Signal>,
    },
    /// RDMA read.
    Get {
        /// Identifier chosen by the caller.
        operation: OperationId,
        /// Address of the source.
        target: RemoteAddress,
        /// Destination and length.
        into: LocalRange,
    },
    /// Sends a tagged message. The source must not change until completion. Completion means that the target holds
    /// the message (eager) or the receiver has it (rendezvous).
    Send {
        /// Identifier chosen by the caller.
        operation: OperationId,
        /// Receiving node.
        target: NodeId,
        /// Tag of the message.
        tag: u64,
        /// Data of the message; may be empty.
        source: LocalRange,
    },
    /// Receives a tagged message. An [`crate::Event::MessageMatched`] identifies the message. The completion carries
    /// its length.
    Receive {
        /// Identifier chosen by the caller.
        operation: OperationId,
        /// Sending node; `None` accepts a message of any node.
        source: Option<NodeId>,
        /// Tag of the message.
        tag: u64,
        /// Bits of the tag that are ignored.
        ignore: u64,
        /// Destination. A longer message ends in an error and is dropped.
        into: LocalRange,
    },
    /// Completes when a word of the member's own memory satisfies a condition.
    WaitUntil {
        /// Identifier chosen by the caller.
        operation: OperationId,
        /// Region of the word.
        region: RegionId,
        /// Offset of the word, a multiple of 8.
        offset: u64,
        /// Condition to satisfy.
        condition: Condition,
        /// Value to compare with.
        value: u64,
        /// Node whose loss ends the wait; with `None` only a cancel ends it.
        depends_on: Option<NodeId>,
    },
    /// Orders operations: later ones to `target` (all nodes if `None`) become visible only after earlier ones.
    Fence {
        /// Target node; `None` means all.
        target: Option<NodeId>,
    },
    /// Completes when all operations accepted before are visible at their targets.
    Flush {
        /// Identifier chosen by the caller.
        operation: OperationId,
        /// Target node; `None` means all.
        target: Option<NodeId>,
    },
    /// Ends a wait or an unmatched receive with [`crate::OperationError::Cancelled`].
    Cancel {
        /// Identifier of the wait or receive.
        operation: OperationId,
    },
}
