//! Choice of the next data frame of a port, in the order that the member keeps.

use super::egress::Transit;
use super::forwarder::Forwarder;
use super::in_order::InOrder;
use crate::ids::{Channel, PortId};

impl Forwarder {
    /// Returns the index in a queue of the frame that goes next: the first, or the first at the head of its ingress
    /// queue.
    #[inline]
    pub(super) fn next_index(&self, port: PortId, channel: Channel) -> Option<usize> {
        let queue = self.egress[port.index()].data.of(channel);
        match &self.in_order {
            None => (!queue.is_empty()).then_some(0),
            Some(lines) => queue.iter().position(|transit| lines.is_first(transit)),
        }
    }

    /// Records that a frame begins to leave. Later frames of its ingress wait until it has left.
    pub(super) fn begin_leaving(&mut self, port: PortId, transit: &Transit) {
        if let Some(lines) = &mut self.in_order
            && transit.is_data
        {
            lines.begin(port, transit);
        }
    }

    /// Records that the port has space or is down: the frame that was leaving has left, and the next frame of its
    /// ingress may need any port.
    pub(super) fn end_leaving(&mut self, port: PortId) {
        if let Some(lines) = &mut self.in_order
            && lines.end(port)
        {
            self.ready.fill();
        }
    }

    /// Removes a frame from the queue of its ingress.
    pub(super) fn move_up(&mut self, transit: &Transit) {
        if let Some(lines) = &mut self.in_order
            && transit.is_data
        {
            lines.leave(transit);
            self.ready.fill();
        }
    }

    /// Returns true if an ingress has become free since the last call, so that idle ports may have something to send
    /// now.
    pub fn has_moved(&mut self) -> bool {
        self.in_order.as_mut().is_some_and(InOrder::take_moved)
    }
}
