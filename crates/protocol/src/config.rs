//! Configuration of a member. The plan builds and checks it; this file reads no files.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::ids::{Channel, Incarnation, NodeId, Plane, Tenant};
use crate::route::channels::ChannelConfig;
use crate::route::graph::SharedGraph;

/// Configuration of a member of the fabric.
#[derive(Clone, Debug)]
pub struct MemberConfig {
    /// Number of this member.
    pub node: NodeId,
    /// Incarnation of this member.
    pub incarnation: Incarnation,
    /// Low bits of the rack's identity. Frames of another rack, or of an earlier run, are dropped.
    pub epoch: u16,
    /// Tenant of every member, by [`NodeId`]. A frame that states another tenant is dropped.
    pub tenants: Arc<[Tenant]>,
    /// EtherType of every frame.
    pub ether_type: u16,
    /// All members and links of the rack, equal for all members.
    pub graph: SharedGraph,
    /// This member's ports, in port order.
    pub ports: Vec<PortConfig>,
    /// Failure detection of links.
    pub timers: LinkTimers,
    /// Retransmission, windows, acknowledgements.
    pub transport: TransportConfig,
    /// Packing of small operations into frames.
    pub packing: PackingConfig,
    /// Choice among several paths to a node, and the promised order.
    pub paths: PathConfig,
    /// Forwarding of frames beside the member's own.
    pub forwarding: ForwardingConfig,
    /// Virtual channels of every link.
    pub channels: ChannelConfig,
    /// True if routed frames carry the two checks. If nothing can corrupt a frame, the checks are the largest part of
    /// a small frame's cost. Frames that are not routed always carry theirs.
    pub end_to_end_check: bool,
    /// Outstanding loads per peer (64 in SUE-like and EthLink-like descriptions).
    pub outstanding_loads_max: u32,
    /// Largest frame this member sends or accepts, Ethernet header included, in bytes.
    pub frame_bytes_max: u16,
}

/// Rules by which a member forwards frames beside its own. The default rules prevent deadlocks on a ring; the others
/// exist to show that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardingConfig {
    /// True if an own frame leaves only where one more of the largest frames would fit (bubble flow control).
    pub bubble: bool,
    /// Frames that leave first where own frames and frames in transit wait.
    pub priority: ForwardingPriority,
    /// Time at which a node frees the buffer of a request.
    pub drain: RequestDrain,
    /// Queues of frames in transit.
    pub queues: TransitQueues,
    /// Bytes queued for a channel of a port above which a data frame that joins is marked. `None` marks no frame.
    pub mark_above_bytes: Option<u32>,
    /// Buffer that the frames of all pausing links share, in place of a limit for each.
    pub shared_buffer: Option<SharedBufferConfig>,
}

/// Frames that leave first where own frames and frames in transit wait for one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardingPriority {
    /// Frames in transit.
    #[default]
    Transit,
    /// Frames of this member.
    Own,
}

/// Time at which a node frees the buffer of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestDrain {
    /// As soon as the request is accepted.
    #[default]
    AtOnce,
    /// After the node has sent all answers to the requester.
    Answered,
}

/// Queues of frames in transit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransitQueues {
    /// One queue per egress and channel.
    #[default]
    ByOutput,
    /// One queue per ingress and channel: its frames leave in order of arrival.
    ByInput,
}

/// Buffer for frames in transit that all channels of all pausing links share (dynamic thresholds, Choudhury and Hahne
/// 1998).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBufferConfig {
    /// Size of the buffer, in bytes.
    pub bytes: u64,
    /// Part of the free space that a channel may hold, in thousandths.
    pub alpha_thousandths: u32,
    /// Reserve of each channel beside that part, in bytes.
    pub private_bytes: u32,
}

impl Default for ForwardingConfig {
    fn default() -> Self {
        Self {
            bubble: true,
            priority: ForwardingPriority::Transit,
            drain: RequestDrain::AtOnce,
            queues: TransitQueues::ByOutput,
            mark_above_bytes: None,
            shared_buffer: None,
        }
    }
}

/// Configuration of one port: the expected neighbour and the capacity of the link.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// Index of the link in [`Graph::edges`](crate::route::graph::Graph::edges).
    pub edge: u16,
    /// The member at the other end.
    pub neighbour: NodeId,
    /// Plane of the link.
    pub plane: Plane,
    /// Dimension of the link in a torus or hypercube. Of several shortest paths, those over the lowest dimension are used. 0 in
    /// other shapes.
    pub dimension: u8,
    /// Credits of the link, all channels together, equal at both ends.
    pub credits: CreditConfig,
    /// Credits of each channel; equal shares if the list is empty.
    pub channel_limits: Vec<u32>,
    /// Return of freed credits, equal at both ends and for each channel.
    pub updates: CreditUpdates,
    /// True if all channels of the rack share the link's credits and one queue, at both ends. Frames keep their
    /// channel numbers.
    pub is_undivided: bool,
    /// True if frames that leave over this link rise to the next level of their lane, with
    /// [`Rise::Dateline`](crate::route::channels::Rise::Dateline).
    pub is_dateline: bool,
    /// Link-level retry, equal at both ends; `None` is off.
    pub retry: Option<RetryConfig>,
    /// Pauses in place of credits, equal at both ends; `None` means credits.
    pub pause: Option<PauseConfig>,
}

impl PortConfig {
    /// Returns the number of channels into which the link is divided, from the number of the rack.
    #[must_use]
    pub const fn channel_count(&self, of_rack: usize) -> usize {
        if self.is_undivided { 1 } else { of_rack }
    }

    /// Returns the credits of one of `count` channels. A pausing link has unlimited credits: they are counted and
    /// hold nothing back.
    #[must_use]
    pub fn credits_of(&self, channel: Channel, count: usize) -> CreditConfig {
        if self.pause.is_some() {
            return CreditConfig { limit: CreditConfig::UNLIMITED, ..self.credits };
        }
        let share = self.credits.limit / (count as u32).max(1);
        let limit = self.channel_limits.get(channel.index()).copied().unwrap_or(share);
        CreditConfig { limit, ..self.credits }
    }
}

/// Link-level retry (UEC-LLR-like): the neighbour acknowledges every routed frame, and missing frames are replayed
/// below the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryConfig {
    /// Width of the sequence numbers whose rule applies. The header has 32 bits; hardware has fewer.
    pub sequence_bits: u8,
    /// Largest number of unacknowledged frames, at most half of the sequence numbers.
    pub outstanding_frames: u32,
    /// Largest number of unacknowledged bytes: the size of the replay buffer.
    pub outstanding_bytes: u32,
    /// Received bytes after which an acknowledgement leaves at once.
    pub ack_spacing_bytes: u32,
    /// Longest delay of an acknowledgement that waits for the spacing or for a frame to carry it, in nanoseconds.
    pub ack_delay_ns: u64,
    /// Shortest time without progress after which all unacknowledged frames are replayed, in nanoseconds.
    pub replay_timer_ns: u64,
    /// Longest value of that time, in nanoseconds. Up to it, the time follows the measured time from a frame to its
    /// acknowledgement, and doubles with each replay without progress. Equal values make it constant.
    pub replay_timer_max_ns: u64,
    /// Largest number of consecutive replays without progress; [`RetryConfig::REPLAYS_UNLIMITED`] means no limit.
    pub replay_count_max: u8,
    /// Handling of further frames after the last replay.
    pub flush: FlushPolicy,
}

/// Handling of frames that are to leave while a link is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushPolicy {
    /// Frames wait until both ends have agreed on numbers again.
    Block,
    /// Frames are discarded and counted.
    Discard,
    /// Frames leave without number and without protection.
    BestEffort,
}

impl RetryConfig {
    /// Replay count that is never reached.
    pub const REPLAYS_UNLIMITED: u8 = 255;

    /// Returns the replay timer for a control loop of this length: three loops and half a microsecond, within 1 and
    /// 15.5 us.
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

    /// Returns the number of frames that sequence numbers of so many bits can distinguish from acknowledged ones:
    /// half of the numbers.
    #[must_use]
    pub const fn outstanding_frames_limit(sequence_bits: u8) -> u64 {
        1 << (sequence_bits.saturating_sub(1))
    }
}

/// Pauses of a link (PFC-like), equal for each of its channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseConfig {
    /// Bytes of a channel that a receiver holds before it pauses its neighbour (xoff).
    pub xoff_bytes: u32,
    /// Bytes of a channel at which the neighbour is resumed (xon).
    pub xon_bytes: u32,
    /// Space above xoff for frames that arrive before a pause takes effect, in bytes.
    pub headroom_bytes: u32,
    /// Length of a requested pause, in quanta.
    pub quanta: u16,
    /// Length of a quantum in picoseconds: 512 bits of the link.
    pub quantum_ps: u64,
    /// Time from the receipt of a pause to the end of data, in nanoseconds.
    pub response_delay_ns: u64,
    /// Longest time for which data may be paused before pauses are ignored, and the time for which they are; in
    /// nanoseconds. 0 disables the watchdog.
    pub watchdog_ns: u64,
}

impl PauseConfig {
    /// Bits of a quantum.
    pub const QUANTUM_BITS: u64 = 512;

    /// Returns the length of a pause of so many quanta, in nanoseconds and at least 1.
    #[must_use]
    pub const fn pause_ns(&self, quanta: u16) -> u64 {
        let pause_ns = (quanta as u64).saturating_mul(self.quantum_ps) / 1_000;
        if pause_ns == 0 { 1 } else { pause_ns }
    }
}

/// Credits of one link direction (CBFC-like: cyclic consumed and freed counters).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditConfig {
    /// Number of bytes per credit.
    pub unit_bytes: u16,
    /// Number of bytes added to each frame before it is rounded up to credits: the wire's own overhead per frame.
    pub overhead_bytes: u16,
    /// Number of credits for which the receiver has space.
    pub limit: u32,
}

/// Return of a receiver's freed credits to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditUpdates {
    /// Credits that must have been freed since the last announcement before a credit frame leaves.
    pub spacing: u32,
    /// True if the receiver uses the sender's count of consumed credits, so that the credits of a lost frame come
    /// back. Otherwise only an arriving frame frees credits, and each loss leaks some until the link goes down.
    pub resync: bool,
}

impl CreditConfig {
    /// Limit that is never reached.
    pub const UNLIMITED: u32 = u32::MAX;

    /// Returns the default: updates by a quarter of the limit, with resync.
    #[must_use]
    pub const fn usual_updates(&self) -> CreditUpdates {
        CreditUpdates { spacing: self.limit / 4, resync: true }
    }

    /// Returns the largest limit that counters of so many bits can distinguish from an old one: half of their range.
    #[must_use]
    pub const fn limit_for_bits(counter_bits: u8) -> u64 {
        1 << (counter_bits.saturating_sub(1))
    }

    /// Returns the credits that a frame of `bytes` costs: `ceil((bytes + overhead) / unit)`.
    #[must_use]
    pub const fn cost(&self, bytes: usize) -> u32 {
        // A frame is far below 4 GiB. Units are mostly powers of two, and every frame is rounded several times per
        // hop, so divisions would be a large part of the cost.
        let (bytes, unit) = (bytes as u32 + self.overhead_bytes as u32, self.unit_bytes as u32);
        if unit.is_power_of_two() {
            (bytes + (unit - 1)) >> unit.trailing_zeros()
        } else {
            bytes.div_ceil(unit)
        }
    }
}

/// Timers of link failure and recovery. Recovery is slower than failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTimers {
    /// Time between heartbeats, in nanoseconds.
    pub heartbeat_interval_ns: u64,
    /// Consecutive missed heartbeats until the link is down.
    pub heartbeat_miss_max: u32,
    /// Intervals between the heartbeats of a link without other traffic; 1 means that links never rest.
    pub heartbeat_rest: u32,
    /// Time that a link stays down before it is probed again, in nanoseconds.
    pub hold_down_ns: u64,
    /// Consecutive heartbeats that a probed link needs before it carries data again.
    pub up_count: u32,
    /// Time between Hellos while no neighbour has answered, in nanoseconds.
    pub hello_interval_ns: u64,
}

impl LinkTimers {
    /// Returns the longest silence of a neighbour until its link is down, in nanoseconds: that of a resting one.
    #[must_use]
    pub fn detection_ns(&self) -> u64 {
        let promised = u64::from(self.rest()) - 1;
        self.heartbeat_interval_ns.saturating_mul(promised + u64::from(self.heartbeat_miss_max))
    }

    /// Returns the intervals between the heartbeats of a resting link. With a miss limit below three, no time is left
    /// to wake a neighbour whose only heartbeat was lost, so links do not rest.
    #[must_use]
    pub(crate) fn rest(&self) -> u32 {
        if self.heartbeat_miss_max < 3 { 1 } else { self.heartbeat_rest.max(1) }
    }
}

/// Retransmission of lost packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetransmissionMode {
    /// The receiver accepts packets in order only; a gap retransmits all packets after it.
    GoBackN,
    /// The receiver holds packets after a gap; only the missing ones are retransmitted.
    Selective,
}

/// Rule by which a sender changes its window while queues in the network are long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionControl {
    /// None: the window is constant.
    #[default]
    Off,
    /// The window follows the share of marked packets ([`crate::transport::congestion`]).
    Dctcp,
    /// The receiver grants packets ([`crate::transport::grants`]).
    Grants,
}

/// Settings of the transport. Each (source, destination, class) has one packet sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportConfig {
    /// Retransmission mode.
    pub mode: RetransmissionMode,
    /// Largest number of packets in flight per stream.
    pub window_packets: u32,
    /// Number of packets, from the expected one on, that a receiver holds in selective mode; packets beyond are
    /// dropped.
    pub reorder_packets: u32,
    /// First retransmission timeout, before a round trip has been measured, in nanoseconds.
    pub timeout_initial_ns: u64,
    /// Lower bound of the timeout, in nanoseconds.
    pub timeout_min_ns: u64,
    /// Upper bound of the timeout with back-off, in nanoseconds.
    pub timeout_max_ns: u64,
    /// Consecutive timeouts without an acknowledgement until the stream gives up; 0 means never.
    pub retry_count_max: u32,
    /// Number of packets after which an acknowledgement must be sent.
    pub ack_every_packets: u32,
    /// Longest delay of an acknowledgement, in nanoseconds.
    pub ack_delay_ns: u64,
    /// Congestion control of each stream, up to `window_packets`.
    pub congestion: CongestionControl,
    /// With [`CongestionControl::Grants`]: packets that may be in flight towards a member. `None` means as many as a window.
    pub grant_packets: Option<u32>,
}

impl TransportConfig {
    /// Returns the size of the pool of grants, in packets. `None` if the receiver does not grant packets.
    #[must_use]
    pub fn grant_pool(&self) -> Option<u32> {
        let is_on = self.congestion == CongestionControl::Grants;
        is_on.then(|| self.grant_packets.unwrap_or(self.window_packets).max(1))
    }
}

/// Choice of a packet's path among several of equal length to a node: planes, both directions of a ring, relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathPolicy {
    /// One path per pair of nodes, by a hash of their addresses.
    Address,
    /// One path per pair and class, by a hash of both.
    #[default]
    Flow,
    /// One path per destination, by its number: consecutive destinations use all paths equally.
    Destination,
    /// Each packet takes the next path in round robin.
    RoundRobin,
    /// Each packet takes a random path.
    Spray,
    /// Each packet takes the path with the shortest queue.
    LeastQueue,
}

impl PathPolicy {
    /// All policies.
    pub const ALL: [Self; 6] =
        [Self::Address, Self::Flow, Self::Destination, Self::RoundRobin, Self::Spray, Self::LeastQueue];

    /// Returns the name in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Flow => "flow",
            Self::Destination => "destination",
            Self::RoundRobin => "round-robin",
            Self::Spray => "spray",
            Self::LeastQueue => "least-queue",
        }
    }

    /// Returns true if packets of one stream use several paths at the same time.
    #[must_use]
    pub const fn is_per_packet(self) -> bool {
        matches!(self, Self::RoundRobin | Self::Spray | Self::LeastQueue)
    }
}

/// Order that a rack promises to its users. Stores, atomics and signals of one sequence always stay in order, and a
/// signal never overtakes the data of its put. The scopes differ in the data of several puts, and in the order
/// between classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OrderScope {
    /// All operations between two nodes: a command of another class than the one before waits until that is visible.
    Pair,
    /// All operations between two nodes in one class.
    #[default]
    Class,
    /// Puts that touch the same 256 bytes.
    Region,
    /// Operations on the same path that are not retransmitted.
    Path,
    /// None: data of puts is written as it comes.
    None,
}

impl OrderScope {
    /// All scopes, widest first.
    pub const ALL: [Self; 5] = [Self::Pair, Self::Class, Self::Region, Self::Path, Self::None];

    /// Returns the name in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pair => "pair",
            Self::Class => "class",
            Self::Region => "region",
            Self::Path => "path",
            Self::None => "none",
        }
    }
}

/// Paths of packets, and the promised order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathConfig {
    /// Policy that chooses a packet's path.
    pub policy: PathPolicy,
    /// Promised order, which is checked.
    pub order: OrderScope,
    /// True if members enforce the promised order. Otherwise packets are executed on arrival, to show the effect.
    pub keeps_order: bool,
    /// True if members choose again, by the same policy, for each packet that they forward. Only for policies per
    /// packet.
    pub relays_choose: bool,
}

impl Default for PathConfig {
    fn default() -> Self {
        Self {
            policy: PathPolicy::default(),
            order: OrderScope::default(),
            keeps_order: true,
            relays_choose: false,
        }
    }
}

impl PathConfig {
    /// Returns true if puts that touch the same bytes go one after the other.
    #[must_use]
    pub const fn orders_regions(&self) -> bool {
        self.keeps_order && matches!(self.order, OrderScope::Region)
    }

    /// Returns true if a receiver may execute data of puts early.
    #[must_use]
    pub const fn takes_early(&self) -> bool {
        !self.keeps_order || matches!(self.order, OrderScope::Region | OrderScope::Path | OrderScope::None)
    }
}

/// Packing of small operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackingMode {
    /// One operation per frame.
    Off,
    /// A frame takes all operations that are queued for its destination and class when the link grants it. Adds no
    /// latency.
    Opportunistic,
}

/// SUE-like packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackingConfig {
    /// Off or opportunistic.
    pub mode: PackingMode,
    /// Largest number of operations per frame.
    pub operations_max: u16,
}
