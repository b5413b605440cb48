//! The virtual channels that a rack file asks for, and what of them each link has.
//!
//! What a channel is stands in `rackloom_protocol::route::channels`. Here: which links are datelines, how credits are divided,
//! and how many levels frames that climb at every hop need. Whether that keeps the rack from standing still is for
//! [`crate::deadlock`].

use rackloom_protocol::{ChannelConfig, NodeId, Rise};

use crate::check;
use crate::of_link::OwnChannels;
use crate::plan::{LinkProfile, Plan};

/// What a file says about virtual channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelPlan {
    /// Classes, levels and arbiter, the same for all links.
    pub config: ChannelConfig,
    /// Credits of each channel of a link that has no others of its own; equal shares if empty.
    pub limits: Vec<u32>,
    /// Links that are datelines, by edge.
    pub datelines: Vec<u16>,
    /// The file leaves the number of levels to the routes.
    pub(crate) levels_follow: bool,
}

impl ChannelPlan {
    /// Whether frames that leave over this link climb.
    #[must_use]
    pub fn is_dateline(&self, edge: u16) -> bool {
        self.datelines.contains(&edge)
    }

    /// Into how many channels a link divides itself.
    #[must_use]
    pub fn count_of(&self, link: &LinkProfile) -> usize {
        if link.channels.are_divided { self.config.count() } else { 1 }
    }

    /// Credits of each channel of a link; equal shares if empty.
    #[must_use]
    pub fn limits_of<'l>(&'l self, link: &'l LinkProfile) -> &'l [u32] {
        match &link.channels {
            OwnChannels { are_divided: false, .. } => &[],
            OwnChannels { limits, .. } if limits.is_empty() => &self.limits,
            OwnChannels { limits, .. } => limits,
        }
    }

    /// How many credits a channel has at least on a link with so many in all.
    #[must_use]
    pub fn least_share(&self, link: &LinkProfile, limit: u32) -> u32 {
        let share = limit / (self.count_of(link) as u32).max(1);
        self.limits_of(link).iter().copied().min().unwrap_or(share)
    }
}

impl Plan {
    /// Levels, where they follow from the routes: one for each link of the longest way between two GPU nodes.
    pub(crate) fn settle_levels(&mut self) {
        if !self.channels.levels_follow {
            return;
        }
        self.channels.config.levels = match self.channels.config.rise {
            Rise::Never => 1,
            Rise::Dateline => 2,
            Rise::Hop => u8::try_from(self.longest_way()).unwrap_or(u8::MAX).max(1),
        };
    }

    /// Links between the two GPU nodes that are farthest apart.
    fn longest_way(&self) -> u64 {
        let neighbours = check::neighbours(self);
        let count = self.endpoint_count();
        let farthest = |node| {
            let hops = check::hops_from(&neighbours, NodeId(node));
            hops.into_iter().take(count).flatten().max().unwrap_or(0)
        };
        (0..count as u16).map(farthest).max().unwrap_or(0)
    }
}
