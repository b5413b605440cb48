//! Events of a member: declared once, read by tracing, metrics, reports, tests and the trace hash.

use crate::config::OrderScope;
use crate::error::OperationError;
use crate::ids::{Channel, Class, NodeId, PortId, RegionId};
use crate::link::state::LinkState;
use crate::operation::OperationId;

/// Event at a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// An operation of this member's caller ended. `Ok` carries the old value of an atomic, the word that ended a
    /// wait, the length of a received message, else 0.
    Completed {
        /// Identifier chosen by the caller.
        operation: OperationId,
        /// Result of the operation.
        result: Result<u64, OperationError>,
    },
    /// A receive has matched a message. The completion follows when the data is there.
    MessageMatched {
        /// Identifier of the receive.
        operation: OperationId,
        /// Sender of the message.
        source: NodeId,
        /// Tag of the message.
        tag: u64,
        /// Length of the message, in bytes.
        length: u64,
    },
    /// A received frame was dropped.
    FrameDropped {
        /// Port on which the frame arrived.
        port: PortId,
        /// Reason of the drop.
        reason: DropReason,
    },
    /// A link changed state.
    LinkChanged {
        /// Port of the link.
        port: PortId,
        /// State before the change.
        from: LinkState,
        /// State after the change.
        to: LinkState,
        /// Cause of the change.
        cause: LinkCause,
    },
    /// Traffic to a node takes another port than before.
    PathChanged {
        /// Destination of the traffic.
        destination: NodeId,
        /// The port until now; `None` if there was none.
        from: Option<PortId>,
        /// The port from now on; `None` if no path is left.
        to: Option<PortId>,
    },
    /// Link-level retry has reached its replay limit without an acknowledgement.
    LinkFlushed {
        /// Port of the link.
        port: PortId,
        /// Number of frames that were given up.
        frames: u32,
    },
    /// The watchdog ignores the neighbour's pauses, because data of this channel has waited too long.
    PauseDefied {
        /// Port of the link.
        port: PortId,
        /// Channel whose pauses are ignored.
        channel: Channel,
    },
    /// A member announces that it leaves, after it has ended its operations. Its loss follows.
    NodeLeft {
        /// Member that leaves.
        node: NodeId,
    },
    /// No live path leads to a member any more.
    NodeLost {
        /// Lost member.
        node: NodeId,
    },
    /// A member is reachable again, or for the first time.
    NodeReached {
        /// Reached member.
        node: NodeId,
    },
    /// A member has a new incarnation. Operations in flight to the old one have ended.
    NodeRestarted {
        /// Restarted member.
        node: NodeId,
    },
    /// The promised order was violated.
    OrderBroken {
        /// Source of the operations; this member itself if classes overtake each other at the source.
        source: NodeId,
        /// Class of the operations.
        class: Class,
        /// Promised order scope.
        scope: OrderScope,
        /// Number of the packet that was early or late, or of the operation if classes overtake each other.
        number: u32,
    },
    /// This member refused a remote access.
    AccessRefused {
        /// Node that requested the access.
        source: NodeId,
        /// Region of the access.
        region: RegionId,
        /// Reason of the refusal.
        error: OperationError,
    },
    /// Bytes that were to leave could not be read. The operation leaves void, and a refusal reports it to its
    /// initiator.
    SourceFailed {
        /// Region of this member that could not be read.
        region: RegionId,
    },
    /// A flush fails because of a node. The completion follows with the error.
    FlushFailed {
        /// Identifier of the flush.
        operation: OperationId,
        /// Node that was lost, or that refused a posted store.
        node: NodeId,
    },
}

/// Reason for which a received frame was dropped. Every drop has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// Shorter than its headers or its own length field.
    Truncated,
    /// The EtherType is not the rack's.
    ForeignEtherType,
    /// The destination MAC is not this port's, or the source MAC is not the neighbour's.
    WrongAddress,
    /// The magic number is wrong.
    BadMagic,
    /// The version is not supported.
    BadVersion,
    /// The frame is from another rack or run.
    WrongEpoch,
    /// The kind, class or operation does not exist, or fields contradict each other.
    Malformed,
    /// The per-hop check failed.
    HopCheck,
    /// The end-to-end check failed.
    EndToEndCheck,
    /// The end-to-end check is required and missing.
    CheckMissing,
    /// The link does not carry data.
    LinkDown,
    /// The frame is of another incarnation of the neighbour than its Hello.
    StaleLink,
    /// The hop limit is exhausted.
    HopLimit,
    /// The destination is unknown or has no live path.
    NoRoute,
    /// The source or destination incarnation is not the present one.
    StaleIncarnation,
    /// The packet was accepted before.
    Duplicate,
    /// The packet is after a gap, with go-back-N.
    OutOfOrder,
    /// The packet is beyond the reorder window.
    BeyondWindow,
    /// The forwarder's buffer was full.
    BufferFull,
    /// The frame is not from the member, plane or tenant that the plan states, or the Hello has other options.
    UnknownSender,
    /// Link-level retry: the frame was accepted before.
    LinkDuplicate,
    /// Link-level retry: an earlier frame is missing; both will be replayed.
    LinkOutOfSequence,
    /// The source has as much work queued at this node as the plan allows; the packet will be retransmitted.
    ServingFull,
    /// A Hello or a report names an incarnation that no clock can have given yet, or that a link to that member
    /// contradicts.
    ImplausibleIncarnation,
}

impl DropReason {
    /// All reasons, in the order of their index.
    pub const ALL: [Self; 24] = [
        Self::Truncated,
        Self::ForeignEtherType,
        Self::WrongAddress,
        Self::BadMagic,
        Self::BadVersion,
        Self::WrongEpoch,
        Self::Malformed,
        Self::HopCheck,
        Self::EndToEndCheck,
        Self::CheckMissing,
        Self::LinkDown,
        Self::StaleLink,
        Self::HopLimit,
        Self::NoRoute,
        Self::StaleIncarnation,
        Self::Duplicate,
        Self::OutOfOrder,
        Self::BeyondWindow,
        Self::BufferFull,
        Self::UnknownSender,
        Self::LinkDuplicate,
        Self::LinkOutOfSequence,
        Self::ServingFull,
        Self::ImplausibleIncarnation,
    ];

    /// Returns the lower-case name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::ForeignEtherType => "foreign-ether-type",
            Self::WrongAddress => "wrong-address",
            Self::BadMagic => "bad-magic",
            Self::BadVersion => "bad-version",
            Self::WrongEpoch => "wrong-epoch",
            Self::Malformed => "malformed",
            Self::HopCheck => "hop-check",
            Self::EndToEndCheck => "end-to-end-check",
            Self::CheckMissing => "check-missing",
            Self::LinkDown => "link-down",
            Self::StaleLink => "stale-link",
            Self::HopLimit => "hop-limit",
            Self::NoRoute => "no-route",
            Self::StaleIncarnation => "stale-incarnation",
            Self::Duplicate => "duplicate",
            Self::OutOfOrder => "out-of-order",
            Self::BeyondWindow => "beyond-window",
            Self::BufferFull => "buffer-full",
            Self::UnknownSender => "unknown-sender",
            Self::LinkDuplicate => "link-duplicate",
            Self::LinkOutOfSequence => "link-out-of-sequence",
            Self::ServingFull => "serving-full",
            Self::ImplausibleIncarnation => "implausible-incarnation",
        }
    }
}

/// Cause of a link state change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LinkCause {
    /// A Hello was answered.
    Hello,
    /// A heartbeat arrived.
    Heartbeat,
    /// A heartbeat is late.
    HeartbeatLate,
    /// Too many heartbeats are missing.
    HeartbeatDead,
    /// The neighbour reports that it receives nothing, or has taken the link down.
    NeighbourReport,
    /// The device lost its carrier, or the neighbour's process ended.
    Carrier,
    /// The neighbour has a new incarnation.
    NeighbourRestart,
    /// A new cable leads to the neighbour.
    NewCable,
    /// The hold-down time has elapsed.
    HoldDownOver,
    /// The user disabled or enabled the link.
    Administrator,
}

impl LinkCause {
    /// Returns the lower-case name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Heartbeat => "heartbeat",
            Self::HeartbeatLate => "heartbeat-late",
            Self::HeartbeatDead => "heartbeat-dead",
            Self::NeighbourReport => "neighbour-report",
            Self::Carrier => "carrier",
            Self::NeighbourRestart => "neighbour-restart",
            Self::NewCable => "new-cable",
            Self::HoldDownOver => "hold-down-over",
            Self::Administrator => "administrator",
        }
    }
}
