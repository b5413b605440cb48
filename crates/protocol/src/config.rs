//! What a member is told at birth. The plan builds it, checked; nothing here reads a file.

use alloc::vec::Vec;

use crate::ids::{Incarnation, NodeId, Plane, Tenant};
use crate::route::graph::Graph;

/// Everything that a member of the fabric needs to know before its first frame.
#[derive(Clone, Debug)]
pub struct MemberConfig {
    /// Who this member is.
    pub node: NodeId,
    /// Which life of the member this is.
    pub incarnation: Incarnation,
    /// Low bits of the rack's identity: frames of another rack, or of an earlier run, are dropped.
    pub epoch: u16,
    /// The partition of every member's seat, by [`NodeId`]. A frame that claims another one is a stranger's.
    pub tenants: Vec<Tenant>,
    /// EtherType of every frame.
    pub ether_type: u16,
    /// Every member and link of the rack, the same for all members.
    pub graph: Graph,
    /// This member's ports, in port order.
    pub ports: Vec<PortConfig>,
    /// Liveness of links.
    pub timers: LinkTimers,
    /// Retransmission, windows, acknowledgements.
    pub transport: TransportConfig,
    /// How small operations share a frame.
    pub packing: PackingConfig,
    /// Whether routed frames carry the two checks. Where nothing can corrupt a frame they cost more than everything else that a
    /// small frame costs; frames that are not routed carry theirs anyway.
    pub end_to_end_check: bool,
    /// Outstanding loads per peer (64 in SUE-like and EthLink-like descriptions).
    pub outstanding_loads_max: u32,
    /// Largest frame this member sends or accepts, Ethernet header included, in bytes.
    pub frame_bytes_max: u16,
}

/// One port: which neighbour is expected there, and what the link can hold.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// Index of the link in [`Graph::edges`].
    pub edge: u16,
    /// The member at the other end.
    pub neighbour: NodeId,
    /// The plane that the link belongs to.
    pub plane: Plane,
    /// Credits of the link, the same at both ends.
    pub credits: CreditConfig,
    /// Link-level retry, the same at both ends; `None` is off.
    pub retry: Option<RetryConfig>,
}

/// Link-level retry (UEC-LLR-like): the neighbour acknowledges every routed frame, and what it has not got is sent to it
/// again before anybody else notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryConfig {
    /// Width of the sequence numbers whose rule is kept. The header's numbers have 32 bits; hardware has fewer.
    pub sequence_bits: u8,
    /// Frames that may be unacknowledged at a time; at most half of the sequence numbers.
    pub outstanding_frames: u32,
    /// Bytes that may be unacknowledged at a time: the size of the replay buffer.
    pub outstanding_bytes: u32,
    /// Received bytes after which an acknowledgement leaves at once.
    pub ack_spacing_bytes: u32,
    /// Longest time that an acknowledgement waits for the spacing to be reached or for a frame to ride on.
    pub ack_delay_ns: u64,
    /// Time without progress after which everything unacknowledged is sent again.
    pub replay_timer_ns: u64,
    /// Replays in a row that may bring nothing; [`RetryConfig::REPLAYS_UNLIMITED`] is without end.
    pub replay_count_max: u8,
    /// What becomes of further frames once the replays are used up.
    pub flush: FlushPolicy,
}

/// What becomes of frames that want to leave while a link is being flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushPolicy {
    /// They wait until both ends have agreed on numbers again.
    Block,
    /// They are thrown away and counted.
    Discard,
    /// They leave without number and without protection.
    BestEffort,
}

impl RetryConfig {
    /// A replay count that is never reached.
    pub const REPLAYS_UNLIMITED: u8 = 255;

    /// The replay timer for a control loop of this length: three loops and half a microsecond, within 1 and 15.5 us.
    #[must_use]
    pub const fn timer_for_loop_ns(loop_ns: u64) -> u64 {
        let timer_ns = loop_ns.saturating_mul(3).saturating_add(500);
        if timer_ns < 1_000 {
            1_000
        } else if timer_ns > 15_500 {
            15_500
        } else {
            timer_ns
        }
    }

    /// Frames that sequence numbers of so many bits can tell apart from acknowledged ones: half of the numbers.
    #[must_use]
    pub const fn outstanding_frames_limit(sequence_bits: u8) -> u64 {
        1 << (sequence_bits.saturating_sub(1))
    }
}

/// Credits of one link direction (CBFC-like: cyclic consumed and freed counters).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditConfig {
    /// Bytes that one credit stands for.
    pub unit_bytes: u16,
    /// Bytes added to each frame before it is rounded up to credits (a wire's own cost per frame).
    pub overhead_bytes: u16,
    /// Credits that the receiver has room for.
    pub limit: u32,
}

impl CreditConfig {
    /// Credits that a frame of `bytes` costs: `ceil((bytes + overhead) / unit)`.
    #[must_use]
    pub const fn cost(&self, bytes: usize) -> u32 {
        // A frame is far below 4 GiB. Units are mostly powers of two, and every frame of every hop is rounded several
        // times: a division each would be among the dearest instructions of the whole path.
        let (bytes, unit) = (bytes as u32 + self.overhead_bytes as u32, self.unit_bytes as u32);
        if unit.is_power_of_two() {
            (bytes + (unit - 1)) >> unit.trailing_zeros()
        } else {
            bytes.div_ceil(unit)
        }
    }
}

/// When a link counts as dead, and when as returned. Return is slower than departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTimers {
    /// Time between heartbeats.
    pub heartbeat_interval_ns: u64,
    /// Missed heartbeats in a row until the link is down.
    pub heartbeat_miss_max: u32,
    /// Time a link stays down before it is probed again.
    pub hold_down_ns: u64,
    /// Heartbeats in a row that a probed link needs before it carries data again.
    pub up_count: u32,
    /// Time between Hellos while no neighbour has answered.
    pub hello_interval_ns: u64,
}

/// How lost packets are sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetransmissionMode {
    /// The receiver takes packets in order only; a hole re-sends everything after it.
    GoBackN,
    /// The receiver keeps what comes after a hole; only the hole is sent again.
    Selective,
}

/// End-to-end reliability. One packet sequence per (source, destination, class).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportConfig {
    /// Go-back-N or selective.
    pub mode: RetransmissionMode,
    /// Packets in flight per stream; also the reorder window.
    pub window_packets: u32,
    /// First retransmission timeout, before a round trip has been measured.
    pub timeout_initial_ns: u64,
    /// Lower bound of the timeout.
    pub timeout_min_ns: u64,
    /// Upper bound of the timeout, back-off included.
    pub timeout_max_ns: u64,
    /// Timeouts in a row without an acknowledgement until the stream gives up; 0 is never.
    pub retry_count_max: u32,
    /// Packets that may arrive before an acknowledgement must be sent.
    pub ack_every_packets: u32,
    /// Longest time that an acknowledgement may be held back.
    pub ack_delay_ns: u64,
}

/// Whether small operations wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackingMode {
    /// One operation per frame.
    Off,
    /// A frame takes what is already queued for its destination and class when the link grants. Adds no latency.
    Opportunistic,
}

/// SUE-like packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackingConfig {
    /// Off or opportunistic.
    pub mode: PackingMode,
    /// Operations per frame at most.
    pub operations_max: u16,
}
