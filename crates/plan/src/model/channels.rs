//! Virtual channels of a rack file, and their number and credits on each link.
//!
//! `rackloom_protocol::route::channels` defines virtual channels. This file holds the datelines, the division of credits, and the
//! number of levels that frames need if they move up one level at every hop. [`crate::deadlock`] decides if the channels prevent
//! deadlock.

use rackloom_protocol::{ArbiterKind, CHANNELS_MAX, ChannelConfig, Class, Rise};

use crate::model::link::LinkProfile;
use crate::model::of_link::OwnChannels;
use crate::setting::section::{Field, Visit};
use crate::setting::table::{Key, Kind, Table, key, table};
use crate::setting::word::Word;

/// Message classes with their keys in `channels.lanes`.
pub(crate) const LANE_KEYS: [(Class, &str); Class::COUNT] = [
    (Class::Request, "request"),
    (Class::Reply, "reply"),
    (Class::Bulk, "bulk"),
    (Class::BulkReply, "bulk_reply"),
];

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

/// Virtual channels of a rack file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelPlan {
    /// Classes, levels and arbiter of all links.
    pub config: ChannelConfig,
    /// Credits of each channel of a link that has no limits of its own. Equal shares if empty.
    pub limits: Vec<u32>,
    /// Links that are datelines, by edge.
    pub datelines: Vec<u16>,
    /// True if the file leaves the number of levels to the routes.
    pub(crate) levels_follow: bool,
}

impl ChannelPlan {
    /// Visits the keys of `channels`.
    pub(crate) fn visit(&self, visit: &mut dyn Visit) {
        let Self { config, limits, datelines, levels_follow: _ } = self;
        let ChannelConfig { lane_of, levels, rise, arbiter, weights } = config;
        for key in CHANNELS.keys {
            match key.name {
                "lanes" => {
                    visit.open(key);
                    let is_default = *lane_of == ChannelConfig::default().lane_of;
                    for (lane, (class, _)) in LANES.keys.iter().zip(LANE_KEYS) {
                        visit.value(lane, &lane_of[class.index()], is_default);
                    }
                    visit.close();
                }
                "rise" => rise.visit(key, &Rise::default(), visit),
                "levels" => levels.visit(key, &1, visit),
                "datelines" => datelines.visit(key, &Vec::new(), visit),
                "arbiter" => arbiter.visit(key, &ArbiterKind::default(), visit),
                "weights" => weights.visit(key, &Vec::new(), visit),
                "limits" => limits.visit(key, &Vec::new(), visit),
                name => unreachable!("`channels.{name}` has no value"),
            }
        }
    }

    /// Returns true if frames that leave over this link move up one level.
    #[must_use]
    pub fn is_dateline(&self, edge: u16) -> bool {
        self.datelines.contains(&edge)
    }

    /// Returns the number of channels of a link.
    #[must_use]
    pub fn count_of(&self, link: &LinkProfile) -> usize {
        if link.channels.are_divided { self.config.count() } else { 1 }
    }

    /// Returns the credits of each channel of a link. Equal shares if empty.
    #[must_use]
    pub fn limits_of<'l>(&'l self, link: &'l LinkProfile) -> &'l [u32] {
        match &link.channels {
            OwnChannels { are_divided: false, .. } => &[],
            OwnChannels { limits, .. } if limits.is_empty() => &self.limits,
            OwnChannels { limits, .. } => limits,
        }
    }

    /// Returns the credits of the smallest channel of a link with `limit` credits in all.
    #[must_use]
    pub fn least_share(&self, link: &LinkProfile, limit: u32) -> u32 {
        let share = limit / (self.count_of(link) as u32).max(1);
        self.limits_of(link).iter().copied().min().unwrap_or(share)
    }
}
