//! Spreading of packets over several paths: tickets for the packets of a stream that are ready.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::config::PathPolicy;
use crate::endpoint::Endpoint;
use crate::endpoint::peer::Peer;
use crate::endpoint::sending::path_choice::PathChoice;
use crate::endpoint::stream::Stream;
use crate::ids::{Class, PortId};
use crate::operation::bulk::Bulk;

/// Tickets of one stream per path. A random choice needs more of them than round robin to keep all paths busy.
const TICKETS_PER_PATH: u16 = 2;
const TICKETS_PER_RANDOM_PATH: u16 = 8;

impl Endpoint {
    /// Looks the paths to the peer up in the table. Returns those that are no longer there.
    pub(in crate::endpoint) fn find_paths(&mut self, peer: &mut Peer) -> Vec<PortId> {
        let policy = self.config().paths.policy;
        if !policy.is_per_packet() {
            return Vec::new();
        }
        let ports: Vec<_> = self.forwarder.shortest_paths(peer.node).collect();
        let per_path = if policy == PathPolicy::Spray { TICKETS_PER_RANDOM_PATH } else { TICKETS_PER_PATH };
        let (source, target) = (self.config().node, peer.node);
        let choice = peer.path_choice.get_or_insert_with(|| Box::new(PathChoice::new(source, target)));
        choice.tickets_max = (per_path * ports.len() as u16).max(1);
        let mut lost = core::mem::replace(&mut choice.ports, ports);
        lost.retain(|port| !choice.ports.contains(port));
        lost
    }

    /// Adds tickets until every ready packet has one, or the limit is reached.
    #[cold]
    pub(in crate::endpoint) fn spread_tickets(&mut self, peer: &mut Peer, class: Class) {
        let wanted = self.packets_ready(peer, class);
        let Peer { path_choice: Some(choice), streams, node, .. } = peer else { return };
        let stream = streams.of_mut(class);
        while stream.tickets < wanted && !choice.ports.is_empty() {
            let port = match self.config().paths.policy {
                PathPolicy::RoundRobin => choice.round_robin(),
                PathPolicy::Spray => choice.at_random(),
                _ => choice.least(|port| {
                    let channel = self.forwarder.own_channel(port, class);
                    let streams = self.ready_data[port.index()].of(channel).len();
                    self.forwarder.backlog(port, channel, streams)
                }),
            };
            stream.tickets += 1;
            let channel = self.forwarder.own_channel(port, class);
            self.ready_data[port.index()].of_mut(channel).push_back((*node, class));
        }
    }

    /// Number of packets that a stream could send now, limited by its tickets.
    fn packets_ready(&self, peer: &Peer, class: Class) -> u16 {
        let Stream { sender, bulk, .. } = peer.streams.of(class);
        let most = usize::from(peer.tickets_max());
        let sendable = most.min(sender.sendable_max());
        let mut uncut = 0;
        for bulk in bulk {
            if uncut >= sendable {
                break;
            }
            uncut += self.packets_of(bulk);
        }
        most.min(sender.ready() + uncut.min(sendable)) as u16
    }

    /// Number of packets into which a long transfer must still be cut.
    pub(in crate::endpoint) fn packets_of(&self, bulk: &Bulk) -> usize {
        let rest = match bulk {
            Bulk::Put { source, position, .. } => source.length - position,
            Bulk::GetData { length, position, .. } => length - position,
            Bulk::Get { .. } | Bulk::Pull { .. } => 1,
        };
        rest.div_ceil(self.segment_bytes()).max(1) as usize
    }
}
