//! Number of channel levels that follows from the routes of a plan.

use rackloom_protocol::{NodeId, Rise};

use crate::model::plan::{Plan, distances};

impl Plan {
    /// Sets the number of levels, if it follows from the routes: one for each link of the longest path between two endpoints.
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
