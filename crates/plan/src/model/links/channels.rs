//! Virtual channels of a rack file, and their number and credits on each link.
//!
//! `rackloom_protocol::route::channels` defines virtual channels. This file holds the datelines, the division of credits, and the
//! number of levels that frames need if they move up one level at every hop. [`crate::deadlock`] decides if the channels prevent
//! deadlock.

use rackloom_protocol::{ArbiterKind, CHANNELS_MAX, ChannelConfig, Class, Rise};

use crate::model::links::link::LinkProfile;
use crate::model::links::of_link::OwnChannels;
use crate::setting::named_value::NamedValue;
use crate::setting::section::{Field, Section, Visit, section, visit_all_below};
use crate::setting::table::{Key, Kind};

/// Largest lane. A lane without a class is refused elsewhere.
const LANE_MAX: u64 = 3;

section! {
    /// Lanes of the message classes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Lanes: LANES = "channels.lanes" {
        /// Lane of stores, loads, atomics, signals, messages.
        request: u8 {
            form = Kind::Count(0, LANE_MAX);
            default = 0;
            ours = true;
        }
        /// Lane of replies to loads and atomics, and of refusals.
        reply: u8 {
            form = Kind::Count(0, LANE_MAX);
            default = 1;
            ours = true;
        }
        /// Lane of puts and of requests for bulk data.
        bulk: u8 {
            form = Kind::Count(0, LANE_MAX);
            default = 2;
            ours = true;
        }
        /// Lane of the data of gets.
        bulk_reply: u8 {
            form = Kind::Count(0, LANE_MAX);
            default = 3;
            ours = true;
        }
    }
}

section! {
    /// Keys of `channels`.
    #[derive(Clone, Debug)]
    pub(crate) struct ChannelKeys: CHANNELS = "channels" {
        /// Lanes of the message classes.
        lanes: Lanes {
            form = Kind::Table(&LANES);
            default = Lanes::default();
            shown = "each class its own";
        }
        /// Event at which a frame rises to the next level of its lane, a channel of its own: none, leaving over a link of `datelines`, or
        /// being forwarded.
        rise: Rise {
            form = Kind::Choice(Rise::NAMES);
            default = Rise::Never;
        }
        /// Levels of each lane. Lanes times levels are the channels of a link, 32 at most.
        levels: u8 {
            form = Kind::Count(1, CHANNELS_MAX as u64);
            default = 1;
            shown = "1; with `dateline` 2, and in a torus one more than dimensions with datelines; links of the longest way with `hop`";
        }
        /// Links over which a frame leaves one level higher, both ways: `[n7--n0]`.
        datelines: Vec<u16> {
            form = Kind::LinkNames;
            default = Vec::new();
            shown = "links that close the ring, or the rings of a torus";
        }
        /// Choice of the next channel of a port that sends: the lowest that may, each after the other, or each after the other for as many
        /// bytes of largest frames as its weight says.
        arbiter: ArbiterKind {
            form = Kind::Choice(ArbiterKind::NAMES);
            default = ArbiterKind::Strict;
            ours = true;
        }
        /// Weights of the lanes, for all their levels; for `arbiter: weighted`.
        weights: Vec<u16> {
            form = Kind::Counts;
            default = Vec::new();
            shown = "1 each";
        }
        /// Credits of each channel; together at most the `limit` of a link direction.
        limits: Vec<u32> {
            form = Kind::Counts;
            default = Vec::new();
            shown = "equal shares";
        }
    }
}

impl Lanes {
    fn of(lane_of: [u8; Class::COUNT]) -> Self {
        let lane = |class: Class| lane_of[class.index()];
        Self {
            request: lane(Class::Request),
            reply: lane(Class::Reply),
            bulk: lane(Class::Bulk),
            bulk_reply: lane(Class::BulkReply),
        }
    }

    fn lane_of(self) -> [u8; Class::COUNT] {
        let Self { request, reply, bulk, bulk_reply } = self;
        let mut lane_of = [0; Class::COUNT];
        let lanes = [
            (Class::Request, request),
            (Class::Reply, reply),
            (Class::Bulk, bulk),
            (Class::BulkReply, bulk_reply),
        ];
        lanes.into_iter().for_each(|(class, lane)| lane_of[class.index()] = lane);
        lane_of
    }
}

/// A rack without `channels` has one lane for all classes. All lanes equal their defaults, or none does.
impl Field for Lanes {
    fn visit(&self, key: &'static Key, _: &Self, visit: &mut dyn Visit) {
        let is_default = *self == Self::of(ChannelConfig::default().lane_of);
        visit_all_below(self, key, is_default, visit);
    }
}

impl ChannelKeys {
    /// Returns the settings of the core.
    pub(crate) fn config(&self) -> ChannelConfig {
        let Self { lanes, rise, levels, arbiter, weights, .. } = self;
        let (rise, levels, arbiter, weights) = (*rise, *levels, *arbiter, weights.clone());
        ChannelConfig { lane_of: lanes.lane_of(), levels, rise, arbiter, weights }
    }
}

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
        let ChannelConfig { lane_of, levels, rise, arbiter, weights } = config.clone();
        let (lanes, limits, datelines) = (Lanes::of(lane_of), limits.clone(), datelines.clone());
        ChannelKeys { lanes, rise, levels, datelines, arbiter, weights, limits }.visit(visit);
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
