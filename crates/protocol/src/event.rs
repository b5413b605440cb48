//! Whatever happens, as data: declared once, read by tracing, metrics, reports, tests and the trace hash.

use crate::config::OrderScope;
use crate::error::OperationError;
use crate::ids::{Channel, Class, NodeId, PortId, RegionId};
use crate::link::state::LinkState;
use crate::operation::OperationId;

/// Something that happened at a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// An operation of this member's caller ended. `Ok` carries the old value of an atomic, the word that ended a
    /// wait, the length of a received message, else 0.
    Completed {
        /// The caller's name for it.
        operation: OperationId,
        /// How it ended.
        result: Result<u64, OperationError>,
    },
    /// A receive has met its message; the completion follows when the data is there.
    MessageMatched {
        /// The receive's name.
        operation: OperationId,
        /// Who sent it.
        source: NodeId,
        /// Its tag.
        tag: u64,
        /// Its length in bytes.
        length: u64,
    },
    /// A received frame was not used.
    FrameDropped {
        /// Where it came in.
        port: PortId,
        /// Why it was not used.
        reason: DropReason,
    },
    /// A link changed state.
    LinkChanged {
        /// The port.
        port: PortId,
        /// State before.
        from: LinkState,
        /// State now.
        to: LinkState,
        /// What moved it.
        cause: LinkCause,
    },
    /// Traffic to a node takes another port than before.
    PathChanged {
        /// The node.
        destination: NodeId,
        /// The port until now; `None` if there was none.
        from: Option<PortId>,
        /// The port from now on; `None` if no path is left.
        to: Option<PortId>,
    },
    /// Link-level retry has given up: the neighbour acknowledged nothing, however often it was sent.
    LinkFlushed {
        /// The port.
        port: PortId,
        /// Frames that were given up.
        frames: u32,
    },
    /// The watchdog has stopped heeding the neighbour's pauses: data of this channel had waited too long.
    PauseDefied {
        /// The port.
        port: PortId,
        /// The channel.
        channel: Channel,
    },
    /// A member says that it leaves, having ended what it had begun; that it is lost follows.
    NodeLeft {
        /// The member.
        node: NodeId,
    },
    /// No live path leads to a member any more.
    NodeLost {
        /// The member.
        node: NodeId,
    },
    /// A member can be reached again, or for the first time.
    NodeReached {
        /// The member.
        node: NodeId,
    },
    /// A member has begun a new life; what was in flight to the old one has ended.
    NodeRestarted {
        /// The member.
        node: NodeId,
    },
    /// The order that the rack promises did not hold.
    OrderBroken {
        /// Whose operations these are; at the node that issues them itself where classes overtake each other.
        source: NodeId,
        /// Their class.
        class: Class,
        /// The promise.
        scope: OrderScope,
        /// The packet that came too early or too late; the operation, where classes overtake each other.
        number: u32,
    },
    /// This owner refused a remote access.
    AccessRefused {
        /// Who asked.
        source: NodeId,
        /// For which region.
        region: RegionId,
        /// Why it was refused.
        error: OperationError,
    },
    /// Bytes that were to leave could not be read: what carries them leaves void, and its caller is told by a refusal.
    SourceFailed {
        /// The region of this member that they were to come from.
        region: RegionId,
    },
    /// A flush fails because of a node; the completion follows and says how.
    FlushFailed {
        /// The flush's name.
        operation: OperationId,
        /// The node that was lost, or that refused a posted store.
        node: NodeId,
    },
}

/// Why a received frame was not used. Every drop has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// Shorter than its headers or its own length field.
    Truncated,
    /// Another EtherType.
    ForeignEtherType,
    /// The destination MAC is not this port's, or the source MAC not its neighbour's.
    WrongAddress,
    /// First bytes are not ours.
    BadMagic,
    /// A version we do not speak.
    BadVersion,
    /// A frame of another rack or run.
    WrongEpoch,
    /// Kind, class or operation that does not exist, or fields that contradict each other.
    Malformed,
    /// The per-hop check failed.
    HopCheck,
    /// The end-to-end check failed.
    EndToEndCheck,
    /// The end-to-end check is required and missing.
    CheckMissing,
    /// The link is not up for data.
    LinkDown,
    /// The neighbour's frame is of another life than its Hello.
    StaleLink,
    /// The hop limit ran out.
    HopLimit,
    /// The destination is unknown or has no live path.
    NoRoute,
    /// Source or destination life is not the current one.
    StaleIncarnation,
    /// A packet that was taken before.
    Duplicate,
    /// A packet after a hole, under go-back-N.
    OutOfOrder,
    /// A packet beyond the reorder window.
    BeyondWindow,
    /// The forwarder's buffer was full.
    BufferFull,
    /// A stranger's Hello: other member, plane or options than the plan says.
    Stranger,
    /// Link-level retry: the frame was taken before.
    LinkDuplicate,
    /// Link-level retry: a frame before this one is missing; both will come again.
    LinkOutOfSequence,
    /// The source has as much work waiting at this end point as the plan lets a node have; the packet will come again.
    ServingFull,
    /// A Hello or a report names an incarnation that no clock can have given yet, or that a link to that member contradicts.
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
        Self::Stranger,
        Self::LinkDuplicate,
        Self::LinkOutOfSequence,
        Self::ServingFull,
        Self::ImplausibleIncarnation,
    ];

    /// Lower-case name for reports.
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
            Self::Stranger => "stranger",
            Self::LinkDuplicate => "link-duplicate",
            Self::LinkOutOfSequence => "link-out-of-sequence",
            Self::ServingFull => "serving-full",
            Self::ImplausibleIncarnation => "implausible-incarnation",
        }
    }
}

/// What moved a link from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LinkCause {
    /// Hello was answered.
    Hello,
    /// A heartbeat came.
    Heartbeat,
    /// A heartbeat is late.
    HeartbeatLate,
    /// Too many heartbeats are missing.
    HeartbeatDead,
    /// The neighbour says that it does not hear us, or has taken the link down.
    NeighbourReport,
    /// The device lost its carrier, or the neighbour's process ended.
    Carrier,
    /// The neighbour has begun a new life.
    NeighbourRestart,
    /// The hold-down time is over.
    HoldDownOver,
    /// The user.
    Administrator,
}

impl LinkCause {
    /// Lower-case name for reports.
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
            Self::HoldDownOver => "hold-down-over",
            Self::Administrator => "administrator",
        }
    }
}
