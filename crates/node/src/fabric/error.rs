//! Errors of the public API. An error that a peer caused names the peer.

use std::{fmt, io};

use rackloom_protocol::{CommandRefused, InvalidCommand, NodeId, OperationError, RegionId};
use thiserror::Error;

/// Reason for which an operation or the creation of an object failed.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The queue towards the peer is full. Returned by [`super::Request::submit`] and by methods of [`super::Driver`] that do not wait for
    /// completion. All other calls wait for space in it.
    #[error("the queue towards {peer:?} is full; hint: poll the completion queue and submit again")]
    Busy {
        /// The peer, if the operation names one.
        peer: Option<NodeId>,
    },
    /// No live path leads to the peer.
    #[error("{peer} is lost; the operation {}", if *maybe_done { "may or may not have happened" } else { "has not happened" })]
    PeerLost {
        /// The lost peer.
        peer: NodeId,
        /// `false` if the operation has certainly not happened and can be repeated elsewhere.
        maybe_done: bool,
    },
    /// The peer has left the fabric in order ([`super::Node::leave_in_order`]): its own operations had ended, and it accepts no operations
    /// any more.
    #[error("{peer} has left the fabric; the operation {}", if *maybe_done { "may or may not have happened" } else { "has not happened" })]
    PeerLeft {
        /// The peer that has left.
        peer: NodeId,
        /// `false` if the operation has certainly not happened and can be repeated elsewhere.
        maybe_done: bool,
    },
    /// The peer is alive and refused the operation, or the operation failed there. From a flush: the peer refused an earlier posted store.
    #[error("{peer} refused: {reason}")]
    Refused {
        /// The peer that refused.
        peer: NodeId,
        /// Reason of the refusal.
        reason: OperationError,
    },
    /// The operation failed, and no single peer is the cause: it was cancelled, a message was too long for its buffer, or no node is left to
    /// receive from.
    #[error("the operation failed: {0}")]
    Failed(OperationError),
    /// The operation is not valid on any node.
    #[error("bad operation: {0}")]
    Invalid(Invalid),
    /// The plan has no other GPU node of this number.
    #[error("the plan has no other GPU node {0}; hint: a node reaches its own memory through its regions")]
    NoSuchNode(NodeId),
    /// A region of a peer cannot be mapped.
    #[error("{region} of {peer} cannot be mapped: {reason}")]
    NotMapped {
        /// Owner of the region.
        peer: NodeId,
        /// Number of the region at its owner.
        region: RegionId,
        /// Reason, and a hint.
        reason: String,
    },
    /// A region of this number is registered.
    #[error("{0} is registered already; hint: choose another name, or deregister it first")]
    RegionExists(RegionId),
    /// The last handle of a region of this number is dropped, but operations in flight still use its bytes. Operations to a peer end by
    /// themselves, mostly within microseconds. A receive, or a wait on a word, ends when it is cancelled.
    #[error(
        "operations in flight still use {0}; hint: wait for them (Node::wait_until_free), cancel receives and waits, or choose another name"
    )]
    RegionInUse(RegionId),
    /// The regions of the node would have more bytes than the job on its seat may use.
    #[error(
        "a region of {bytes} bytes exceeds the quota of the job: {used_bytes} of {limit_bytes} bytes are in use; hint: deregister regions, or submit the job with more memory"
    )]
    OverQuota {
        /// Length of the region.
        bytes: u64,
        /// Bytes of all regions of the node.
        used_bytes: u64,
        /// Bytes that the job may use on a node.
        limit_bytes: u64,
    },
    /// A collective cannot complete any more, although all members may be alive.
    #[error(
        "the group is broken: {peer} gave up a collective or calls another one; hint: all members join with the same options and the same list of members, call the same collectives in the same order, and form a new group after a failure"
    )]
    GroupBroken {
        /// The member that gave up or called another collective.
        peer: NodeId,
    },
    /// A member has not begun a group's first collective ([`super::Group::join`]) within this member's join timeout.
    #[error(
        "{peer} has not joined the group within {}; hint: every member joins, or choose a longer time (GroupOptions::join_timeout)",
        Waited(*waited_ms)
    )]
    NotJoined {
        /// The missing member.
        peer: NodeId,
        /// Time that was waited, in milliseconds.
        waited_ms: u64,
    },
    /// The deadline passed first.
    #[error("no end within {}; {}", Waited(*waited_ms), if *continues { "the operation continues and may still complete" } else { "the operation has not happened" })]
    TimedOut {
        /// The peer, if the operation names one.
        peer: Option<NodeId>,
        /// Time that was waited, in milliseconds.
        waited_ms: u64,
        /// `false` if the operation has not happened and will not happen.
        continues: bool,
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
        /// Reason, and a hint.
        what: String,
    },
    /// The rack did not come up.
    #[error("{node} does not reach all that it should after {}: {waiting_for}", Waited(*waited_ms))]
    NotUp {
        /// The node that is not ready.
        node: NodeId,
        /// Time that was waited, in milliseconds.
        waited_ms: u64,
        /// Conditions that the node waits for.
        waiting_for: String,
    },
    /// The operating system refused.
    #[error("{what}: {cause}")]
    System {
        /// Action that failed.
        what: &'static str,
        /// Error of the operating system.
        cause: io::Error,
    },
}

/// Reason why an operation is not valid on any node.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Invalid {
    /// The core refused the command. Its reason names the limit.
    #[error(transparent)]
    Command(#[from] InvalidCommand),
    /// The request has begun.
    #[error("the request has begun; hint: wait for it, or await it")]
    HasBegun,
    /// The request or the region belongs to another node.
    #[error("the request or the region belongs to another node")]
    OtherNode,
    /// The plan has a port without a link.
    #[error("the plan has a port without a link")]
    PortWithoutLink,
    /// The operations belong to several nodes.
    #[error("operations of several nodes; hint: use a queue")]
    SeveralNodes,
    /// The list of operations is empty.
    #[error("there is nothing to wait for")]
    NothingToAwait,
    /// The operation cannot be cancelled.
    #[error("only receives and waits on words can be cancelled")]
    NotCancellable,
    /// The region is longer than the address space.
    #[error("the region is too large")]
    RegionTooLarge,
    /// The node has regions on another device.
    #[error("the node has regions on another device; hint: one device per node")]
    OtherDevice,
    /// The bytes of a region's handle are not those that [`super::Region::export`] returns.
    #[error("the bytes are no handle of a region; hint: both nodes must use one version of the library")]
    RegionHandle,
    /// The region is in the memory of the host.
    #[error("the region is not on a device; hint: allocate it with `Node::allocate_on_device`")]
    NotOnDevice,
    /// The range is not within its region.
    #[error("the range is not within the region")]
    OutsideRegion,
    /// There are other handles or slices of the region.
    #[error("other handles or slices of the region are alive; hint: drop them first")]
    RegionShared,
    /// An atomic of another width than 4 or 8 bytes.
    #[error("an atomic has 4 or 8 bytes")]
    AtomicWidth,
    /// A store from a kernel of another width than 4 or 8 bytes.
    #[error("a store from a kernel has 4 or 8 bytes")]
    StoreWidth,
    /// A kernel wrote an unknown command.
    #[error("there is no such command")]
    UnknownCommand,
    /// A kernel named a node that the plan does not have.
    #[error("there is no such node")]
    UnknownNode,
    /// The status words of a group have values that no member writes.
    #[error("the group's region was overwritten by another program")]
    GroupOverwritten,
    /// A group has too many members, or an array has too many elements.
    #[error("no schedule for so many members or elements")]
    NoSchedule,
    /// A group with a named algorithm cannot choose it again.
    #[error(
        "the algorithm is named, so it cannot be chosen again; hint: leave `algorithm` or `adaptive` out"
    )]
    AdaptsNamed,
    /// The array is longer than the address space.
    #[error("the array is too large")]
    ArrayTooLarge,
    /// A part of an array is no whole number of elements.
    #[error("a part of the array is no whole number of elements")]
    PartialElement,
    /// The list of parts does not have one length for each member, or for each pair of members of an all-to-all.
    #[error(
        "the list of parts has the wrong length; hint: one for each member, for each pair of an all-to-all"
    )]
    PartCount,
    /// A reduction of the caller panicked.
    #[error(
        "the reduction of the caller panicked; hint: it returns for any values, and for any number of elements"
    )]
    ReductionPanicked,
    /// The root of a collective is not a member of the group.
    #[error("the root is not a member of the group")]
    RootNotMember,
    /// The staging of a group is longer than the address space.
    #[error("the staging is too large; hint: GroupOptions::staging")]
    StagingTooLarge,
    /// A group has no lane, or more than [`super::GroupOptions::LANES_MAX`].
    #[error("a group has 1 to 64 lanes; hint: GroupOptions::lanes")]
    LaneCount,
    /// A node is named twice among the members of a group.
    #[error("a node is named twice in the group")]
    MemberTwice,
    /// This node is not among the members of the group.
    #[error("this node is not a member of the group")]
    NotMember,
    /// The core refused a command for a reason that this version does not know.
    #[error("the core refused it")]
    UnknownRefusal,
    /// The node has a driver already.
    #[error("the node has a driver already; hint: drop it first")]
    DriverExists,
    /// An array is too short for the collective.
    #[error("an array is too short for the collective; hint: one part per member, all of one length")]
    ArrayTooShort,
    /// An earlier collective of the group has not ended, and no thread drives it.
    #[error(
        "an earlier collective of the group has not ended, and no thread drives it; hint: wait for it first"
    )]
    GroupBusy,
    /// The staging of a group holds less than one element of each member.
    #[error("the group's staging is too small for one element of each member; hint: GroupOptions::staging")]
    StagingTooSmall,
    /// An operation that waits for others cannot be posted.
    #[error("what waits for others cannot be posted; hint: submit it to a queue")]
    NotPostable,
    /// The node has no region on a device.
    #[error("the node has no region on a device; hint: allocate_on_device comes first")]
    NoDevice,
}

/// Time in milliseconds, as messages show it: `200 ms`, `1 s`, `2.5 s`.
struct Waited(u64);

impl fmt::Display for Waited {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1000 => write!(formatter, "{} ms", self.0),
            waited_ms => write!(formatter, "{} s", waited_ms as f64 / 1000.0),
        }
    }
}

impl Error {
    pub(super) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::System { what, cause }
    }

    /// Returns the peer that caused the error, if there is one.
    #[must_use]
    pub const fn peer(&self) -> Option<NodeId> {
        match self {
            Self::Busy { peer } | Self::TimedOut { peer, .. } => *peer,
            Self::PeerLost { peer, .. }
            | Self::PeerLeft { peer, .. }
            | Self::Refused { peer, .. }
            | Self::GroupBroken { peer }
            | Self::NotJoined { peer, .. }
            | Self::NotMapped { peer, .. }
            | Self::NoSuchNode(peer) => Some(*peer),
            _ => None,
        }
    }

    pub(super) const fn from_refusal(refused: CommandRefused, peer: Option<NodeId>) -> Self {
        match refused {
            CommandRefused::Busy => Self::Busy { peer },
            CommandRefused::NoSuchNode(node) => Self::NoSuchNode(node),
            CommandRefused::Unreachable(peer) => Self::PeerLost { peer, maybe_done: false },
            CommandRefused::Invalid(reason) => Self::Invalid(Invalid::Command(reason)),
            _ => Self::Invalid(Invalid::UnknownRefusal),
        }
    }

    /// Turns a loss into a departure, for a peer that announced that it would leave.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_from_a_second_on_are_shown_in_seconds() {
        let shown = |waited_ms| Error::TimedOut { peer: None, waited_ms, continues: false }.to_string();
        for (waited_ms, time) in [(2, "2 ms"), (999, "999 ms"), (1000, "1 s"), (2500, "2.5 s")] {
            assert_eq!(shown(waited_ms), format!("no end within {time}; the operation has not happened"));
        }
    }
}
