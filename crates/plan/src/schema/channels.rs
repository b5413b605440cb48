//! Declares virtual channels: lanes of classes, levels and arbiter.

use rackloom_protocol::{ArbiterKind, CHANNELS_MAX, Rise};

use crate::schema::{Key, Kind, Table, key, table};
use crate::setting::word::Word;

/// Largest lane. A lane without a class is refused elsewhere.
const LANE_MAX: u64 = 3;

pub(crate) static CHANNELS: Table = table("channels", KEYS);
pub(crate) static LANES: Table = table(
    "channels.lanes",
    &[
        key(
            "request",
            Kind::Count(0, LANE_MAX),
            "0 (ours)",
            "Lane of stores, loads, atomics, signals, messages.",
        ),
        key(
            "reply",
            Kind::Count(0, LANE_MAX),
            "1 (ours)",
            "Lane of replies to loads and atomics, and of refusals.",
        ),
        key("bulk", Kind::Count(0, LANE_MAX), "2 (ours)", "Lane of puts and of requests for bulk data."),
        key("bulk_reply", Kind::Count(0, LANE_MAX), "3 (ours)", "Lane of the data of gets."),
    ],
);

/// Forms of `channels`.
pub(crate) const CHANNELS_FORMS: Kind =
    Kind::Either(&[Kind::Word(&["off", "by-class"]), Kind::Table(&CHANNELS)]);

const KEYS: &[Key] = &[
    key(
        "lanes",
        Kind::Table(&LANES),
        "each class its own",
        "On which lane the frames of a message class travel.",
    ),
    key(
        "rise",
        Kind::Word(Rise::WORDS),
        "`never`",
        "What makes a frame climb to the next level of its lane, a channel of its own: nothing, leaving over a link of \
         `datelines`, or being passed on.",
    ),
    key(
        "levels",
        Kind::Count(1, CHANNELS_MAX as u64),
        "1; 2 with `dateline`; links of the longest way with `hop`",
        "Levels of each lane. Lanes times levels are the channels of a link, 32 at most.",
    ),
    key(
        "datelines",
        Kind::LinkNames,
        "of a ring the link that closes it",
        "Links over which a frame leaves one level higher, both ways: `[n7--n0]`.",
    ),
    key(
        "arbiter",
        Kind::Word(ArbiterKind::WORDS),
        "`strict` (ours)",
        "Which channel of a port sends next, of those that may: the lowest, each in its turn, or each in its turn for so many \
         largest frames' bytes as its weight says.",
    ),
    key(
        "weights",
        Kind::Counts,
        "1 each",
        "Weights of the lanes, for all their levels; for `arbiter: weighted`.",
    ),
    key(
        "limits",
        Kind::Counts,
        "equal shares",
        "Credits of each channel; together at most the `limit` of a link direction.",
    ),
];
