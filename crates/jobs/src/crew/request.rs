//! What a rank wants of its endpoint, kept until the endpoint takes it.

use rackloom_protocol::{
    Atomic, AtomicKind, Command, CommandRefused, Completion, Condition, Instant, LocalRange, NodeId,
    OperationError, OperationId, RegionId, RemoteAddress, Signal, Width,
};

use crate::measure::OperationKind;

pub(crate) use crate::job::{Carried, Seat};

/// Who wants to hear how a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// The phase being run: which peer, and which of its items.
    Phase {
        peer: u16,
        item: u32,
    },
    BarrierSignal,
    BarrierWait,
    AbortNotice,
    AbortWait,
}

/// A command that owns what it needs.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Store { target: RemoteAddress, data: Vec<u8>, completion: Completion },
    Load { target: RemoteAddress, into: LocalRange },
    Atomic { target: RemoteAddress, atomic: Atomic },
    Put { target: RemoteAddress, source: LocalRange, signal: Option<Signal> },
    Get { target: RemoteAddress, into: LocalRange },
    Send { target: NodeId, tag: u64, source: LocalRange },
    Receive { source: Option<NodeId>, tag: u64, ignore: u64, into: LocalRange },
    WaitUntil { region: RegionId, offset: u64, condition: Condition, value: u64, depends_on: Option<NodeId> },
    Fence { target: Option<NodeId> },
    Flush { target: Option<NodeId> },
    Cancel { wait: OperationId },
}

impl Body {
    /// The command under a name.
    pub(crate) fn command(&self, operation: OperationId) -> Command<'_> {
        match *self {
            Self::Store { target, ref data, completion } => {
                Command::Store { operation, target, data, completion }
            }
            Self::Load { target, into } => Command::Load { operation, target, into },
            Self::Atomic { target, atomic } => Command::Atomic { operation, target, atomic },
            Self::Put { target, source, signal } => Command::Put { operation, target, source, signal },
            Self::Get { target, into } => Command::Get { operation, target, into },
            Self::Send { target, tag, source } => Command::Send { operation, target, tag, source },
            Self::Receive { source, tag, ignore, into } => {
                Command::Receive { operation, source, tag, ignore, into }
            }
            Self::WaitUntil { region, offset, condition, value, depends_on } => {
                Command::WaitUntil { operation, region, offset, condition, value, depends_on }
            }
            Self::Fence { target } => Command::Fence { target },
            Self::Flush { target } => Command::Flush { operation, target },
            Self::Cancel { wait } => Command::Cancel { operation: wait },
        }
    }

    /// Whether a completion will follow its acceptance.
    pub(crate) const fn completes(&self) -> bool {
        !matches!(
            self,
            Self::Store { completion: Completion::Accepted, .. } | Self::Fence { .. } | Self::Cancel { .. }
        )
    }

    /// Whether somebody else must act before it ends, so that it can be cancelled and takes no place of the work.
    pub(crate) const fn is_wait(&self) -> bool {
        matches!(self, Self::WaitUntil { .. } | Self::Receive { .. })
    }

    /// The kind it is measured as; a cancel is not measured.
    pub(crate) const fn kind(&self) -> Option<OperationKind> {
        Some(match self {
            Self::Store { completion: Completion::Accepted, .. } => OperationKind::StorePosted,
            Self::Store { completion: Completion::Visible, .. } => OperationKind::StoreAcknowledged,
            Self::Load { .. } => OperationKind::Load,
            Self::Atomic { atomic, .. } => atomic_kind(*atomic),
            Self::Put { signal: None, .. } => OperationKind::Put,
            Self::Put { signal: Some(_), .. } => OperationKind::PutWithSignal,
            Self::Get { .. } => OperationKind::Get,
            Self::Send { .. } => OperationKind::Send,
            Self::Receive { .. } => OperationKind::Receive,
            Self::WaitUntil { .. } => OperationKind::WaitUntil,
            Self::Fence { .. } => OperationKind::Fence,
            Self::Flush { .. } => OperationKind::Flush,
            Self::Cancel { .. } => return None,
        })
    }

    /// Payload that it moves, as far as the caller knows it: how long a received message is, its end says.
    pub(crate) const fn bytes(&self) -> u64 {
        match self {
            Self::Store { data, .. } => data.len() as u64,
            Self::Load { into, .. } | Self::Get { into, .. } => into.length,
            Self::Put { source, .. } | Self::Send { source, .. } => source.length,
            Self::Atomic { atomic, .. } => atomic.width.bytes(),
            _ => 0,
        }
    }

    /// The node whose death ends it.
    pub(crate) const fn target(&self) -> Option<NodeId> {
        match self {
            Self::Store { target, .. }
            | Self::Load { target, .. }
            | Self::Atomic { target, .. }
            | Self::Put { target, .. }
            | Self::Get { target, .. } => Some(target.node),
            Self::Send { target, .. } => Some(*target),
            Self::Receive { source, .. } => *source,
            Self::Fence { target } | Self::Flush { target } => *target,
            Self::WaitUntil { depends_on, .. } => *depends_on,
            Self::Cancel { .. } => None,
        }
    }
}

const fn atomic_kind(atomic: Atomic) -> OperationKind {
    match (atomic.kind, atomic.width) {
        (AtomicKind::FetchAdd, Width::Four) => OperationKind::FetchAddFour,
        (AtomicKind::FetchAdd, Width::Eight) => OperationKind::FetchAddEight,
        (AtomicKind::CompareSwap, Width::Four) => OperationKind::CompareSwapFour,
        (AtomicKind::CompareSwap, Width::Eight) => OperationKind::CompareSwapEight,
        (AtomicKind::Swap | AtomicKind::Set, Width::Four) => OperationKind::SwapFour,
        (AtomicKind::Swap | AtomicKind::Set, Width::Eight) => OperationKind::SwapEight,
    }
}

/// A command with what is to be done about its end.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) tag: Tag,
    pub(crate) body: Body,
    /// The refusal that is right; `None` if it must succeed.
    pub(crate) expects: Option<OperationError>,
    /// When the endpoint was first asked.
    pub(crate) first_tried: Option<Instant>,
}

impl Request {
    pub(crate) const fn new(tag: Tag, body: Body) -> Self {
        Self { tag, body, expects: None, first_tried: None }
    }

    /// A request that must end with this error.
    pub(crate) fn forbidden(tag: Tag, body: Body, expects: OperationError) -> Self {
        Self { expects: Some(expects), ..Self::new(tag, body) }
    }
}

/// Why a request did not end as it must.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Operation(OperationError),
    Refused(CommandRefused),
    /// It had to be refused, and was not.
    Allowed,
}

impl Failure {
    /// Lower-case name for counts.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Operation(error) => error.name(),
            Self::Refused(CommandRefused::Unreachable(_)) => OperationError::Unreachable.name(),
            Self::Refused(CommandRefused::Busy) => "busy",
            Self::Refused(CommandRefused::NoSuchNode(_)) => "no-such-node",
            Self::Refused(_) => "invalid",
            Self::Allowed => "allowed",
        }
    }

    /// Whether a key that was revoked explains it, or memory that failed, which a flush says of the posted stores before it; to the owner,
    /// waiting on what it has revoked is invalid.
    pub(crate) const fn is_refusal(self) -> bool {
        matches!(
            self,
            Self::Operation(
                OperationError::Revoked
                    | OperationError::MemoryFailed
                    | OperationError::SourceFailed
                    | OperationError::EarlierFailure
            ) | Self::Refused(CommandRefused::Invalid(_))
        )
    }

    /// Whether the next request may succeed all the same: memory that failed may fail only now and then, a key that is revoked stays so.
    pub(crate) const fn may_pass(self) -> bool {
        matches!(
            self,
            Self::Operation(
                OperationError::MemoryFailed | OperationError::SourceFailed | OperationError::EarlierFailure
            )
        )
    }

    /// Whether a new life in the target's place explains it, which does not do the job: one whose forebear died before this rank had
    /// met it, so that nobody could say that it was lost.
    pub(crate) const fn is_of_stranger(self) -> bool {
        matches!(self, Self::Operation(OperationError::NoSuchRegion))
    }

    /// Whether the target's death explains it.
    pub(crate) const fn is_loss(self) -> bool {
        matches!(
            self,
            Self::Operation(OperationError::Unreachable | OperationError::OutcomeUnknown)
                | Self::Refused(CommandRefused::Unreachable(_))
        )
    }
}

/// The message that a receive has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Matched {
    pub(crate) source: NodeId,
    pub(crate) tag: u64,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) tag: Tag,
    pub(crate) kind: OperationKind,
    pub(crate) target: Option<NodeId>,
    pub(crate) result: Result<u64, Failure>,
    /// Which message, if it is a receive that has met one.
    pub(crate) message: Option<Matched>,
}
