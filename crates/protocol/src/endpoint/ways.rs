//! Several paths to one node at a time: choice of the path of each packet.
//!
//! A port serves the streams in its queue. A stream with one path has one entry in one queue. A stream whose packets
//! choose paths puts one *ticket* per ready packet into a queue, and the policy chooses the queue. The packet itself
//! is chosen when its ticket is served, so that lost packets go first. The few tickets per path let a busy path fall
//! behind without idling the others.
//!
//! Acknowledgements use one path: they are cumulative and block nothing.

use alloc::vec::Vec;

use super::Endpoint;
use super::peer::Peer;
use crate::config::PathPolicy;
use crate::ids::{Class, NodeId, PortId};
use crate::operation::bulk::Bulk;
use crate::route::table::{STEP, stir};

/// Tickets of one stream per path. A random choice needs more of them than round robin to keep all paths busy.
const TICKETS_PER_WAY: u16 = 2;
const TICKETS_PER_WAY_AT_RANDOM: u16 = 8;

/// Paths to one node among which packets choose; empty if a stream has one path.
#[derive(Debug)]
pub(super) struct Ways {
    ports: Vec<PortId>,
    /// Largest number of tickets of one stream.
    pub(super) tickets_max: u16,
    /// Index of the next path in round robin.
    turn: usize,
    random: u32,
}

impl Ways {
    pub(super) fn new(source: NodeId, target: NodeId) -> Self {
        let random = (u32::from(source.0) << 16 | u32::from(target.0)).wrapping_mul(0x2c1b_3c6d);
        // Single packets to many nodes begin on different paths.
        let turn = usize::from(source.0) + usize::from(target.0);
        Self { ports: Vec::new(), tickets_max: 1, turn, random }
    }

    /// Returns true if packets of one stream use several paths.
    #[inline]
    pub(super) const fn are_several(&self) -> bool {
        self.tickets_max > 1
    }

    /// Returns the next path in round robin.
    fn in_turn(&mut self) -> PortId {
        self.turn = (self.turn + 1) % self.ports.len();
        self.ports[self.turn]
    }

    /// Returns a pseudo-random path, from a hashed counter.
    fn at_random(&mut self) -> PortId {
        self.random = self.random.wrapping_add(STEP);
        let share = u64::from(stir(self.random)) * self.ports.len() as u64;
        self.ports[(share >> 32) as usize]
    }

    /// Returns the path with the shortest queue; the next in round robin among equals.
    fn least(&mut self, waiting: impl Fn(PortId) -> usize) -> PortId {
        let count = self.ports.len();
        let places = (1..=count).map(|step| (self.turn + step) % count);
        self.turn = places.min_by_key(|place| waiting(self.ports[*place])).unwrap_or(0);
        self.ports[self.turn]
    }
}

impl Endpoint {
    /// Looks the paths to the peer up in the table. Returns those that are no longer there.
    pub(super) fn find_ways(&mut self, peer: &mut Peer) -> Vec<PortId> {
        let policy = self.config().paths.policy;
        if !policy.is_per_packet() {
            return Vec::new();
        }
        let ports: Vec<_> = self.forwarder.ways(peer.node).collect();
        let per_way = if policy == PathPolicy::Spray { TICKETS_PER_WAY_AT_RANDOM } else { TICKETS_PER_WAY };
        peer.ways.tickets_max = (per_way * ports.len() as u16).max(1);
        let mut lost = core::mem::replace(&mut peer.ways.ports, ports);
        lost.retain(|port| !peer.ways.ports.contains(port));
        lost
    }

    /// Adds tickets until every ready packet has one, or the limit is reached.
    #[cold]
    pub(super) fn spread_tickets(&mut self, peer: &mut Peer, class: Class) {
        let wanted = self.packets_ready(peer, class);
        while peer.tickets[class.index()] < wanted && !peer.ways.ports.is_empty() {
            let port = match self.config().paths.policy {
                PathPolicy::RoundRobin => peer.ways.in_turn(),
                PathPolicy::Spray => peer.ways.at_random(),
                _ => peer.ways.least(|port| {
                    let channel = self.forwarder.own_channel(port, class);
                    let streams = self.ready_data[port.index()].of(channel).len();
                    self.forwarder.backlog(port, channel, streams)
                }),
            };
            peer.tickets[class.index()] += 1;
            let channel = self.forwarder.own_channel(port, class);
            self.ready_data[port.index()].of_mut(channel).push_back((peer.node, class));
        }
    }

    /// Number of packets that a stream could send now, limited by its tickets.
    fn packets_ready(&self, peer: &Peer, class: Class) -> u16 {
        let sender = &peer.senders[class.index()];
        let most = usize::from(peer.ways.tickets_max);
        let room = most.min(sender.room());
        let mut uncut = 0;
        for bulk in &peer.bulk[class.index()] {
            if uncut >= room {
                break;
            }
            uncut += self.packets_of(bulk);
        }
        most.min(sender.ready() + uncut.min(room)) as u16
    }

    /// Number of packets into which a long transfer must still be cut.
    fn packets_of(&self, bulk: &Bulk) -> usize {
        let rest = match bulk {
            Bulk::Put { source, position, .. } => source.length - position,
            Bulk::GetData { length, position, .. } => length - position,
            Bulk::Get { .. } | Bulk::Pull { .. } => 1,
        };
        rest.div_ceil(self.segment_bytes()).max(1) as usize
    }
}
