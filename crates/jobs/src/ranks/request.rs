//! Requests of a rank to its endpoint, kept until the endpoint accepts them.

use rackloom_protocol::{
    Atomic, AtomicKind, Command, CommandRefused, Completion, Condition, Instant, LocalRange, NodeId,
    OperationError, OperationId, RegionId, RemoteAddress, Signal, Width,
};

use crate::measure::OperationKind;

pub(crate) use crate::job::{Carried, Seat};

/// Part of the job that receives the outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// The current phase, with the peer and the item number.
    Phase {
        peer: u16,
        item: u32,
    },
    BarrierSignal,
    BarrierWait,
    AbortNotice,
    AbortWait,
}

/// Command that owns its data.
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
    /// Returns the command with `operation` as its identifier.
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

    /// Returns whether a completion follows the acceptance.
    pub(crate) const fn completes(&self) -> bool {
        !matches!(
            self,
            Self::Store { completion: Completion::Accepted, .. } | Self::Fence { .. } | Self::Cancel { .. }
        )
    }

    /// Returns whether another node must act before the request completes. Such a request can be cancelled, and does
    /// not count as outstanding work.
    pub(crate) const fn is_wait(&self) -> bool {
        matches!(self, Self::WaitUntil { .. } | Self::Receive { .. })
    }

    /// Returns the kind under which the request is measured; `None` for a cancel, which is not measured.
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

    /// Returns the payload in bytes, as far as the caller knows it. The length of a received message is known only at
    /// its completion.
    pub(crate) const fn bytes(&self) -> u64 {
        match self {
            Self::Store { data, .. } => data.len() as u64,
            Self::Load { into, .. } | Self::Get { into, .. } => into.length,
            Self::Put { source, .. } | Self::Send { source, .. } => source.length,
            Self::Atomic { atomic, .. } => atomic.width.bytes(),
            _ => 0,
        }
    }

    /// Returns the node whose loss ends the request.
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
        // Jobs issue no other kinds.
        (_, Width::Four) => OperationKind::SwapFour,
        (_, Width::Eight) => OperationKind::SwapEight,
    }
}

/// Command, with the expected result and the receiver of its outcome.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) tag: Tag,
    pub(crate) body: Body,
    /// Expected refusal; `None` if the request must succeed.
    pub(crate) expects: Option<OperationError>,
    /// Time of the first attempt.
    pub(crate) first_tried: Option<Instant>,
}

impl Request {
    pub(crate) const fn new(tag: Tag, body: Body) -> Self {
        Self { tag, body, expects: None, first_tried: None }
    }

    /// Returns a request that must be refused with `expects`.
    pub(crate) fn forbidden(tag: Tag, body: Body, expects: OperationError) -> Self {
        Self { expects: Some(expects), ..Self::new(tag, body) }
    }
}

/// Reason for which a request did not end as required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Operation(OperationError),
    Refused(CommandRefused),
    /// The request had to be refused, and was not.
    Allowed,
}

impl Failure {
    /// Returns a lower-case name for counts.
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

    /// Returns whether a revoked key or failed memory explains the failure. A flush reports failed memory of the posted
    /// stores before it. At the owner itself, a wait on a revoked region is refused as invalid.
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

    /// Returns whether the next request may succeed: memory may fail intermittently, but a revoked key stays revoked.
    pub(crate) const fn may_pass(self) -> bool {
        matches!(
            self,
            Self::Operation(
                OperationError::MemoryFailed | OperationError::SourceFailed | OperationError::EarlierFailure
            )
        )
    }

    /// Returns whether a new incarnation of the target explains the failure. The new incarnation does not run the job.
    /// Its predecessor was lost before this rank had reached it, so the endpoint could not report the loss.
    pub(crate) const fn is_of_new_incarnation(self) -> bool {
        matches!(self, Self::Operation(OperationError::NoSuchRegion))
    }

    /// Returns whether the loss of the target explains the failure.
    pub(crate) const fn is_loss(self) -> bool {
        matches!(
            self,
            Self::Operation(OperationError::Unreachable | OperationError::OutcomeUnknown)
                | Self::Refused(CommandRefused::Unreachable(_))
        )
    }
}

/// Message that a receive has matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Matched {
    pub(crate) source: NodeId,
    pub(crate) tag: u64,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) tag: Tag,
    pub(crate) kind: OperationKind,
    pub(crate) target: Option<NodeId>,
    pub(crate) result: Result<u64, Failure>,
    /// Matched message, if the request is a receive that matched one.
    pub(crate) message: Option<Matched>,
}
