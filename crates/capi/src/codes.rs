//! Error codes, and failures that carry a text.

use std::ffi::CStr;

use rackloom::fabric::{Completion, Ended, Error, OperationError, PlanError};
use rackloom::pool::PoolError;
use rackloom_runtime::outcome::exit::Exit;
use rackloom_runtime::outcome::failure::Failure as RackFailure;

/// Result of a call. Codes below 20 are errors in the use of the library, codes from 20 are errors of the fabric and of racks.
/// New codes may be added: a program treats an unknown code as a failure.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// Success.
    Ok = 0,
    /// A pointer is null that must not be.
    NullPointer = 1,
    /// The number is no handle: it is 0, or the library never returned it.
    BadHandle = 2,
    /// The handle was freed before.
    FreedHandle = 3,
    /// The handle belongs to an object of another kind.
    WrongHandleKind = 4,
    /// The object, which only one thread at a time may use, is in use by another thread.
    InUse = 5,
    /// The field `size` of a structure is too small, or this library is older than the header of the program.
    BadSize = 6,
    /// An argument has no meaning: an unknown constant, a misaligned pointer, arrays that overlap, text that is not UTF-8.
    BadArgument = 7,
    /// The buffer is too small. The needed length was returned.
    BufferTooSmall = 8,
    /// The queue has no completion.
    Empty = 9,
    /// There is no free handle.
    TooManyHandles = 10,
    /// The library has a bug. The call has no other effect on the process.
    Internal = 11,
    /// A function of the program that the library has called, such as a reduction, called the library.
    InCallback = 12,
    /// The queue towards the peer is full: poll, and try again.
    Busy = 20,
    /// No live path leads to the peer.
    PeerLost = 21,
    /// The peer has left in order.
    PeerLeft = 22,
    /// The peer refused the operation. The reason is one of `RACKLOOM_REASON_...`.
    Refused = 23,
    /// The operation failed, and no single peer is the cause: it was cancelled, or a message was too long.
    Failed = 24,
    /// The operation is not valid on any node.
    Invalid = 25,
    /// The rack file has no other GPU node of this number.
    NoSuchNode = 26,
    /// The region of a peer cannot be mapped.
    NotMapped = 27,
    /// A region of this number exists.
    RegionExists = 28,
    /// Operations still use a region of this number, whose last handle was freed.
    RegionInUse = 29,
    /// A member of the group gave up a collective or calls another one.
    GroupBroken = 30,
    /// A member has not joined the group in time.
    NotJoined = 31,
    /// The deadline passed first.
    TimedOut = 32,
    /// The node has left the fabric.
    Closed = 33,
    /// The seat of a standing rack cannot be taken.
    Join = 34,
    /// The rack or a node did not reach all its peers in time.
    NotUp = 35,
    /// The operating system refused.
    System = 36,
    /// The fabric reports an error for which this version of the header has no code.
    Other = 37,
    /// The regions of the node would have more bytes than the job on its seat may use, or the blocks of a tenant more than its limit.
    OverQuota = 38,
    /// A pool of blocks has no free part that is long enough, and may not grow that far.
    NoSpace = 39,
    /// A rack file, a fault script or an option is wrong.
    BadInput = 40,
    /// The processes or wires of a rack could not be made.
    CouldNotStart = 41,
    /// The rack does not answer, has lost a node, or has failed.
    RackFailed = 42,
}

impl ErrorCode {
    /// All codes with their texts.
    pub const ALL: &'static [(Self, &'static CStr)] = &[
        (Self::Ok, c"success"),
        (Self::NullPointer, c"a pointer is null"),
        (Self::BadHandle, c"not a handle"),
        (Self::FreedHandle, c"the handle was freed"),
        (Self::WrongHandleKind, c"the handle is of another kind"),
        (Self::InUse, c"another thread is using the object"),
        (Self::BadSize, c"the size of a structure does not fit this version of the library"),
        (Self::BadArgument, c"an argument has no meaning"),
        (Self::BufferTooSmall, c"the buffer is too small"),
        (Self::Empty, c"there is no completion"),
        (Self::TooManyHandles, c"too many handles"),
        (Self::Internal, c"an error inside the library"),
        (Self::InCallback, c"a call from a function that the library has called"),
        (Self::Busy, c"the queue towards the peer is full"),
        (Self::PeerLost, c"the peer is lost"),
        (Self::PeerLeft, c"the peer has left"),
        (Self::Refused, c"the peer refused the operation"),
        (Self::Failed, c"the operation failed"),
        (Self::Invalid, c"the operation is not valid"),
        (Self::NoSuchNode, c"there is no such node"),
        (Self::NotMapped, c"the region cannot be mapped"),
        (Self::RegionExists, c"the region exists"),
        (Self::RegionInUse, c"operations still use the region"),
        (Self::GroupBroken, c"the group is broken"),
        (Self::NotJoined, c"a member has not joined the group"),
        (Self::TimedOut, c"the deadline has passed"),
        (Self::Closed, c"the node has left"),
        (Self::Join, c"the seat cannot be taken"),
        (Self::NotUp, c"the rack is not up"),
        (Self::System, c"the operating system refused"),
        (Self::Other, c"another error of the fabric"),
        (Self::OverQuota, c"the quota of the job or the tenant does not suffice"),
        (Self::NoSpace, c"the pool has no space"),
        (Self::BadInput, c"a rack file, a fault script or an option is wrong"),
        (Self::CouldNotStart, c"the rack could not be started"),
        (Self::RackFailed, c"the rack has failed"),
    ];
}

/// Reason why a peer refused an operation, or why an operation failed.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is none.
    None = 0,
    /// The target has no such region.
    NoSuchRegion = 1,
    /// The key is not that of the region.
    BadKey = 2,
    /// The region belongs to another tenant.
    WrongTenant = 3,
    /// The range exceeds the region.
    OutOfBounds = 4,
    /// The region does not allow this kind of access.
    PermissionDenied = 5,
    /// The region was revoked.
    Revoked = 6,
    /// The address is not a multiple of the width of the word.
    Misaligned = 7,
    /// The memory of the target failed.
    MemoryFailed = 8,
    /// The memory that the data comes from could not be read.
    SourceFailed = 9,
    /// No live path leads to the target. Nothing was changed there.
    Unreachable = 10,
    /// The target was lost while the operation was in flight.
    OutcomeUnknown = 11,
    /// An earlier posted operation failed.
    EarlierFailure = 12,
    /// The caller cancelled the operation.
    Cancelled = 13,
    /// The message is longer than its receive.
    MessageTruncated = 14,
    /// A reason for which this version of the header has no number.
    Other = 15,
}

impl Reason {
    const fn of(error: OperationError) -> Self {
        match error {
            OperationError::NoSuchRegion => Self::NoSuchRegion,
            OperationError::BadKey => Self::BadKey,
            OperationError::WrongTenant => Self::WrongTenant,
            OperationError::OutOfBounds => Self::OutOfBounds,
            OperationError::PermissionDenied => Self::PermissionDenied,
            OperationError::Revoked => Self::Revoked,
            OperationError::Misaligned => Self::Misaligned,
            OperationError::MemoryFailed => Self::MemoryFailed,
            OperationError::SourceFailed => Self::SourceFailed,
            OperationError::Unreachable => Self::Unreachable,
            OperationError::OutcomeUnknown => Self::OutcomeUnknown,
            OperationError::EarlierFailure => Self::EarlierFailure,
            OperationError::Cancelled => Self::Cancelled,
            OperationError::MessageTruncated => Self::MessageTruncated,
            // The compiler requires this arm. A test compares the others with the variants of the error.
            _ => Self::Other,
        }
    }
}

/// Number that names no node. In an operation that may name a peer it means all peers, or any peer.
pub const RACKLOOM_ANY_NODE: u32 = u32::MAX;

/// Failure of a call, with everything that C may read of it.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: ErrorCode,
    pub(crate) text: String,
    pub(crate) peer: Option<u16>,
    pub(crate) reason: Reason,
    /// The operation may have happened, or may still happen.
    pub(crate) maybe_done: bool,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), peer: None, reason: Reason::None, maybe_done: false }
    }

    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadArgument, text)
    }
}

/// Returns the code of an error of the fabric.
const fn code_of(error: &Error) -> ErrorCode {
    match error {
        Error::Busy { .. } => ErrorCode::Busy,
        Error::PeerLost { .. } => ErrorCode::PeerLost,
        Error::PeerLeft { .. } => ErrorCode::PeerLeft,
        Error::Refused { .. } => ErrorCode::Refused,
        Error::Failed(_) => ErrorCode::Failed,
        Error::Invalid { .. } => ErrorCode::Invalid,
        Error::NoSuchNode { .. } => ErrorCode::NoSuchNode,
        Error::NotMapped { .. } => ErrorCode::NotMapped,
        Error::RegionExists { .. } => ErrorCode::RegionExists,
        Error::RegionInUse { .. } => ErrorCode::RegionInUse,
        Error::GroupBroken { .. } => ErrorCode::GroupBroken,
        Error::NotJoined { .. } => ErrorCode::NotJoined,
        Error::TimedOut { .. } => ErrorCode::TimedOut,
        Error::Closed => ErrorCode::Closed,
        Error::Join { .. } => ErrorCode::Join,
        Error::NotUp { .. } => ErrorCode::NotUp,
        Error::System { .. } => ErrorCode::System,
        Error::OverQuota { .. } => ErrorCode::OverQuota,
        // The compiler requires this arm. A test compares the others with the variants of the error.
        _ => ErrorCode::Other,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let reason = match &error {
            Error::Refused { reason, .. } | Error::Failed(reason) => Reason::of(*reason),
            _ => Reason::None,
        };
        let maybe_done = match &error {
            Error::PeerLost { maybe_done, .. } | Error::PeerLeft { maybe_done, .. } => *maybe_done,
            Error::TimedOut { continues, .. } => *continues,
            _ => false,
        };
        let (code, peer) = (code_of(&error), error.peer().map(|peer| peer.0));
        Self { code, text: error.to_string(), peer, reason, maybe_done }
    }
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        let code = match &error {
            PoolError::Quota(_) => ErrorCode::OverQuota,
            PoolError::NoSpace { .. } => ErrorCode::NoSpace,
            PoolError::BadAlignment(_) => ErrorCode::BadArgument,
            PoolError::NotAllocated { .. } => ErrorCode::Invalid,
            PoolError::Memory(_) => ErrorCode::System,
            // The node refused the region.
            PoolError::System(cause) => {
                let cause = cause.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
                cause.map_or(ErrorCode::System, code_of)
            }
            // The compiler requires this arm. A test compares the others with the variants of the error.
            _ => ErrorCode::Other,
        };
        Self::new(code, error.to_string())
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::new(ErrorCode::BadInput, error.to_string())
    }
}

impl From<RackFailure> for Failure {
    fn from(failure: RackFailure) -> Self {
        let code = match failure.exit {
            Exit::BadInput => ErrorCode::BadInput,
            Exit::CouldNotStart => ErrorCode::CouldNotStart,
            Exit::Pass
            | Exit::Fail
            | Exit::NodeLost
            | Exit::Stalled
            | Exit::Interrupted
            | Exit::NoVerdict
            | Exit::Starved => ErrorCode::RackFailed,
        };
        Self::new(code, failure.to_string())
    }
}

/// End of one operation. The layout does not change.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CompletionRecord {
    /// Number that the caller passed with the operation.
    pub context: u64,
    /// Number of the operation at its node.
    pub operation: u64,
    /// Old value of an atomic, word that ended a wait, or length of a message in bytes. Otherwise 0.
    pub value: u64,
    /// Tag of a received message.
    pub tag: u64,
    /// Result of the operation, one of `RACKLOOM_ERROR_...`.
    pub error: i32,
    /// Reason of a refusal or a failure, one of `RACKLOOM_REASON_...`.
    pub reason: u32,
    /// Sender of a received message, or the peer that caused the error. `RACKLOOM_ANY_NODE` if there is none.
    pub peer: u32,
    /// 1 if an operation that failed may have happened, or may still happen.
    pub maybe_done: u32,
    /// 0.
    pub reserved: [u64; 2],
}

impl CompletionRecord {
    pub(crate) fn of(context: u64, operation: u64, result: Result<Ended, Failure>) -> Self {
        let no_peer = RACKLOOM_ANY_NODE;
        let base = Self {
            context,
            operation,
            value: 0,
            tag: 0,
            error: ErrorCode::Ok as i32,
            reason: Reason::None as u32,
            peer: no_peer,
            maybe_done: 0,
            reserved: [0; 2],
        };
        match result {
            Ok(Ended { value, matched, .. }) => {
                let (peer, tag) = matched.map_or((no_peer, 0), |(sender, tag)| (sender.0.into(), tag));
                Self { value, tag, peer, ..base }
            }
            Err(failure) => Self {
                error: failure.code as i32,
                reason: failure.reason as u32,
                peer: failure.peer.map_or(no_peer, u32::from),
                maybe_done: failure.maybe_done.into(),
                ..base
            },
        }
    }
}

impl From<Completion> for CompletionRecord {
    fn from(Completion { context, operation, result, .. }: Completion) -> Self {
        Self::of(context, operation.0, result.map_err(Failure::from))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_code_has_one_number_and_one_text() {
        let numbers: BTreeSet<_> = ErrorCode::ALL.iter().map(|(code, _)| *code as i32).collect();
        let texts: BTreeSet<_> = ErrorCode::ALL.iter().map(|(_, text)| *text).collect();
        assert_eq!((numbers.len(), texts.len()), (ErrorCode::ALL.len(), ErrorCode::ALL.len()));
        // The compiler cannot list the variants; the header does.
        let header = include_str!("../include/rackloom.h");
        let declared = header.lines().filter(|line| line.trim_start().starts_with("RACKLOOM_ERROR_")).count();
        assert_eq!(declared, ErrorCode::ALL.len(), "a code is missing in ALL");
    }

    #[test]
    fn a_quota_has_a_code_of_its_own() {
        let error = Error::OverQuota { bytes: 3, used_bytes: 2, limit_bytes: 4 };
        let failure = Failure::from(error);
        assert_eq!(failure.code, ErrorCode::OverQuota);
        assert!(failure.text.contains("2 of 4 bytes are in use"), "{}", failure.text);
    }

    #[test]
    fn a_failure_keeps_peer_reason_and_outcome() {
        use rackloom::fabric::NodeId;
        let refused = Error::Refused { peer: NodeId(3), reason: OperationError::BadKey };
        let record = CompletionRecord::of(7, 8, Err(refused.into()));
        assert_eq!((record.context, record.operation, record.peer), (7, 8, 3));
        assert_eq!((record.error, record.reason), (ErrorCode::Refused as i32, Reason::BadKey as u32));
        let lost = Failure::from(Error::PeerLost { peer: NodeId(1), maybe_done: true });
        assert!(lost.maybe_done && lost.code == ErrorCode::PeerLost);
    }
}
