//! Waits of a forwarder: the ports and channels at which its frames in transit have no credits.

use alloc::vec::Vec;

use super::forwarder::Forwarder;
use super::waits::Wait;
use crate::ids::{Channel, PortId};

impl Forwarder {
    /// Returns every port and channel at which frames in transit wait for credits.
    #[must_use]
    pub fn waits(&self) -> Vec<Wait> {
        let ports = (0..self.links.len()).map(|port| PortId(port as u16));
        ports
            .flat_map(|port| self.channels(port).filter_map(move |channel| self.wait_at(port, channel)))
            .collect()
    }

    fn wait_at(&self, port: PortId, channel: Channel) -> Option<Wait> {
        let (link, queue) = (&self.links[port.index()], self.egress[port.index()].data.of(channel));
        let first = &queue[self.next_index(port, channel)?];
        let cost = link.credits(channel).cost(first.length);
        if !link.state().carries_data() || link.admits(channel, cost, first.length) {
            return None;
        }
        let mut arrived_over: Vec<_> = queue
            .iter()
            .map(|transit| {
                let link = &self.links[transit.ingress.index()];
                (link.config.edge, link.accounts.kept_under(transit.channel))
            })
            .collect();
        arrived_over.sort_unstable();
        arrived_over.dedup();
        Some(self.wait_of(port, channel, queue.len(), arrived_over))
    }

    /// Returns the wait of frames that came over these links and channels, at a port and channel.
    pub(crate) fn wait_of(
        &self,
        port: PortId,
        channel: Channel,
        frames: usize,
        arrived_over: Vec<(u16, Channel)>,
    ) -> Wait {
        let link = &self.links[port.index()];
        Wait {
            member: self.config.node,
            toward: link.config.neighbour,
            edge: link.config.edge,
            channel: (link.accounts.count() > 1).then_some(channel),
            frames,
            arrived_over,
        }
    }
}
