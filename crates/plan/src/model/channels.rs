//! Virtual channels of a rack file, and their number and credits on each link.
//!
//! `rackloom_protocol::route::channels` defines virtual channels. This file holds the datelines, the division of credits, and the
//! number of levels that frames need if they move up one level at every hop. [`crate::deadlock`] decides if the channels prevent
//! deadlock.

use rackloom_protocol::{ChannelConfig, Class};

use crate::model::link::LinkProfile;
use crate::model::of_link::OwnChannels;

/// Message classes with their keys in `channels.lanes`.
pub(crate) const LANE_KEYS: [(Class, &str); Class::COUNT] = [
    (Class::Request, "request"),
    (Class::Reply, "reply"),
    (Class::Bulk, "bulk"),
    (Class::BulkReply, "bulk_reply"),
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
