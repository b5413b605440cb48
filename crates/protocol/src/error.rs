//! Errors of commands and operations. A dropped frame is not an error but an event with a reason.

use thiserror::Error;

use crate::ids::NodeId;

/// Reason for which a command was refused. Nothing has been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CommandRefused {
    /// The queue towards the target is full. Hint: retry after the next event or drain.
    #[error("queue full; hint: let the endpoint make progress and try again")]
    Busy,
    /// The target is not a node of this rack, or is this node itself.
    #[error("no such remote node: {0}")]
    NoSuchNode(NodeId),
    /// No live path leads to the target.
    #[error("{0} is unreachable")]
    Unreachable(NodeId),
    /// The operation is malformed.
    #[error("bad operation: {0}")]
    Invalid(InvalidCommand),
}

/// Reason why a command is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidCommand {
    /// A switch takes no commands.
    #[error("a switch takes no commands")]
    SwitchCommand,
    /// The remote range passes the end of the address space.
    #[error("the remote range passes the end of the address space")]
    RemoteRange,
    /// The word of a wait is not an aligned word of a region of this node.
    #[error("a wait needs an aligned word of a region of this node")]
    WaitWord,
    /// The command does not address a remote node.
    #[error("not a command to a remote node")]
    NotRemote,
    /// A store is empty or too long.
    #[error("a store takes 1 to 16384 bytes; hint: use a put")]
    StoreLength,
    /// A load is empty or too long.
    #[error("a load takes 1 to 16384 bytes; hint: use a get")]
    LoadLength,
    /// The destination is not within a region of this node.
    #[error("the destination is not within a region of this node")]
    Destination,
    /// A load needs more requests than may be outstanding.
    #[error("a load of more requests than may be outstanding; hint: use a get")]
    LoadRequests,
    /// A put has neither data nor a signal.
    #[error("a put without data needs a signal")]
    PutWithoutEffect,
    /// The source is not within a region of this node.
    #[error("the source is not within a region of this node")]
    Source,
    /// A get is empty or too long.
    #[error("a get takes 1 byte to 4 GiB - 1")]
    GetLength,
    /// There is no wait or unmatched receive of this identifier to cancel.
    #[error("no such wait or unmatched receive")]
    NoSuchWait,
    /// A message is too long.
    #[error("a message takes up to 4 GiB - 1")]
    MessageLength,
    /// The message is not within a region of this node.
    #[error("the message is not within a region of this node")]
    MessageSource,
    /// The buffer for a message is not within a region of this node.
    #[error("the buffer for the message is not within a region of this node")]
    MessageBuffer,
    /// A live region has this number.
    #[error("a live region has this number; hint: revoke it first")]
    RegionExists,
    /// The local range is not within its region.
    #[error("the local range is not within its region")]
    LocalRange,
}

/// Reason for which an accepted operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Error)]
#[non_exhaustive]
pub enum OperationError {
    /// The target has no such region.
    #[error("no such region at the target")]
    NoSuchRegion,
    /// The key is not that of the region.
    #[error("wrong key")]
    BadKey,
    /// The caller's tenant may not touch the region.
    #[error("the region belongs to another tenant")]
    WrongTenant,
    /// The range exceeds the region.
    #[error("out of bounds")]
    OutOfBounds,
    /// The region does not allow this kind of access.
    #[error("permission denied")]
    PermissionDenied,
    /// The region was revoked.
    #[error("the region was revoked")]
    Revoked,
    /// An atomic or a signal has an address that is not a multiple of its width.
    #[error("misaligned address")]
    Misaligned,
    /// The target's memory failed.
    #[error("the target's memory failed")]
    MemoryFailed,
    /// The source of the data could not be read: own memory for a put or a message, the target's for a get.
    #[error("the memory that the data comes from could not be read")]
    SourceFailed,
    /// No live path leads to the target, and no memory of the target was changed.
    ///
    /// The local buffer of a load, a get or a receive with this error may hold a part of the data.
    #[error("target unreachable; nothing was sent")]
    Unreachable,
    /// The target was lost while the operation was in flight, which may or may not have been executed.
    #[error("outcome unknown: the target was lost while the operation was in flight")]
    OutcomeUnknown,
    /// A posted store before this flush failed.
    #[error("an earlier posted store failed")]
    EarlierFailure,
    /// The caller cancelled the operation.
    #[error("cancelled")]
    Cancelled,
    /// The message is longer than its receive; the receiver has dropped it.
    #[error("the message is longer than the place for it")]
    MessageTruncated,
}

impl OperationError {
    /// Returns the lower-case name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSuchRegion => "no-such-region",
            Self::BadKey => "bad-key",
            Self::WrongTenant => "wrong-tenant",
            Self::OutOfBounds => "out-of-bounds",
            Self::PermissionDenied => "permission-denied",
            Self::Revoked => "revoked",
            Self::Misaligned => "misaligned",
            Self::MemoryFailed => "memory-failed",
            Self::SourceFailed => "source-failed",
            Self::Unreachable => "unreachable",
            Self::OutcomeUnknown => "outcome-unknown",
            Self::EarlierFailure => "earlier-failure",
            Self::Cancelled => "cancelled",
            Self::MessageTruncated => "message-truncated",
        }
    }

    /// Returns the code of a refusal on the wire, or `None` for errors that only the initiator can detect.
    #[must_use]
    pub const fn wire_code(self) -> Option<u8> {
        match self {
            Self::NoSuchRegion => Some(1),
            Self::BadKey => Some(2),
            Self::WrongTenant => Some(3),
            Self::OutOfBounds => Some(4),
            Self::PermissionDenied => Some(5),
            Self::Revoked => Some(6),
            Self::Misaligned => Some(7),
            Self::MemoryFailed => Some(8),
            Self::SourceFailed => Some(9),
            _ => None,
        }
    }

    /// Returns the error for a refusal's code.
    #[must_use]
    pub const fn from_wire_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::NoSuchRegion),
            2 => Some(Self::BadKey),
            3 => Some(Self::WrongTenant),
            4 => Some(Self::OutOfBounds),
            5 => Some(Self::PermissionDenied),
            6 => Some(Self::Revoked),
            7 => Some(Self::Misaligned),
            8 => Some(Self::MemoryFailed),
            9 => Some(Self::SourceFailed),
            _ => None,
        }
    }
}
