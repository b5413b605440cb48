//! Several paths to one node at a time: choice of the path of each packet.
//!
//! A port serves the streams in its queue. A stream with one path has one entry in one queue. A stream whose packets
//! choose paths puts one *ticket* per ready packet into a queue, and the policy chooses the queue. The packet itself
//! is chosen when its ticket is served, so that lost packets go first. The few tickets per path let a busy path fall
//! behind without idling the others.
//!
//! Acknowledgements use one path: they are cumulative and block nothing.

use alloc::vec::Vec;

use crate::ids::{NodeId, PortId};
use crate::route::table::{STEP, hash_word};

/// Paths to one node among which packets choose; none if no path leads there.
#[derive(Debug)]
pub(in crate::endpoint) struct PathChoice {
    pub(in crate::endpoint) ports: Vec<PortId>,
    /// Largest number of tickets of one stream.
    pub(in crate::endpoint) tickets_max: u16,
    /// Index of the next path in round robin.
    next: usize,
    random: u32,
}

impl PathChoice {
    pub(in crate::endpoint) fn new(source: NodeId, target: NodeId) -> Self {
        let random = (u32::from(source.0) << 16 | u32::from(target.0)).wrapping_mul(0x2c1b_3c6d);
        // Single packets to many nodes begin on different paths.
        let next = usize::from(source.0) + usize::from(target.0);
        Self { ports: Vec::new(), tickets_max: 1, next, random }
    }

    /// Returns the next path in round robin.
    pub(in crate::endpoint) fn round_robin(&mut self) -> PortId {
        self.next = (self.next + 1) % self.ports.len();
        self.ports[self.next]
    }

    /// Returns a pseudo-random path, from a hashed counter.
    pub(in crate::endpoint) fn at_random(&mut self) -> PortId {
        self.random = self.random.wrapping_add(STEP);
        let share = u64::from(hash_word(self.random)) * self.ports.len() as u64;
        self.ports[(share >> 32) as usize]
    }

    /// Returns the path with the shortest queue; the next in round robin among equals.
    pub(in crate::endpoint) fn least(&mut self, waiting: impl Fn(PortId) -> usize) -> PortId {
        let count = self.ports.len();
        let indices = (1..=count).map(|step| (self.next + step) % count);
        self.next = indices.min_by_key(|index| waiting(self.ports[*index])).unwrap_or(0);
        self.ports[self.next]
    }
}
