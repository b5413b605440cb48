//! Declares links and their retry, pauses, credits and channels.

use rackloom_protocol::FlushPolicy;

use crate::model::headers::HeaderProfile;
use crate::model::timing::Medium;
use crate::schema::{Key, Kind, REQUIRED, Table, key, table};
use crate::setting::word::Word;

/// Longest delay of a link.
const DELAY_NS_MAX: u64 = 10_000_000_000;
const LENGTH_MM_MAX: u64 = 10_000_000;
/// Largest latency of one stage on one side.
const SIDE_NS_MAX: u64 = 1_000_000;
const RATE_MIN: u64 = 1_000;
const RATE_MAX: u64 = 100_000_000_000_000;

pub(crate) static LINK: Table = table("link", KEYS);
pub(crate) static LLR: Table = table("link.llr", LLR_KEYS);
pub(crate) static PFC: Table = table("link.pfc", PFC_KEYS);
pub(crate) static LINK_CREDITS: Table = table(
    "link.credits",
    &[
        key("limit", Kind::Count(1, u32::MAX as u64), "as `credits.limit`", "Credits of each direction."),
        key(
            "update_spacing",
            Kind::Size(1, 1 << 40),
            "as `credits.update_spacing`; a quarter of the credits of a channel if that is not stated",
            "Bytes that must have been freed before an update leaves as a frame of its own.",
        ),
        key(
            "resync",
            Kind::Flag,
            "as `credits.resync`",
            "Whether the credits of a frame that the link has lost come back.",
        ),
    ],
);
pub(crate) static LINK_CHANNELS: Table = table(
    "link.channels",
    &[key(
        "limits",
        Kind::Counts,
        "as `channels.limits`",
        "Credits of each channel of the link; together at most the credits that it has.",
    )],
);
pub(crate) static BURST: Table = table(
    "link.burst",
    &[
        key("enter", Kind::Probability, REQUIRED, "A good link turns bad before a frame."),
        key("leave", Kind::Probability, REQUIRED, "A bad link turns good before a frame."),
        key("loss", Kind::Probability, "1", "A bad link loses a frame."),
    ],
);
pub(crate) static LOSS_BY_KIND: Table = table(
    "link.loss_by_kind",
    &[
        key("data", Kind::Probability, "as `loss`", "Frames that carry operations."),
        key("ack", Kind::Probability, "as `loss`", "Acknowledgements that travel alone."),
        key("hello", Kind::Probability, "as `loss`", "Greetings of neighbours."),
        key("heartbeat", Kind::Probability, "as `loss`", "Signs of life."),
        key("report", Kind::Probability, "as `loss`", "Reports of links that came or went."),
        key("credit", Kind::Probability, "as `loss`", "Credits that travel alone."),
        key(
            "link_ack",
            Kind::Probability,
            "as `loss`",
            "Link-level retry: acknowledgements that travel alone.",
        ),
        key("link_nack", Kind::Probability, "as `loss`", "Link-level retry: refusals."),
        key("link_init", Kind::Probability, "as `loss`", "Link-level retry: numbers offered."),
        key("link_init_echo", Kind::Probability, "as `loss`", "Link-level retry: numbers taken."),
        key("pause", Kind::Probability, "as `loss`", "Pauses, and words that end them."),
    ],
);

const KEYS: &[Key] = &[
    key("rate", Kind::Rate(RATE_MIN, RATE_MAX), "`unlimited`", "Bits per second of the link."),
    key(
        "delay",
        Kind::Time(0, DELAY_NS_MAX),
        "`500ns` (ours)",
        "From one end of the cable to the other, without serialisation.",
    ),
    key(
        "length",
        Kind::Length(1, LENGTH_MM_MAX),
        "none",
        "Length of the cable, in place of its `delay`: `3m` of copper are 13.8 ns.",
    ),
    key(
        "medium",
        Kind::Word(Medium::NAMES),
        "copper, where there is a `length`",
        "What a cable with a `length` is made of: 4.6 ns per metre of copper, 4.9 of fibre (ours).",
    ),
    key(
        "mac_latency",
        Kind::Time(0, SIDE_NS_MAX),
        "`0ns`",
        "What medium access adds at each of the two ends.",
    ),
    key("phy_latency", Kind::Time(0, SIDE_NS_MAX), "`0ns`", "What the physical layer adds at each end."),
    key(
        "fec_latency",
        Kind::Time(0, SIDE_NS_MAX),
        "`0ns`",
        "What forward error correction adds at each end.",
    ),
    key(
        "headers",
        Kind::Word(HeaderProfile::NAMES),
        "`own`",
        "Whose headers the `rate` counts, in virtual time: those really on the wire, or what a fabric of that kind would \
         put around the same operations.",
    ),
    key("loss", Kind::Probability, "0", "A frame is lost."),
    key("burst", Kind::Table(&BURST), "none", "Several frames in a row are lost, beside those of `loss`."),
    key(
        "loss_by_kind",
        Kind::Table(&LOSS_BY_KIND),
        "",
        "A frame of this kind is lost, in place of `loss`: `{ack: 10%, data: 0}`.",
    ),
    key(
        "bit_error_rate",
        Kind::Probability,
        "0",
        "A bit on the wire is wrong, and its frame with it is lost: of a frame of L bytes, preamble and gap included, a share of \
         1 - (1 - rate)^8L, beside the losses of `loss`.",
    ),
    key(
        "corrupt",
        Kind::Probability,
        "0",
        "One bit of a frame is flipped, anywhere in it, headers included.",
    ),
    key("duplicate", Kind::Probability, "0", "A frame is delivered twice."),
    key("reorder", Kind::Probability, "0", "One to three later frames overtake a frame."),
    key("seed", Kind::Count(0, u64::MAX), "the rack's", "Seed of this link's faults alone."),
    key(
        "drop_frames",
        Kind::Either(&[Kind::Counts, Kind::CountsByDirection]),
        "none",
        "Lose exactly these data frames, counted from 1 in each direction; frames that carry no operations are not \
         counted. A list holds for both directions; `{n0->n1: [901]}`, under `links` only, for one.",
    ),
    key(
        "credits",
        CREDITS_FORMS,
        "as `credits` says",
        "Credits of each direction of the link, and how they come back, in place of what all links have: a number, or a table.",
    ),
    key(
        "channels",
        CHANNELS_FORMS,
        "`on`",
        "Whether the link is divided into the rack's `channels`. Where it is not (`off`) they share all its credits and one queue; frames \
         keep their channel for the links behind it.",
    ),
    key(
        "llr",
        LLR_FORMS,
        "`off`",
        "Link-level retry: both ends number frames and repeat what the link loses.",
    ),
    key(
        "pfc",
        PFC_FORMS,
        "`off`",
        "Pauses in place of credits: a receiver that runs out of room asks its neighbour to stop, channel by channel.",
    ),
];

const CREDITS_FORMS: Kind = Kind::Either(&[Kind::Count(1, u32::MAX as u64), Kind::Table(&LINK_CREDITS)]);
const CHANNELS_FORMS: Kind = Kind::Either(&[Kind::Word(&["on", "off"]), Kind::Table(&LINK_CHANNELS)]);

const PFC_FORMS: Kind = Kind::Either(&[Kind::Word(&["on", "off"]), Kind::Table(&PFC)]);

const PFC_KEYS: &[Key] = &[
    key(
        "xoff",
        Kind::Size(1, 1 << 30),
        "`64KiB` (ours)",
        "Bytes of a channel that a receiver holds for passing on before it asks for a pause.",
    ),
    key(
        "xon",
        Kind::Size(0, 1 << 30),
        "half of `xoff` (ours)",
        "Bytes at which the neighbour may go on; below `xoff`.",
    ),
    key(
        "headroom",
        Kind::Size(0, 1 << 30),
        "what is under way; at an unlimited rate what is left of three quarters of `ring_bytes` (ours)",
        "Room above `xoff` for what still comes. What finds none is lost.",
    ),
    key(
        "short_headroom",
        Kind::Word(&["refuse", "allow"]),
        "`refuse`",
        "What becomes of a `headroom` for less than what is under way. `allow` is for seeing what is lost.",
    ),
    key(
        "quanta",
        Kind::Count(1, 65_535),
        "65535 (ours)",
        "For how long a pause is asked, in units of 512 bits of the link, at an unlimited rate of 100 Gbit/s; it is asked for again \
         when half of that has passed. Between real processes a pause lasts 20 ms at least (ours).",
    ),
    key(
        "response_delay",
        Kind::Time(0, DELAY_NS_MAX),
        "`0ns` (ours)",
        "Between a pause that is heard and no more data.",
    ),
    key(
        "watchdog",
        Kind::Time(0, 60_000_000_000),
        "`200ms` (ours)",
        "How long data may be paused before its sender heeds pauses no more, and for how long it does not. `0ns` is for ever.",
    ),
];

const LLR_FORMS: Kind = Kind::Either(&[Kind::Word(&["on", "off"]), Kind::Table(&LLR)]);

const LLR_KEYS: &[Key] = &[
    key(
        "sequence_bits",
        Kind::Count(2, 32),
        "20",
        "Width of the sequence numbers whose rule is kept: at most half of them may be unacknowledged.",
    ),
    key("outstanding_frames", Kind::Count(1, 1 << 20), "1024 (ours)", "Frames that may be unacknowledged."),
    key(
        "outstanding_bytes",
        Kind::Size(354, 64 << 20),
        "`256KiB` (ours)",
        "Bytes that may be unacknowledged: the replay buffer of each port, at least one largest frame.",
    ),
    key(
        "ack_spacing",
        Kind::Size(1, 64 << 20),
        "`2048B`",
        "Received bytes after which an acknowledgement leaves at once.",
    ),
    key(
        "ack_delay",
        Kind::Time(0, DELAY_NS_MAX),
        "a quarter of `replay_timer` (ours)",
        "Longest time that an acknowledgement waits for the spacing, or for a frame to ride on.",
    ),
    key(
        "replay_timer",
        Kind::Time(1, 60_000_000_000),
        "see below",
        "Time without an acknowledgement after which everything unacknowledged is sent again.",
    ),
    key(
        "replay_count_max",
        Kind::Count(0, 255),
        "255 (ours)",
        "Replays in a row that may bring nothing before the link is flushed; 255 is without end.",
    ),
    key(
        "flush",
        Kind::Word(FlushPolicy::WORDS),
        "`block` (ours)",
        "What frames do while a flushed link agrees on numbers again: wait, are thrown away, or leave unprotected.",
    ),
];
