//! Several ways to one node at a time: which way the next packets of a stream take.
//!
//! A port serves who stands in its line. A stream with one way has one place in one line. A stream whose packets take ways
//! of their own draws a *ticket* for each packet that it has ready, and the policy says in whose line the ticket waits; the
//! packet itself is chosen when the ticket's turn comes, so that what is lost goes first. A few tickets per way let a busy
//! way fall behind without idling the others.
//!
//! Acknowledgements take one way: they are cumulative, and nobody waits behind them.

use alloc::vec::Vec;

use super::Endpoint;
use super::peer::Peer;
use crate::config::PathPolicy;
use crate::ids::{Class, NodeId, PortId};
use crate::operation::bulk::Bulk;
use crate::route::table::{STEP, stir};

/// Tickets of one stream per way. A random choice needs more of them to keep all ways busy than one in turn.
const TICKETS_PER_WAY: u16 = 2;
const TICKETS_PER_WAY_AT_RANDOM: u16 = 8;

/// The ways to one node, where packets choose among several; empty where a stream has one.
#[derive(Debug)]
pub(super) struct Ways {
    ports: Vec<PortId>,
    /// Tickets of one stream at most.
    pub(super) tickets_max: u16,
    /// Which way is next in turn.
    turn: usize,
    random: u32,
}

impl Ways {
    pub(super) fn new(source: NodeId, target: NodeId) -> Self {
        let random = (u32::from(source.0) << 16 | u32::from(target.0)).wrapping_mul(0x2c1b_3c6d);
        // Single packets to many nodes begin on different ways.
        let turn = usize::from(source.0) + usize::from(target.0);
        Self { ports: Vec::new(), tickets_max: 1, turn, random }
    }

    /// Whether packets of one stream go several ways.
    #[inline]
    pub(super) const fn are_several(&self) -> bool {
        self.tickets_max > 1
    }

    /// The way after the last one.
    fn in_turn(&mut self) -> PortId {
        self.turn = (self.turn + 1) % self.ports.len();
        self.ports[self.turn]
    }

    /// Any way: a counter, well stirred.
    fn at_random(&mut self) -> PortId {
        self.random = self.random.wrapping_add(STEP);
        let share = u64::from(stir(self.random)) * self.ports.len() as u64;
        self.ports[(share >> 32) as usize]
    }

    /// The way on which least waits; among equals the next in turn.
    fn least(&mut self, waiting: impl Fn(PortId) -> usize) -> PortId {
        let count = self.ports.len();
        let places = (1..=count).map(|step| (self.turn + step) % count);
        self.turn = places.min_by_key(|place| waiting(self.ports[*place])).unwrap_or(0);
        self.ports[self.turn]
    }
}

impl Endpoint {
    /// Ask the table again which ways lead to the peer. Returns those that no longer do.
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

    /// Draw tickets until every packet that is ready has one, or as many are out as may be.
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

    /// Packets that a stream could send now, not counted further than its tickets reach.
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

    /// Packets that a long transfer has still to be cut into.
    fn packets_of(&self, bulk: &Bulk) -> usize {
        let rest = match bulk {
            Bulk::Put { source, position, .. } => source.length - position,
            Bulk::GetData { length, position, .. } => length - position,
            Bulk::Get { .. } | Bulk::Pull { .. } => 1,
        };
        rest.div_ceil(self.segment_bytes()).max(1) as usize
    }
}
