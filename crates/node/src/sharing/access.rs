//! Kinds of access to a peer's memory, and their errors.

use rackloom_protocol::OperationError;

/// Reason why an access to a peer's memory failed.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// The range is not within the region. Nothing was done.
    #[error("out of bounds")]
    OutOfBounds,
    /// The address of an atomic is not a multiple of its width. Nothing was done.
    #[error("misaligned address")]
    Misaligned,
    /// The owner does not allow this kind of access. Nothing was done.
    #[error("permission denied")]
    PermissionDenied,
    /// The region was revoked. If that happened during this access, a part of it may have been done.
    #[error("the region was revoked")]
    Revoked,
    /// The owner requires frames. Nothing was done.
    #[error("the owner withholds the region")]
    Withheld,
    /// The owner's process has ended. Nothing was done.
    #[error("the owner has ended")]
    OwnerGone,
    /// The importer's own region does not contain the range. Nothing was done.
    #[error("the local range leaves its region")]
    LocalRange,
    /// The importer's device has failed. A part of the access may have been done.
    #[error("the device has failed; hint: the log of the device says at which call")]
    DeviceFailed,
    /// The memory of the owner's program has no such addresses any more: the program has freed them. A part of the access may have been done.
    #[error("the memory is not mapped at its owner")]
    BadMemory,
    /// The system does not permit the copy between the two processes. Nothing was done, or it may be repeated.
    #[error("the system does not permit the copy")]
    NotPermitted,
    /// The memory belongs to the owner's program, and is only reached by copies. Nothing was done.
    #[error("only copies reach the memory of a program")]
    OnlyCopies,
}

impl AccessError {
    /// Returns the error of the wire for this failure.
    #[must_use]
    pub const fn as_operation_error(self) -> OperationError {
        match self {
            Self::OutOfBounds => OperationError::OutOfBounds,
            Self::Misaligned => OperationError::Misaligned,
            Self::PermissionDenied => OperationError::PermissionDenied,
            Self::Revoked => OperationError::Revoked,
            Self::OwnerGone => OperationError::Unreachable,
            Self::LocalRange
            | Self::Withheld
            | Self::DeviceFailed
            | Self::BadMemory
            | Self::NotPermitted
            | Self::OnlyCopies => OperationError::MemoryFailed,
        }
    }
}

/// Kind of an access, for the check of permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Read,
    Write,
    Atomic,
}
