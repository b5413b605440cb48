//! How the protocol is set: liveness of links, reliability, packing, credits.

use rackloom_protocol::wire::packed::BITMAP_BYTES_MAX;

use crate::schema::{Key, Kind, Table, key, table};

const MICROSECOND_NS: u64 = 1_000;
const MILLISECOND_NS: u64 = 1_000_000;
const MINUTE_NS: u64 = 60_000_000_000;
const HOUR_NS: u64 = 60 * MINUTE_NS;
/// The selective acknowledgement names the packets of one window, one bit each.
pub(crate) const WINDOW_PACKETS_MAX: u64 = BITMAP_BYTES_MAX as u64 * 8;
/// Operations of a frame are counted in one byte; the core keeps a few for its own.
const OPERATIONS_MAX: u64 = 250;

pub(crate) static TIMERS: Table = table("timers", TIMER_KEYS);
pub(crate) static TRANSPORT: Table = table("transport", TRANSPORT_KEYS);
pub(crate) static PACKING: Table = table(
    "packing",
    &[
        key(
            "mode",
            Kind::Word(&["opportunistic", "off"]),
            "`opportunistic`",
            "Whether a frame takes along what is already queued for its destination and class.",
        ),
        key(
            "operations_max",
            Kind::Count(1, OPERATIONS_MAX),
            "64 (ours)",
            "Operations of one frame at most.",
        ),
    ],
);
pub(crate) static FORWARDING: Table = table(
    "forwarding",
    &[
        key(
            "mode",
            Kind::Word(&["store-and-forward", "cut-through"]),
            "`store-and-forward`",
            "Whether a frame is passed on when all of it has come in, or as soon as it begins to.",
        ),
        key("latency", Kind::Time(0, MILLISECOND_NS), "`0ns`", "What passing a frame on adds to its way."),
    ],
);
pub(crate) static CREDITS: Table = table(
    "credits",
    &[
        key(
            "unit_bytes",
            Kind::Size(32, 2048),
            "`128B`; packet and udp wires `256B` (ours)",
            "What one credit stands for.",
        ),
        key(
            "overhead_bytes",
            Kind::Size(0, 8192),
            "`16B`; packet and udp wires `1024B` (ours)",
            "Added to each frame: what the wire needs beside its bytes.",
        ),
        key(
            "limit",
            Kind::Count(0, u32::MAX as u64),
            "half of `ring_bytes`; packet wire 160KiB, udp wire 120KiB (ours)",
            "Credits of one link direction.",
        ),
    ],
);

const TIMER_KEYS: &[Key] = &[
    key(
        "heartbeat_interval",
        Kind::Time(MICROSECOND_NS, MINUTE_NS),
        "`100ms` (ours)",
        "Between heartbeats. Suits many processes on few cores; use microseconds in the simulator.",
    ),
    key(
        "heartbeat_miss_max",
        Kind::Count(1, 100),
        "5 (ours)",
        "Heartbeats missed in a row until the link is down.",
    ),
    key(
        "hold_down",
        Kind::Time(0, 24 * HOUR_NS),
        "twice the interval times the misses (ours)",
        "How long a link stays down before it is probed.",
    ),
    key(
        "up_count",
        Kind::Count(1, 100),
        "3 (ours)",
        "Heartbeats in a row until a probed link carries data again.",
    ),
    key(
        "hello_interval",
        Kind::Time(MICROSECOND_NS, MINUTE_NS),
        "`2ms` (ours)",
        "Between Hellos while no neighbour has answered.",
    ),
];

const TRANSPORT_KEYS: &[Key] = &[
    key(
        "mode",
        Kind::Word(&["selective", "go-back-n"]),
        "`selective`",
        "Re-send the hole only, or everything from it on.",
    ),
    key(
        "window_packets",
        Kind::Count(1, WINDOW_PACKETS_MAX),
        "256 (ours)",
        "Packets in flight per sequence. The limit is what the bitmap of an acknowledgement can name, far below half of \
         the sequence numbers.",
    ),
    key(
        "timeout_initial",
        Kind::Time(MICROSECOND_NS, HOUR_NS),
        "`20ms` (ours)",
        "First retransmission timeout, before a round trip is known.",
    ),
    key("timeout_min", Kind::Time(MICROSECOND_NS, HOUR_NS), "`10ms` (ours)", "Its lower bound."),
    key(
        "timeout_max",
        Kind::Time(MICROSECOND_NS, HOUR_NS),
        "`500ms` (ours)",
        "Its upper bound, back-off included.",
    ),
    key(
        "retry_count_max",
        Kind::Count(0, 1_000_000),
        "0 (ours)",
        "Timeouts in a row until the sequence gives up; 0 leaves that to the state of the paths.",
    ),
    key(
        "ack_every_packets",
        Kind::Count(1, WINDOW_PACKETS_MAX),
        "16 (ours)",
        "Packets that may arrive before an acknowledgement must leave; at most the window.",
    ),
    key(
        "ack_delay",
        Kind::Time(0, HOUR_NS),
        "`200us` (ours)",
        "Longest time that an acknowledgement waits for company.",
    ),
];
