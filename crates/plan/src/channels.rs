//! Virtual channels of a rack file, and their number and credits on each link.
//!
//! `rackloom_protocol::route::channels` defines virtual channels. This file holds the datelines, the division of credits, and the
//! number of levels that frames need if they move up one level at every hop. [`crate::deadlock`] decides if the channels prevent
//! deadlock.

use rackloom_protocol::{ChannelConfig, NodeId, Rise};

use crate::check;
use crate::of_link::OwnChannels;
use crate::plan::{LinkProfile, Plan};

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

impl Plan {
    /// Sets the number of levels, if it follows from the routes: one for each link of the longest path between two GPU nodes.
    pub(crate) fn settle_levels(&mut self) {
        if !self.channels.levels_follow {
            return;
        }
        self.channels.config.levels = match self.channels.config.rise {
            Rise::Never => 1,
            Rise::Dateline => 2,
            Rise::Hop => u8::try_from(self.longest_path_links()).unwrap_or(u8::MAX).max(1),
        };
    }

    /// Returns the number of links between the two GPU nodes that are farthest apart.
    fn longest_path_links(&self) -> u64 {
        let neighbours = check::neighbours(self);
        let count = self.endpoint_count();
        let farthest = |node| {
            let hops = check::hops_from(&neighbours, NodeId(node));
            hops.into_iter().take(count).flatten().max().unwrap_or(0)
        };
        (0..count as u16).map(farthest).max().unwrap_or(0)
    }
}
