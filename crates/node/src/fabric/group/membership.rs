//! One member's view of its group: members, rank and regions.

use rackloom_protocol::{Key, NodeId, RegionId, RemoteAddress};

use super::super::error::Error;
use crate::fabric::engine::core::Core;
use crate::fabric::memory::region::Region;

/// Bit in which the numbers of the two regions of a group differ.
pub(super) const ARRAYS: u32 = 1 << 29;

/// Number and key of a member's region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RegionName {
    pub(super) region: RegionId,
    pub(super) key: Key,
}

impl RegionName {
    /// Returns the name of the region with the arrays of a group whose words are in this one.
    pub(super) const fn of_arrays(self) -> Self {
        Self { region: RegionId(self.region.0 ^ ARRAYS), key: self.key }
    }
}

/// Regions of one member.
#[derive(Debug)]
pub(super) struct GroupMemory {
    /// Words by which members signal each other, in the memory of the host: a processor reads a word on a device a thousand times slower.
    pub(super) words: Region,
    /// Input, output and working space.
    pub(super) arrays: Region,
}

/// State that all runs of a group share.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) members: Vec<NodeId>,
    /// Regions of the members' words, in rank order. Those of their arrays have the names that follow from these ([`RegionName::of_arrays`]).
    pub(super) regions: Vec<RegionName>,
    /// Rank of this node.
    pub(super) rank: usize,
    pub(super) memory: GroupMemory,
    /// Hash of the options that members agree on when they join. Part of all later comparisons.
    pub(super) terms: u32,
    /// Number of deaths of each member at the time when this one joined.
    pub(super) deaths: Vec<u32>,
}

impl Membership {
    /// Returns the address of a word at another member.
    pub(super) fn word(&self, rank: usize, offset: u64) -> RemoteAddress {
        self.address(rank, self.regions[rank], offset)
    }

    /// Returns the address of an offset in the arrays of another member.
    pub(super) fn array(&self, rank: usize, offset: u64) -> RemoteAddress {
        self.address(rank, self.regions[rank].of_arrays(), offset)
    }

    fn address(&self, rank: usize, name: RegionName, offset: u64) -> RemoteAddress {
        RemoteAddress { node: self.members[rank], region: name.region, offset, key: name.key }
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
