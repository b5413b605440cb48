//! Configuration of the harness's members.

use rackloom_protocol::*;

use super::DELAY_NS;

pub struct Options {
    pub transport: TransportConfig,
    pub packing: PackingConfig,
    pub paths: PathConfig,
    pub end_to_end_check: bool,
    pub tenants: Vec<Tenant>,
    pub credits: CreditConfig,
    pub retry: Option<RetryConfig>,
    pub pause: Option<PauseConfig>,
    pub resync: bool,
    pub forwarding: ForwardingConfig,
    pub update_spacing: Option<u32>,
    pub channels: ChannelConfig,
    pub datelines: Vec<u16>,
    /// Dimensions of links, by edge; 0 beyond the end of the list.
    pub dimensions: Vec<u8>,
    /// Undivided links, by edge.
    pub undivided: Vec<u16>,
    pub frame_bytes_max: u16,
    pub timers: LinkTimers,
}

pub fn options(mode: RetransmissionMode) -> Options {
    Options {
        transport: TransportConfig {
            mode,
            window_packets: 32,
            reorder_packets: 32,
            timeout_initial_ns: 100_000,
            timeout_min_ns: 50_000,
            timeout_max_ns: 1_000_000,
            retry_count_max: 0,
            ack_every_packets: 8,
            ack_delay_ns: 5_000,
            congestion: CongestionControl::Off,
            grant_packets: None,
        },
        packing: PackingConfig { mode: PackingMode::Opportunistic, operations_max: 64 },
        paths: PathConfig::default(),
        end_to_end_check: true,
        tenants: vec![Tenant(0); 64],
        credits: CreditConfig { unit_bytes: 128, overhead_bytes: 16, limit: 2000 },
        retry: None,
        pause: None,
        resync: true,
        forwarding: ForwardingConfig::default(),
        update_spacing: None,
        channels: ChannelConfig::default(),
        datelines: Vec::new(),
        dimensions: Vec::new(),
        undivided: Vec::new(),
        frame_bytes_max: 4352,
        timers: TIMERS,
    }
}

/// Link-level retry for the harness's links, whose loop is two delays.
pub const RETRY: RetryConfig = RetryConfig {
    sequence_bits: 20,
    outstanding_frames: 64,
    outstanding_bytes: 1 << 18,
    ack_spacing_bytes: 2_048,
    ack_delay_ns: 500,
    replay_timer_ns: RetryConfig::timer_for_loop_ns(2 * DELAY_NS),
    replay_timer_max_ns: RetryConfig::timer_for_loop_ns(2 * DELAY_NS),
    replay_count_max: RetryConfig::REPLAYS_UNLIMITED,
    flush: FlushPolicy::Block,
};

pub const TIMERS: LinkTimers = LinkTimers {
    heartbeat_interval_ns: 100_000,
    heartbeat_rest: 1,
    heartbeat_miss_max: 3,
    hold_down_ns: 500_000,
    up_count: 3,
    hello_interval_ns: 10_000,
};

/// Returns the configuration of a member of the harness.
pub fn member_config(
    graph: &Graph,
    node: NodeId,
    options: &Options,
    incarnation: Incarnation,
) -> MemberConfig {
    MemberConfig {
        node,
        incarnation,
        epoch: 7,
        tenants: options.tenants.as_slice().into(),
        ether_type: 0x88b5,
        ports: graph
            .ports(node)
            .into_iter()
            .map(|GraphPort { edge, neighbour, plane }| PortConfig {
                edge,
                neighbour,
                plane,
                dimension: options.dimensions.get(usize::from(edge)).copied().unwrap_or(0),
                credits: options.credits,
                channel_limits: Vec::new(),
                is_undivided: options.undivided.contains(&edge),
                is_dateline: options.datelines.contains(&edge),
                updates: CreditUpdates {
                    resync: options.resync,
                    spacing: options.update_spacing.unwrap_or(options.credits.limit / 4),
                },
                retry: options.retry,
                pause: options.pause,
            })
            .collect(),
        graph: graph.clone().into(),
        timers: options.timers,
        transport: options.transport,
        packing: options.packing,
        paths: options.paths,
        forwarding: options.forwarding,
        channels: options.channels.clone(),
        end_to_end_check: options.end_to_end_check,
        outstanding_loads_max: 64,
        frame_bytes_max: options.frame_bytes_max,
    }
}
