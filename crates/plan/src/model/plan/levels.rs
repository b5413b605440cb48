//! Number of channel levels that follows from the routes of a plan.

use std::collections::BTreeSet;

use rackloom_protocol::{NodeId, Rise};

use crate::model::plan::{Plan, distances};

impl Plan {
    /// Sets the number of levels, if it follows from the routes: one more than the datelines that a frame may cross, or one for each link
    /// of the longest path between two endpoints.
    pub(crate) fn settle_levels(&mut self) {
        if !self.channels.levels_follow {
            return;
        }
        self.channels.config.levels = match self.channels.config.rise {
            Rise::Never => 1,
            Rise::Dateline => 1 + self.dimensions_with_datelines() as u8,
            Rise::Hop => u8::try_from(self.longest_path_links()).unwrap_or(u8::MAX).max(1),
        };
    }

    /// Returns the number of dimensions in which a frame may cross a dateline: one outside of tori. A frame that turns into the next
    /// dimension stays on its level.
    fn dimensions_with_datelines(&self) -> usize {
        let datelines = self.channels.datelines.iter().filter_map(|edge| self.links.get(usize::from(*edge)));
        datelines.map(|link| link.dimension).collect::<BTreeSet<_>>().len().max(1)
    }

    /// Returns the number of links between the two endpoints that are farthest apart.
    fn longest_path_links(&self) -> u64 {
        let neighbours = distances::neighbours(self);
        let is_endpoint = |index: &usize| self.members[*index].role.is_endpoint();
        let farthest = |endpoint: usize| {
            let hops = distances::from(&neighbours, NodeId(endpoint as u16)).into_iter().enumerate();
            hops.filter(|(index, _)| is_endpoint(index)).filter_map(|(_, hops)| hops).max().unwrap_or(0)
        };
        (0..self.members.len()).filter(is_endpoint).map(farthest).max().unwrap_or(0)
    }
}
