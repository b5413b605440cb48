//! Groups that are made from another group: duplicates and parts.
//!
//! Every member allocates regions under numbers that are free at this member and a random key. An all-gather of the first group distributes number, key,
//! color and order. So members need not agree on numbers, and a node without the group does not know the keys.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use rackloom_protocol::{Key, Plane, RegionId};

use super::layout::Layout;
use super::membership::{ARRAYS, GroupMemory, Membership, RegionName};
use super::options::{DERIVED, GroupOptions};
use super::{Group, allocate};
use crate::fabric::error::Error;

/// Number of words that each member contributes to the exchange: color, order, region number, key.
const WORDS: usize = 4;
/// Color of a member that joins no part.
const NO_COLOR: u64 = u64::MAX;

/// Contribution of one member.
#[derive(Clone, Copy)]
struct Entry {
    color: u64,
    order: u64,
    name: RegionName,
}

impl Entry {
    const fn words(self) -> [u64; WORDS] {
        [self.color, self.order, self.name.region.0 as u64, self.name.key.0]
    }

    fn of_words(words: &[u64]) -> Self {
        let name = RegionName { region: RegionId(words[2] as u32), key: Key(words[3]) };
        Self { color: words[0], order: words[1], name }
    }
}

impl Group {
    /// Makes groups of the members that give the same color, in ascending `order` and then by rank in this group. A member without a color joins none,
    /// and gets `None`. A collective: all members call it, and it waits for its turn as all collectives do. It blocks.
    ///
    /// The groups have the options of this one. Their regions have numbers that are free at each member, and random keys.
    ///
    /// # Errors
    /// Those of [`super::GroupRequest::wait`] and of [`crate::fabric::Node::allocate`].
    pub fn split(&self, color: Option<u32>, order: u32) -> Result<Option<Self>, Error> {
        let options = GroupOptions { region: None, ..self.inner.options };
        let lanes: Vec<_> = self.inner.lanes.iter().map(|lane| lane.layout).collect();
        let memory = match color {
            Some(_) => Some(self.allocate_free(&options, &lanes)?),
            None => None,
        };
        let name = memory.as_ref().map_or(RegionName { region: RegionId(0), key: Key(0) }, |memory| {
            let chosen = memory.words.options();
            RegionName { region: chosen.region, key: chosen.key }
        });
        let mine = Entry { color: color.map_or(NO_COLOR, u64::from), order: u64::from(order), name };
        let mut all = vec![0; self.members().len() * WORDS];
        self.all_gather(&mine.words(), &mut all).wait()?;
        let Some(memory) = memory else { return Ok(None) };
        let entries: Vec<_> = all.chunks_exact(WORDS).map(Entry::of_words).collect();
        let mut ranks: Vec<_> =
            (0..entries.len()).filter(|rank| entries[*rank].color == mine.color).collect();
        ranks.sort_by_key(|rank| (entries[*rank].order, *rank));
        let parent = &self.inner.membership;
        let members: Vec<_> = ranks.iter().map(|rank| parent.members[*rank]).collect();
        let membership = Membership {
            rank: super::rank_of(self.node.id(), &members)?,
            regions: ranks.iter().map(|rank| entries[*rank].name).collect(),
            memory,
            terms: options.terms(&members),
            // A member that has died since the first group was joined cannot have taken part in the exchange.
            deaths: ranks.iter().map(|rank| parent.deaths[*rank]).collect(),
            members,
        };
        Self::new(&self.node, options, lanes, membership).map(Some)
    }

    /// Makes a group of the same members in the same order, whose collectives are independent of those of this group. All members call it. It
    /// blocks.
    ///
    /// # Errors
    /// Those of [`Group::split`].
    pub fn duplicate(&self) -> Result<Self, Error> {
        self.split(Some(0), 0)?.ok_or(Error::Closed)
    }

    /// Makes one group for each server of the rack, of the members in that server. All members call it. It blocks.
    ///
    /// # Errors
    /// Those of [`Group::split`].
    pub fn split_by_server(&self) -> Result<Self, Error> {
        let server = self.node.engine().server_of(self.node.id());
        self.split(Some(server as u32), 0)?.ok_or(Error::Closed)
    }

    /// Makes a group of the members that have a link in `plane`, and returns `None` at the others. All members call it. It blocks.
    ///
    /// # Errors
    /// Those of [`Group::split`].
    pub fn on_plane(&self, plane: u8) -> Result<Option<Self>, Error> {
        let is_linked = self.node.with_core(|core| {
            let ports = &core.member()?.member().config().ports;
            Ok::<_, Error>(ports.iter().any(|port| port.plane == Plane(plane)))
        })?;
        self.split(is_linked.then_some(0), 0)
    }

    /// Allocates regions under numbers that are free at this node.
    fn allocate_free(&self, options: &GroupOptions, lanes: &[Layout]) -> Result<GroupMemory, Error> {
        for number in DERIVED..DERIVED + ARRAYS {
            let key = Key(RandomState::new().hash_one(number));
            match allocate(&self.node, options, lanes, RegionName { region: RegionId(number), key }) {
                Err(Error::RegionExists(_) | Error::RegionInUse(_)) => {}
                other => return other,
            }
        }
        Err(Error::RegionExists(RegionId(DERIVED)))
    }
}
