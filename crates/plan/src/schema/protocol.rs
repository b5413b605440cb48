//! Declares the protocol settings: timers, transport, packing, forwarding, credits.

use rackloom_protocol::wire::packed::BITMAP_BYTES_MAX;
use rackloom_protocol::{OrderScope, PackingMode, PathPolicy, RetransmissionMode};

use crate::model::defaults::REORDER_PACKETS_MIN;
use crate::model::timing::ForwardingMode;
use crate::schema::{Key, Kind, REQUIRED, Table, key, table};
use crate::setting::word::Word;

const MICROSECOND_NS: u64 = 1_000;
const MILLISECOND_NS: u64 = 1_000_000;
const MINUTE_NS: u64 = 60_000_000_000;
const HOUR_NS: u64 = 60 * MINUTE_NS;
/// Largest window: the selective acknowledgement has one bit for each of its packets.
pub(crate) const WINDOW_PACKETS_MAX: u64 = BITMAP_BYTES_MAX as u64 * 8;
/// Largest number of operations per frame: the count is one byte, and the core reserves a few.
const OPERATIONS_MAX: u64 = 250;
const BUFFER_BYTES_MAX: u64 = 1 << 30;

pub(crate) static TIMERS: Table = table("timers", TIMER_KEYS);
/// Forms of `timers`.
pub(crate) const TIMERS_FORMS: Kind = Kind::Either(&[Kind::Word(&["auto"]), Kind::Table(&TIMERS)]);
pub(crate) static TRANSPORT: Table = table("transport", TRANSPORT_KEYS);
pub(crate) static PATHS: Table = table(
    "paths",
    &[
        key(
            "policy",
            Kind::Word(PathPolicy::WORDS),
            "`flow`",
            "Which of several equally short ways a packet takes: planes, both ways round a ring, relays of a mesh. `address` hashes \
         source and destination, `flow` the class as well, so that all packets of a sequence go one way; `round-robin` takes \
         the ways in turn, `spray` at random, `least-queue` the one on which least waits. The last three need a \
         selective transport.",
        ),
        key(
            "order",
            Kind::Word(OrderScope::WORDS),
            "`class`",
            "What order is promised, and watched in every run: of everything between two nodes (`pair`), of everything between them \
         in one class (`class`), of puts that touch the same 256 bytes (`region`), of what takes the same way and is not sent \
         again (`path`), or none. Under the last three the data of puts is written as it comes. Stores, atomics and signals \
         keep the order of their class, and a signal never overtakes the data of its put.",
        ),
        key(
            "keep_order",
            Kind::Flag,
            "`true`",
            "Whether members do what the promise takes. `false` is for showing what becomes of it: packets are carried out as they \
         come.",
        ),
        key(
            "relays",
            Kind::Word(&["flow", "policy"]),
            "`flow`",
            "Which of several ways a switch, or a node that relays, gives a packet: that of its flow (`flow`), or one chosen anew for each packet as \
             `policy` says (`policy`), which must be one of the last three.",
        ),
    ],
);
pub(crate) static PACKING: Table = table(
    "packing",
    &[
        key(
            "mode",
            Kind::Word(PackingMode::WORDS),
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
            Kind::Word(ForwardingMode::NAMES),
            "`store-and-forward`",
            "Whether a frame is passed on when all of it has come in, or as soon as it begins to.",
        ),
        key("latency", Kind::Time(0, MILLISECOND_NS), "`0ns`", "What passing a frame on adds to its way."),
        key(
            "bubble",
            Kind::Flag,
            "`true`",
            "Whether a member's own frames leave only where one more largest frame would fit, so that a ring never stands \
             still. `false` is for showing that it does.",
        ),
        key(
            "priority",
            Kind::Word(&["transit", "own"]),
            "`transit`",
            "Which frames go first: those passed on for others, or the member's own.",
        ),
        key(
            "drain",
            Kind::Word(&["at-once", "answered"]),
            "`at-once`",
            "When a node frees the buffer of a request that it has taken: at once, or when all its answers have \
             left. `answered` is for showing why answers want a channel of their own.",
        ),
        key(
            "queues",
            Kind::Word(&["by-output", "by-input"]),
            "`by-output`",
            "What waits for what in a switch, or in a node that relays. `by-output`: a frame waits for those that leave by the same port \
             (virtual output queues). `by-input`: also for those that came in before it over the same link and channel, to any \
             port; it shows what that costs. A line moves up when its first frame has left, and a link's channels take turns.",
        ),
        key(
            "buffer",
            Kind::Table(&BUFFER),
            "the `pfc` of each link",
            "One memory in each member for the frames of all links that pause, in place of their `xoff`.",
        ),
        key(
            "mark_above",
            Kind::Size(0, BUFFER_BYTES_MAX),
            "nothing is marked",
            "Bytes that may wait for a channel of a port: a data frame that joins more is marked, its receiver's next acknowledgement \
             says so, and its sender counts that. No sender becomes slower because of it.",
        ),
        key(
            "deadlock",
            Kind::Word(&["refuse", "allow"]),
            "`refuse`",
            "Treatment of a rack whose channels can wait for each other in a cycle. `allow` accepts it, to demonstrate the deadlock.",
        ),
    ],
);
pub(crate) static BUFFER: Table = table(
    "forwarding.buffer",
    &[
        key(
            "bytes",
            Kind::Size(1, BUFFER_BYTES_MAX),
            REQUIRED,
            "All of it, for each switch, and each node that relays.",
        ),
        key(
            "alpha",
            Kind::Factor(1, 64_000),
            "1 (ours)",
            "A channel of a link may hold so many times what is free before its neighbour is paused.",
        ),
        key(
            "private",
            Kind::Size(0, BUFFER_BYTES_MAX),
            "`0B`",
            "What each channel of each link has for itself, beside the memory that is shared.",
        ),
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
        key(
            "update_spacing",
            Kind::Size(1, 1 << 40),
            "a quarter of all credits (ours)",
            "Bytes that must have been freed before an update leaves as a frame of its own.",
        ),
        key(
            "resync",
            Kind::Flag,
            "`true` (ours)",
            "Whether the credits of a lost frame come back, with the next frame that arrives. Without it they leak until the \
             link goes down.",
        ),
        key(
            "counter_bits",
            Kind::Count(2, 32),
            "32 (ours)",
            "Width of the cyclic counters: the limit is at most half of their range.",
        ),
    ],
);

const TIMER_KEYS: &[Key] = &[
    key(
        "heartbeat_interval",
        Kind::Time(MICROSECOND_NS, MINUTE_NS),
        "`100ms` (ours)",
        "Between heartbeats. The default suits many processes on few cores; in virtual time it is 50 us, at least eight times \
         the longest hop and 400 ns for each link.",
    ),
    key(
        "heartbeat_miss_max",
        Kind::Count(1, 100),
        "5 (ours)",
        "Heartbeats missed in a row until the link is down. On a busy machine a member whose own heartbeats leave late \
         waits as much longer, at most twice as long.",
    ),
    key(
        "heartbeat_rest",
        Kind::Count(1, 100),
        "5 if the interval is 100 ms, else 1 (ours); 1 in virtual time if the interval is left open",
        "Intervals between the heartbeats of a link that carries nothing else. A neighbour that dies while its link rests is \
         noticed as much later. Has no effect with fewer than 3 misses.",
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
        "Between Hellos while no neighbour has answered; in virtual time 20 us, at least four times the longest hop.",
    ),
];

const TRANSPORT_KEYS: &[Key] = &[
    key(
        "mode",
        Kind::Word(RetransmissionMode::WORDS),
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
        "reorder_packets",
        Kind::Count(REORDER_PACKETS_MIN as u64, WINDOW_PACKETS_MAX),
        "as `window_packets`, at least 128 (ours)",
        "Under `selective`: packets from the expected one on that a receiver keeps. What comes from further ahead is dropped as \
         `beyond-window` and sent again.",
    ),
    key(
        "timeout_initial",
        Kind::Time(MICROSECOND_NS, HOUR_NS),
        "`20ms` (ours)",
        "First retransmission timeout, before a round trip is known; in virtual time what one window of every node takes, at most \
         this.",
    ),
    key(
        "timeout_min",
        Kind::Time(MICROSECOND_NS, HOUR_NS),
        "`10ms` (ours)",
        "Its lower bound. Between real processes at least 40 ms if all links have `llr`; in virtual time the round trip, the delay of an \
         acknowledgement and one window.",
    ),
    key(
        "timeout_max",
        Kind::Time(MICROSECOND_NS, HOUR_NS),
        "`500ms` (ours)",
        "Its upper bound, back-off included; in virtual time 32 times the lower one, at least twice the first.",
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
        "Longest time that an acknowledgement waits for further packets; in virtual time the round trip, within 1 us and 200 us.",
    ),
];
