//! Set of ports that may have something to send, one bit each.
//!
//! A switch of a thousand ports receives one frame and sends one; polling all ports for that would take most of the
//! time. So a port enters the set when something may have become sendable, and leaves it when a poll finds nothing.

use alloc::vec;
use alloc::vec::Vec;

use crate::ids::PortId;

const WORD_BITS: usize = u64::BITS as usize;

/// Set of ports of one member.
#[derive(Debug)]
pub(crate) struct PortSet {
    words: Vec<u64>,
    ports: usize,
}

impl PortSet {
    /// Returns the set of all ports.
    pub(crate) fn full(ports: usize) -> Self {
        let mut set = Self { words: vec![0; ports.div_ceil(WORD_BITS)], ports };
        set.fill();
        set
    }

    pub(crate) fn insert(&mut self, port: PortId) {
        if port.index() < self.ports {
            self.words[port.index() / WORD_BITS] |= 1 << (port.index() % WORD_BITS);
        }
    }

    pub(crate) fn remove(&mut self, port: PortId) {
        if port.index() < self.ports {
            self.words[port.index() / WORD_BITS] &= !(1 << (port.index() % WORD_BITS));
        }
    }

    pub(crate) fn fill(&mut self) {
        self.words.fill(u64::MAX);
        if let Some(last) = self.words.last_mut()
            && !self.ports.is_multiple_of(WORD_BITS)
        {
            *last = (1 << (self.ports % WORD_BITS)) - 1;
        }
    }

    /// Returns the first port of the set from `from` on.
    pub(crate) fn next(&self, from: PortId) -> Option<PortId> {
        let first = from.index() / WORD_BITS;
        let mut mask = u64::MAX << (from.index() % WORD_BITS);
        for (index, word) in self.words.iter().enumerate().skip(first) {
            let bits = word & mask;
            if bits != 0 {
                return Some(PortId((index * WORD_BITS) as u16 + bits.trailing_zeros() as u16));
            }
            mask = u64::MAX;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(set: &PortSet) -> Vec<u16> {
        let mut from = 0;
        core::iter::from_fn(|| {
            let port = set.next(PortId(from))?.0;
            from = port + 1;
            Some(port)
        })
        .collect()
    }

    #[test]
    fn entries_are_found_in_order_until_they_are_removed() {
        for ports in [0, 1, 63, 64, 65, 128, 200] {
            let mut set = PortSet::full(ports);
            assert_eq!(members(&set), (0..ports as u16).collect::<Vec<_>>(), "{ports} ports");
            (0..ports as u16).for_each(|port| set.remove(PortId(port)));
            assert_eq!(members(&set), []);
            let some: Vec<_> =
                [0, 5, 63, 64, 127, 199].into_iter().filter(|at| usize::from(*at) < ports).collect();
            some.iter().rev().for_each(|port| set.insert(PortId(*port)));
            assert_eq!(members(&set), some);
            set.insert(PortId(ports as u16));
            assert_eq!(members(&set), some, "a port that is not there is not put in");
            set.fill();
            assert_eq!(members(&set).len(), ports);
        }
    }
}
