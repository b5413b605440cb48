//! One member's view of its group: members, rank and regions.

use rackloom_protocol::{Key, NodeId, RegionId, RemoteAddress};

use super::super::error::Error;
use crate::fabric::engine::core::Core;
use crate::fabric::memory::region::Region;

/// Number and key of a member's region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RegionName {
    pub(super) region: RegionId,
    pub(super) key: Key,
}

/// State that all runs of a group share.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) members: Vec<NodeId>,
    /// Regions of the members, in rank order.
    pub(super) regions: Vec<RegionName>,
    /// Rank of this node.
    pub(super) rank: usize,
    pub(super) region: Region,
    /// Hash of the options that members agree on when they join. Part of all later comparisons.
    pub(super) terms: u32,
    /// Number of deaths of each member at the time when this one joined.
    pub(super) deaths: Vec<u32>,
}

impl Membership {
    /// Returns the address of an offset at another member.
    pub(super) fn address(&self, rank: usize, offset: u64) -> RemoteAddress {
        let RegionName { region, key } = self.regions[rank];
        RemoteAddress { node: self.members[rank], region, offset, key }
    }

    /// Returns `true` if a member has died since this one joined. It may have returned with empty memory.
    pub(super) fn has_died(&self, core: &Core, rank: usize) -> bool {
        core.table.deaths.of(self.members[rank]) != self.deaths[rank]
    }

    pub(super) fn alive(&self, core: &Core, rank: usize) -> Result<(), Error> {
        if self.has_died(core, rank) {
            return Err(Error::PeerLost { peer: self.members[rank], maybe_done: true });
        }
        Ok(())
    }
}
