//! What can go wrong, so that a caller can act on it. Every error that a peer caused names the peer.

use std::io;

use rackloom_protocol::{CommandRefused, NodeId, OperationError, RegionId};
use thiserror::Error;

/// Why an operation, or the making of something, did not succeed.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The queue towards the peer is full. [`super::Request::submit`] says so, and what a [`super::Driver`] begins without waiting for
    /// its end; the other forms wait for room.
    #[error("the queue towards {peer:?} is full; hint: poll the completion queue and submit again")]
    Busy {
        /// The peer, if the operation names one.
        peer: Option<NodeId>,
    },
    /// No live path leads to the peer.
    #[error("{peer} is lost; the operation {}", if *maybe_done { "may or may not have happened" } else { "has not happened" })]
    PeerLost {
        /// Who is lost.
        peer: NodeId,
        /// False: it has certainly not happened and can be done again elsewhere.
        maybe_done: bool,
    },
    /// The peer has left the fabric in order ([`super::Node::leave_in_order`]): it had ended what it had begun, and is not there
    /// any more for what others begin.
    #[error("{peer} has left the fabric; the operation {}", if *maybe_done { "may or may not have happened" } else { "has not happened" })]
    PeerLeft {
        /// Who has left.
        peer: NodeId,
        /// False: it has certainly not happened and can be done again elsewhere.
        maybe_done: bool,
    },
    /// The peer is alive and says no, or the operation failed there; of a flush: it said no to a posted store before.
    #[error("{peer} refused: {reason}")]
    Refused {
        /// Who refused.
        peer: NodeId,
        /// Why.
        reason: OperationError,
    },
    /// The operation failed and no single peer is to blame: cancelled, a message too long for its place, nobody left to
    /// receive from.
    #[error("the operation failed: {0}")]
    Failed(OperationError),
    /// The operation cannot be carried out by anybody.
    #[error("bad operation: {0}")]
    Invalid(&'static str),
    /// The plan has no such other GPU node.
    #[error("the plan has no other GPU node {0}; hint: a node reaches its own memory through its regions")]
    NoSuchNode(NodeId),
    /// A region of this name is registered.
    #[error("{0} is registered already; hint: choose another name, or deregister it first")]
    RegionExists(RegionId),
    /// The last handle of a region of this name is gone, but operations under way still use its bytes. Whatever goes to a peer ends by
    /// itself, mostly within microseconds; a receive or a wait on a word when it is cancelled.
    #[error(
        "operations under way still use {0}; hint: wait for them (Node::wait_until_free), cancel receives and waits, or choose another name"
    )]
    RegionInUse(RegionId),
    /// A collective cannot end well any more, though everybody may be alive.
    #[error(
        "the group is broken: {peer} gave up a collective or calls another one; hint: all members join with the same options and the same list of members, call the same collectives in the same order, and form a new group after a failure"
    )]
    GroupBroken {
        /// Who gave up, or does something else.
        peer: NodeId,
    },
    /// A member has not come to a group's first collective ([`super::Group::join`]) within this member's patience.
    #[error(
        "{peer} has not joined the group within {waited_ms} ms; hint: every member joins, or choose more patience (GroupOptions::patience)"
    )]
    NotJoined {
        /// Who is missing.
        peer: NodeId,
        /// How long it was waited for.
        waited_ms: u64,
    },
    /// Patience ran out first.
    #[error("no end within {waited_ms} ms; {}", if *goes_on { "the operation goes on and may yet happen" } else { "the operation has not happened" })]
    TimedOut {
        /// The peer, if the operation names one.
        peer: Option<NodeId>,
        /// How long it was waited for.
        waited_ms: u64,
        /// False: it has not happened and will not.
        goes_on: bool,
    },
    /// This node has left the fabric.
    #[error("this node has left the fabric")]
    Closed,
    /// A seat of a rack of other processes cannot be taken.
    #[error("cannot take seat {seat} of rack {rack}: {what}")]
    Join {
        /// The rack's name.
        rack: String,
        /// The seat's name.
        seat: String,
        /// Why not, and what to do about it.
        what: String,
    },
    /// The rack did not come up.
    #[error("{node} does not reach all that it should after {waited_ms} ms: {waiting_for}")]
    NotUp {
        /// Who is not ready.
        node: NodeId,
        /// How long it was waited for.
        waited_ms: u64,
        /// What the node waits for.
        waiting_for: String,
    },
    /// The operating system said no.
    #[error("{what}: {cause}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        cause: io::Error,
    },
}

impl Error {
    pub(super) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::System { what, cause }
    }

    /// The peer that caused it, if there is one.
    #[must_use]
    pub const fn peer(&self) -> Option<NodeId> {
        match self {
            Self::Busy { peer } | Self::TimedOut { peer, .. } => *peer,
            Self::PeerLost { peer, .. }
            | Self::PeerLeft { peer, .. }
            | Self::Refused { peer, .. }
            | Self::GroupBroken { peer }
            | Self::NotJoined { peer, .. }
            | Self::NoSuchNode(peer) => Some(*peer),
            _ => None,
        }
    }

    pub(super) const fn from_refusal(refused: CommandRefused, peer: Option<NodeId>) -> Self {
        match refused {
            CommandRefused::Busy => Self::Busy { peer },
            CommandRefused::NoSuchNode(node) => Self::NoSuchNode(node),
            CommandRefused::Unreachable(peer) => Self::PeerLost { peer, maybe_done: false },
            CommandRefused::Invalid(why) => Self::Invalid(why),
            _ => Self::Invalid("the core refused it"),
        }
    }

    /// The same, of a peer that has said before that it would leave.
    pub(super) fn in_order(self) -> Self {
        match self {
            Self::PeerLost { peer, maybe_done } => Self::PeerLeft { peer, maybe_done },
            other => other,
        }
    }

    pub(super) const fn from_end(error: OperationError, peer: Option<NodeId>) -> Self {
        match (error, peer) {
            (OperationError::Unreachable, Some(peer)) => Self::PeerLost { peer, maybe_done: false },
            (OperationError::OutcomeUnknown, Some(peer)) => Self::PeerLost { peer, maybe_done: true },
            (reason @ (OperationError::Cancelled | OperationError::MessageTruncated), _) | (reason, None) => {
                Self::Failed(reason)
            }
            (reason, Some(peer)) => Self::Refused { peer, reason },
        }
    }
}
