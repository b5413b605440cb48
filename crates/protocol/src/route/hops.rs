//! Next hops towards each member. Most members have one or two, which are stored inline.
//!
//! In a rack of a thousand members each of them stores a thousand hop lists, which are most of an idle member's
//! memory. So a hop is only a port, up to three fit into eight bytes, and longer lists are stored separately.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::ids::{NodeId, PortId};

/// Number of hops that are stored inline.
const FEW: usize = 3;
/// Count that marks a list stored separately.
const ASIDE: u8 = u8::MAX;

/// Inline list of hops.
#[derive(Clone, Copy, Debug)]
struct Few {
    count: u8,
    ports: [PortId; FEW],
}

const NONE: Few = Few { count: 0, ports: [PortId(0); FEW] };

/// Hops by member, each list in port order.
#[derive(Debug)]
pub(super) struct Hops {
    few: Vec<Few>,
    many: BTreeMap<NodeId, Vec<PortId>>,
}

impl Hops {
    /// Returns empty lists for `members` members.
    pub(super) fn new(members: usize) -> Self {
        Self { few: vec![NONE; members], many: BTreeMap::new() }
    }

    /// Returns the hops towards a member; none if it does not exist.
    #[inline]
    pub(super) fn towards(&self, member: NodeId) -> &[PortId] {
        match self.few.get(member.index()) {
            Some(Few { count: ASIDE, .. }) => self.many.get(&member).map_or(&[], Vec::as_slice),
            Some(few) => &few.ports[..usize::from(few.count)],
            None => &[],
        }
    }

    /// Adds a hop towards a member. Returns false if it was present.
    pub(super) fn insert(&mut self, member: NodeId, port: PortId) -> bool {
        let Err(slot) = self.towards(member).binary_search(&port) else { return false };
        let Few { count, ports } = &mut self.few[member.index()];
        let end = usize::from(*count);
        if end < FEW {
            ports.copy_within(slot..end, slot + 1);
            ports[slot] = port;
            *count += 1;
            return true;
        }
        if *count != ASIDE {
            *count = ASIDE;
            self.many.insert(member, ports.to_vec());
        }
        self.many.entry(member).or_default().insert(slot, port);
        true
    }

    /// Removes the hops towards a member.
    pub(super) fn clear(&mut self, member: NodeId) {
        let few = &mut self.few[member.index()];
        if few.count == ASIDE {
            self.many.remove(&member);
        }
        *few = NONE;
    }

    /// Removes all hops.
    pub(super) fn clear_all(&mut self) {
        self.few.fill(NONE);
        self.many.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_ports_are_sorted_and_unique() {
        let mut hops = Hops::new(2);
        let member = NodeId(1);
        let mut expected = Vec::new();
        for port in [7, 3, 9, 3, 5, 1, 7, 8, 2] {
            let port = PortId(port);
            assert_eq!(hops.insert(member, port), !expected.contains(&port), "{port}");
            if !expected.contains(&port) {
                expected.push(port);
                expected.sort_unstable();
            }
            assert_eq!(hops.towards(member), expected);
        }
        assert!(hops.towards(NodeId(0)).is_empty() && hops.towards(NodeId(2)).is_empty());
        hops.clear(member);
        assert!(hops.towards(member).is_empty() && hops.many.is_empty());
    }

    #[test]
    fn few_ports_take_eight_bytes() {
        assert_eq!(size_of::<Few>(), 8);
    }
}
