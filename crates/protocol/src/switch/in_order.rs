//! Member without virtual output queues: frames of one ingress link leave in order of arrival, whatever their egress
//! port.
//!
//! With a queue per egress port a frame waits only for its own port. With one queue per ingress port it waits for the
//! frame before it too, even if that needs another port: head-of-line blocking. An ingress begins its next frame when
//! the previous one has left, so a full switch keeps 58.6 % of its throughput under uniform traffic (Karol, Hluchyj
//! and Morgan 1987). Channels have a queue each and share the ingress.
//!
//! Frames stay in the queues of their ports; this file only decides which may leave. A frame counts as having left
//! when its port has room for another.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::egress::Transit;
use super::forwarder::Forwarder;
use crate::config::{MemberConfig, PortConfig};
use crate::ids::{Channel, PortId};
use crate::memory::LeaseId;
use crate::per_channel::PerChannel;

/// Queues of all ingress ports.
#[derive(Debug)]
pub(super) struct InOrder {
    ways_in: Vec<WayIn>,
    /// Ingress port of the frame that is leaving, by egress port.
    leaving: Vec<Option<PortId>>,
    /// True if an ingress has become free since the last call of [`Forwarder::has_moved`].
    has_moved: bool,
}

#[derive(Debug)]
struct WayIn {
    lines: PerChannel<VecDeque<LeaseId>>,
    /// True if one of its frames is leaving.
    is_busy: bool,
}

impl InOrder {
    /// Returns empty queues.
    pub(super) fn new(config: &MemberConfig) -> Self {
        let lines = |port: &PortConfig| {
            PerChannel::new(port.channel_count(config.channels.count()), |_| VecDeque::new())
        };
        let way_in = |port| WayIn { lines: lines(port), is_busy: false };
        let ways_in: Vec<_> = config.ports.iter().map(way_in).collect();
        Self { leaving: vec![None; ways_in.len()], ways_in, has_moved: false }
    }

    pub(super) fn join(&mut self, transit: &Transit) {
        self.ways_in[transit.ingress.index()].lines.of_mut(transit.channel).push_back(transit.lease);
    }

    /// Removes a frame that leaves or is given up, at any position.
    fn leave(&mut self, transit: &Transit) {
        let line = self.ways_in[transit.ingress.index()].lines.of_mut(transit.channel);
        if let Some(place) = line.iter().position(|lease| *lease == transit.lease) {
            line.remove(place);
        }
    }

    fn begin(&mut self, port: PortId, transit: &Transit) {
        self.end(port);
        self.leaving[port.index()] = Some(transit.ingress);
        self.ways_in[transit.ingress.index()].is_busy = true;
    }

    /// Ends the frame that was leaving by this port. Returns true if there was one.
    fn end(&mut self, port: PortId) -> bool {
        let Some(ingress) = self.leaving[port.index()].take() else { return false };
        self.ways_in[ingress.index()].is_busy = false;
        self.has_moved = true;
        true
    }

    /// Returns true if a frame may still be leaving by this port.
    pub(super) fn is_leaving(&self, port: PortId) -> bool {
        self.leaving[port.index()].is_some()
    }

    fn is_first(&self, transit: &Transit) -> bool {
        let way_in = &self.ways_in[transit.ingress.index()];
        !way_in.is_busy && way_in.lines.of(transit.channel).front() == Some(&transit.lease)
    }
}

impl Forwarder {
    /// Returns the index in a queue of the frame that goes next: the first, or the first at the head of its ingress
    /// queue.
    #[inline]
    pub(super) fn next_place(&self, port: PortId, channel: Channel) -> Option<usize> {
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

    /// Records that the port has room or is down: the frame that was leaving has left, and the next frame of its
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
        self.in_order.as_mut().is_some_and(|lines| core::mem::take(&mut lines.has_moved))
    }
}
