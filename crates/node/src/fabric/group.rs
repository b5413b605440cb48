//! Nodes that do something together: so far, wait for each other.
//!
//! A barrier is ceil(log2(n)) rounds of signals: in round k a member tells the one 2^k places further and hears from the
//! one 2^k places before. Its words live in a region of its own, which every member has under the same name.
//! While a member waits it watches all others, because the one it hears from may itself wait for one that is dead.

use std::sync::atomic::{AtomicU64, Ordering};

use rackloom_protocol::{Condition, Instant, NodeId, RemoteAddress, Signal, SignalKind};

use super::error::Error;
use super::node::Node;
use super::region::{Region, RegionOptions};

/// Rounds that the largest group needs.
const ROUNDS_MAX: u64 = 16;

/// This node's membership in a group. All members make theirs with the same options and the same list of members.
///
/// `Send` and `Sync`, but a group has one barrier at a time: members call it one after another, each from one thread.
#[derive(Debug)]
pub struct Group {
    node: Node,
    members: Vec<NodeId>,
    place: usize,
    words: Region,
    generation: AtomicU64,
}

impl Group {
    /// Join a group. `options` name a region that this node does not have yet; every member must use the same name and
    /// key, and must have joined before any member calls [`Group::barrier`].
    ///
    /// # Errors
    /// [`Error::Invalid`] if this node is not among the members or one is named twice; else as [`Node::allocate`].
    pub fn join(node: &Node, options: RegionOptions, members: &[NodeId]) -> Result<Self, Error> {
        let place = members.iter().position(|member| *member == node.id());
        let place = place.ok_or(Error::Invalid("this node is not a member of the group"))?;
        let mut sorted = members.to_vec();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::Invalid("a node is named twice in the group"));
        }
        let words = node.allocate(options, ROUNDS_MAX * 8)?;
        let (node, members) = (node.clone(), members.to_vec());
        Ok(Self { node, members, place, words, generation: AtomicU64::new(0) })
    }

    /// The members, in order.
    #[must_use]
    pub fn members(&self) -> &[NodeId] {
        &self.members
    }

    /// Return when every member has called it as often as this one.
    ///
    /// # Errors
    /// [`Error::PeerLost`] if a member is lost; the barrier is then over for good for this group.
    pub fn barrier(&self) -> Result<(), Error> {
        let generation = self.generation.fetch_add(1, Ordering::AcqRel) + 1;
        let count = self.members.len();
        let mut distance = 1;
        for round in 0.. {
            if distance >= count {
                return Ok(());
            }
            self.tell(self.members[(self.place + distance) % count], round)?;
            self.hear(round, generation)?;
            distance *= 2;
        }
        Ok(())
    }

    fn tell(&self, peer: NodeId, round: u64) -> Result<(), Error> {
        let options = self.words.options();
        let RemoteAddress { region, key, .. } = self.words.address(0);
        let target = RemoteAddress { node: peer, region, offset: round * 8, key };
        let signal = Signal { region, offset: round * 8, key: options.key, kind: SignalKind::Add, value: 1 };
        self.node.put_with_signal(&self.words.slice(0..0), target, signal).wait()
    }

    /// Wait for the word of a round. A wait of the core watches one node; this one watches all.
    fn hear(&self, round: u64, generation: u64) -> Result<(), Error> {
        let mut lost = None;
        let others = || self.members.iter().filter(|member| **member != self.node.id());
        let is_over = self.node.wait_for(Instant::NEVER, |endpoint| {
            if self.words.get::<u64>(round * 8).is_ok_and(|word| Condition::AtLeast.holds(word, generation)) {
                return true;
            }
            lost = others().copied().find(|member| !endpoint.is_reachable(*member));
            lost.is_some()
        });
        match lost {
            Some(peer) => Err(Error::PeerLost { peer, maybe_done: true }),
            None if is_over => Ok(()),
            None => Err(Error::Closed),
        }
    }
}
