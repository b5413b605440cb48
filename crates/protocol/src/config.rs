//! What a member is told at birth. The plan builds it, checked; nothing here reads a file.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::ids::{Channel, Incarnation, NodeId, Plane, Tenant};
use crate::route::channels::ChannelConfig;
use crate::route::graph::SharedGraph;

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
    pub tenants: Arc<[Tenant]>,
    /// EtherType of every frame.
    pub ether_type: u16,
    /// Every member and link of the rack, the same for all members.
    pub graph: SharedGraph,
    /// This member's ports, in port order.
    pub ports: Vec<PortConfig>,
    /// Liveness of links.
    pub timers: LinkTimers,
    /// Retransmission, windows, acknowledgements.
    pub transport: TransportConfig,
    /// How small operations share a frame.
    pub packing: PackingConfig,
    /// Which way packets go where several lead to a node, and what order survives that.
    pub paths: PathConfig,
    /// How frames are passed on beside frames of one's own.
    pub forwarding: ForwardingConfig,
    /// The virtual channels of every link.
    pub channels: ChannelConfig,
    /// Whether routed frames carry the two checks. Where nothing can corrupt a frame they cost more than everything else that a
    /// small frame costs; frames that are not routed carry theirs anyway.
    pub end_to_end_check: bool,
    /// Outstanding loads per peer (64 in SUE-like and EthLink-like descriptions).
    pub outstanding_loads_max: u32,
    /// Largest frame this member sends or accepts, Ethernet header included, in bytes.
    pub frame_bytes_max: u16,
}

/// How a member passes frames on for others while it sends its own. The usual rules keep a ring from standing still for ever;
/// to leave them out is for showing what they are good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardingConfig {
    /// A frame of its own leaves only where a largest one more would fit (bubble flow control).
    pub bubble: bool,
    /// Frames of its own go before frames in transit.
    pub own_first: bool,
    /// A node frees the buffer of a request only when it has nothing more to answer to whoever asked.
    pub until_answered: bool,
    /// What came in over one link and channel leaves in that order: there is no queue for each way out.
    pub in_order: bool,
    /// Bytes that may wait for a channel of a port; a data frame that joins more is marked. Nothing is marked without.
    pub mark_above_bytes: Option<u32>,
    /// Room that the frames of all links which pause share, in place of a limit for each.
    pub shared_buffer: Option<SharedBufferConfig>,
}

/// Room for frames in transit that all channels of all links with pauses share (dynamic thresholds, Choudhury and Hahne 1998).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBufferConfig {
    /// All of it.
    pub bytes: u64,
    /// A channel may hold so many thousandths of what is free.
    pub alpha_thousandths: u32,
    /// What each channel has for itself beside that.
    pub private_bytes: u32,
}

impl Default for ForwardingConfig {
    fn default() -> Self {
        Self {
            bubble: true,
            own_first: false,
            until_answered: false,
            in_order: false,
            mark_above_bytes: None,
            shared_buffer: None,
        }
    }
}

/// One port: which neighbour is expected there, and what the link can hold.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// Index of the link in [`Graph::edges`](crate::route::graph::Graph::edges).
    pub edge: u16,
    /// The member at the other end.
    pub neighbour: NodeId,
    /// The plane that the link belongs to.
    pub plane: Plane,
    /// Credits of the link, all channels together, the same at both ends.
    pub credits: CreditConfig,
    /// How many of them each channel has; equal shares where the list is empty.
    pub channel_limits: Vec<u32>,
    /// How freed credits come back, the same at both ends and for each channel.
    pub updates: CreditUpdates,
    /// All channels of the rack share the link's credits and one queue, at both ends: frames keep their channel, and nothing is
    /// divided by it.
    pub is_undivided: bool,
    /// Frames that leave over this link climb to the next level of their lane, if datelines are what makes them.
    pub is_dateline: bool,
    /// Link-level retry, the same at both ends; `None` is off.
    pub retry: Option<RetryConfig>,
    /// Pauses in place of credits, the same at both ends; `None` leaves the link its credits.
    pub pause: Option<PauseConfig>,
}

impl PortConfig {
    /// Of so many channels that a rack has, how many the link divides itself into.
    #[must_use]
    pub const fn channel_count(&self, of_rack: usize) -> usize {
        if self.is_undivided { 1 } else { of_rack }
    }

    /// Credits of one channel, of so many. A link that pauses has them without end: they are counted, and hold back nothing.
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
    /// Least time without progress after which everything unacknowledged is sent again.
    pub replay_timer_ns: u64,
    /// Longest value of that time. Up to this it follows the measured time from a frame to its acknowledgement, and doubles with each
    /// replay that brings nothing; equal values mean that it is constant.
    pub replay_timer_max_ns: u64,
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

/// Pauses of a link (PFC-like), the same for each of its channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseConfig {
    /// Bytes of a channel that a receiver holds before it asks its neighbour to pause.
    pub xoff_bytes: u32,
    /// Bytes at which the neighbour may go on.
    pub xon_bytes: u32,
    /// Room above xoff, for what comes before a pause takes effect.
    pub headroom_bytes: u32,
    /// For how long a pause is asked, in quanta.
    pub quanta: u16,
    /// What a quantum lasts: 512 bits of the link.
    pub quantum_ps: u64,
    /// Between a pause that is heard and no more data.
    pub response_delay_ns: u64,
    /// How long data may be paused before pauses are heeded no more, and how long that lasts; 0 is for ever and never.
    pub watchdog_ns: u64,
}

impl PauseConfig {
    /// Bits of a quantum.
    pub const QUANTUM_BITS: u64 = 512;

    /// How long a pause of so many quanta lasts; at least a nanosecond.
    #[must_use]
    pub const fn pause_ns(&self, quanta: u16) -> u64 {
        let pause_ns = (quanta as u64).saturating_mul(self.quantum_ps) / 1_000;
        if pause_ns == 0 { 1 } else { pause_ns }
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

/// How a receiver's freed credits come back to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditUpdates {
    /// Credits that must have been freed since the sender was last told, for an update to leave as a frame of its own.
    pub spacing: u32,
    /// Whether the receiver goes by what the sender says it has consumed, so that the credits of a frame that is lost come
    /// back. Otherwise only a frame that arrives frees any, and each loss leaks some until the link goes down.
    pub resync: bool,
}

impl CreditConfig {
    /// A limit that is never reached.
    pub const UNLIMITED: u32 = u32::MAX;

    /// Updates by a quarter of the limit, and nothing that leaks.
    #[must_use]
    pub const fn usual_updates(&self) -> CreditUpdates {
        CreditUpdates { spacing: self.limit / 4, resync: true }
    }

    /// The largest limit that counters of so many bits can keep apart from an old one: half of their circle.
    #[must_use]
    pub const fn limit_for_bits(counter_bits: u8) -> u64 {
        1 << (counter_bits.saturating_sub(1))
    }

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
    /// Intervals between the heartbeats of a link that has nothing else to carry; 1: it never rests.
    pub heartbeat_rest: u32,
    /// Time a link stays down before it is probed again.
    pub hold_down_ns: u64,
    /// Heartbeats in a row that a probed link needs before it carries data again.
    pub up_count: u32,
    /// Time between Hellos while no neighbour has answered.
    pub hello_interval_ns: u64,
}

impl LinkTimers {
    /// Longest silence of a neighbour until its link is down: of one that was at rest.
    #[must_use]
    pub fn detection_ns(&self) -> u64 {
        let promised = u64::from(self.rest()) - 1;
        self.heartbeat_interval_ns.saturating_mul(promised + u64::from(self.heartbeat_miss_max))
    }

    /// Intervals between the heartbeats of a link at rest. Whoever waits for fewer than three heartbeats has no time to ask a
    /// neighbour whose only one was lost.
    #[must_use]
    pub(crate) fn rest(&self) -> u32 {
        if self.heartbeat_miss_max < 3 { 1 } else { self.heartbeat_rest.max(1) }
    }
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
    /// Packets in flight per stream.
    pub window_packets: u32,
    /// Packets from the expected one on that a receiver keeps under selective; what is further ahead is dropped.
    pub reorder_packets: u32,
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

/// Which of several equal ways to a node a packet takes: planes, both ways round a ring, relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathPolicy {
    /// One way per pair of nodes, by a hash of their addresses.
    Address,
    /// One way per pair and class, by a hash of both.
    #[default]
    Flow,
    /// Each packet takes the way after that of the packet before.
    RoundRobin,
    /// Each packet takes a way at random.
    Spray,
    /// Each packet takes the way on which least waits.
    LeastQueue,
}

impl PathPolicy {
    /// All policies.
    pub const ALL: [Self; 5] = [Self::Address, Self::Flow, Self::RoundRobin, Self::Spray, Self::LeastQueue];

    /// Name in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Flow => "flow",
            Self::RoundRobin => "round-robin",
            Self::Spray => "spray",
            Self::LeastQueue => "least-queue",
        }
    }

    /// Whether packets of one stream take several ways at the same time.
    #[must_use]
    pub const fn is_per_packet(self) -> bool {
        matches!(self, Self::RoundRobin | Self::Spray | Self::LeastQueue)
    }
}

/// What order a rack promises to whoever uses it. Stores, atomics and signals of one sequence always keep theirs, and a signal
/// never overtakes the data of its put; the scopes differ in the data of several puts, and in what holds between classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OrderScope {
    /// Everything between two nodes: what goes to another class than the command before waits until that is visible.
    Pair,
    /// Everything between two nodes in one class.
    #[default]
    Class,
    /// Puts that touch the same 256 bytes.
    Region,
    /// What takes the same way, as far as it is not sent again.
    Path,
    /// None: data of puts is written as it comes.
    None,
}

impl OrderScope {
    /// All scopes, the widest first.
    pub const ALL: [Self; 5] = [Self::Pair, Self::Class, Self::Region, Self::Path, Self::None];

    /// Name in files and reports.
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

/// How packets find their way, and what order survives that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathConfig {
    /// Which way a packet takes.
    pub policy: PathPolicy,
    /// What is promised, and watched.
    pub order: OrderScope,
    /// Whether members do what the promise takes. Otherwise packets are carried out as they come; to show what happens then.
    pub keeps_order: bool,
    /// Whether members choose anew, by the same policy, for each packet that they pass on; only of policies per packet.
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
    /// Whether a receiver may carry out data of puts that comes before its turn.
    #[must_use]
    pub const fn takes_early(&self) -> bool {
        !self.keeps_order || matches!(self.order, OrderScope::Region | OrderScope::Path | OrderScope::None)
    }
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
