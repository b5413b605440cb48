//! Choice among several paths of equal length for a forwarded frame.
//!
//! Usually the frame's entropy decides, so that a stream stays on one path. If relays choose, each chooses for every
//! data frame as sources do for their packets: round robin, at random, or the shortest queue. Acknowledgements keep
//! the path of their flow.
//!
//! The transport and the declared order scope handle the effect on order.

use super::forwarder::Forwarder;
use crate::config::PathPolicy;
use crate::ids::{Channel, NodeId, PortId};
use crate::link::state::LinkState;
use crate::route::table::{STEP, hash_word};

impl Forwarder {
    /// Returns the egress port of the next data frame to a member, which arrived on `channel`.
    pub(super) fn choose(&mut self, destination: NodeId, channel: Channel) -> Option<PortId> {
        let is_sound = |port: &PortId| self.links[port.index()].state() != LinkState::Suspect;
        let sound = self.table.ports(destination).filter(is_sound).count();
        // Ports with a late neighbour are second choice.
        let routes = || self.table.ports(destination).filter(move |port| sound == 0 || is_sound(port));
        let count = if sound > 0 { sound } else { routes().count() };
        if count < 2 {
            return routes().next();
        }
        let rotation = self.choices as usize % count;
        let path = match self.config.paths.policy {
            PathPolicy::Spray => {
                let word = self.choices.wrapping_mul(STEP) ^ u32::from(self.config.node.0) << 16;
                routes().nth(hash_word(word) as usize % count)
            }
            // Among the ports with the shortest queue, the next in round robin.
            PathPolicy::LeastQueue => (0..)
                .zip(routes())
                .min_by_key(|(slot, port)| {
                    let over_dateline = self.config.ports[port.index()].is_dateline;
                    let leaves_on = self.config.channels.next(channel, over_dateline);
                    (self.backlog(*port, leaves_on, 0), (slot + count - rotation) % count)
                })
                .map(|(_, port)| port),
            _ => routes().nth(rotation),
        };
        self.choices = self.choices.wrapping_add(1);
        path
    }
}
