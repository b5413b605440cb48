//! Which of several equally short ways a member gives a frame that it passes on.
//!
//! As a rule the frame's own entropy says, so that a stream stays on one way. Where relays choose, each does with every data
//! frame what sources do with their packets: in turn, at random, or where least waits. Acknowledgements keep their flow's way.
//!
//! What that does to order is for the transport and the declared scope.

use super::forwarder::Forwarder;
use crate::config::PathPolicy;
use crate::ids::{Channel, NodeId, PortId};
use crate::link::state::LinkState;
use crate::route::table::{STEP, stir};

impl Forwarder {
    /// The way of the next data frame to a member, which came in on `channel`.
    pub(super) fn choose(&mut self, destination: NodeId, channel: Channel) -> Option<PortId> {
        let is_sound = |port: &PortId| self.links[port.index()].state() != LinkState::Suspect;
        let sound = self.table.ports(destination).filter(is_sound).count();
        // A late neighbour is second choice.
        let ways = || self.table.ports(destination).filter(move |port| sound == 0 || is_sound(port));
        let count = if sound > 0 { sound } else { ways().count() };
        if count == 0 {
            return None;
        }
        let turn = self.choices as usize % count;
        let way = match self.config.paths.policy {
            PathPolicy::Spray => {
                let word = self.choices.wrapping_mul(STEP) ^ u32::from(self.config.node.0) << 16;
                ways().nth(stir(word) as usize % count)
            }
            // Of those on which as little waits, the next in turn.
            PathPolicy::LeastQueue => (0..)
                .zip(ways())
                .min_by_key(|(place, port)| {
                    let over_dateline = self.config.ports[port.index()].is_dateline;
                    let leaves_on = self.config.channels.next(channel, over_dateline);
                    (self.backlog(*port, leaves_on, 0), (place + count - turn) % count)
                })
                .map(|(_, port)| port),
            _ => ways().nth(turn),
        };
        self.choices = self.choices.wrapping_add(1);
        way
    }
}
