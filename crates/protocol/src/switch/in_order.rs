//! A member without virtual output queues: what came in over one link leaves in that order, whatever port it leaves by.
//!
//! With a queue for each way out a frame waits only for its own port. With one line per way in it waits for the frame before it
//! too, though that may want another port: head-of-line blocking. A way in begins its next frame when the one before has left,
//! so a full switch keeps 58.6 % of its throughput under uniform traffic (Karol, Hluchyj and Morgan 1987). Channels have a line
//! each and share that one way through.
//!
//! Frames still stand in the queues of their ports; here is only who may go. That a frame has left is seen when its port has
//! room for another.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::egress::Transit;
use super::forwarder::Forwarder;
use crate::config::{MemberConfig, PortConfig};
use crate::ids::{Channel, PortId};
use crate::memory::LeaseId;
use crate::per_channel::PerChannel;

/// The lines of all ways in.
#[derive(Debug)]
pub(super) struct InOrder {
    ways_in: Vec<WayIn>,
    /// By port out: where the frame came in that is leaving there.
    leaving: Vec<Option<PortId>>,
    /// A way in has become free since somebody asked.
    has_moved: bool,
}

#[derive(Debug)]
struct WayIn {
    lines: PerChannel<VecDeque<LeaseId>>,
    /// One of its frames is on its way out.
    is_busy: bool,
}

impl InOrder {
    /// Nobody stands in line.
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

    /// It leaves, or is given up, from wherever in the line it stands.
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

    /// Whatever was leaving by this port has left. Returns whether anything was.
    fn end(&mut self, port: PortId) -> bool {
        let Some(ingress) = self.leaving[port.index()].take() else { return false };
        self.ways_in[ingress.index()].is_busy = false;
        self.has_moved = true;
        true
    }

    /// A frame is leaving by this port, as far as anybody knows.
    pub(super) fn is_leaving(&self, port: PortId) -> bool {
        self.leaving[port.index()].is_some()
    }

    fn is_first(&self, transit: &Transit) -> bool {
        let way_in = &self.ways_in[transit.ingress.index()];
        !way_in.is_busy && way_in.lines.of(transit.channel).front() == Some(&transit.lease)
    }
}

impl Forwarder {
    /// The place in a queue of the frame that goes next: the first, or the first that stands at the head of its line.
    #[inline]
    pub(super) fn next_place(&self, port: PortId, channel: Channel) -> Option<usize> {
        let queue = self.egress[port.index()].data.of(channel);
        match &self.in_order {
            None => (!queue.is_empty()).then_some(0),
            Some(lines) => queue.iter().position(|transit| lines.is_first(transit)),
        }
    }

    /// A frame begins to leave: those behind it wait until it has left.
    pub(super) fn begin_leaving(&mut self, port: PortId, transit: &Transit) {
        if let Some(lines) = &mut self.in_order
            && transit.is_data
        {
            lines.begin(port, transit);
        }
    }

    /// The port has room, or carries nothing any more: what was leaving there has left, and whoever is next in its line may want
    /// any port.
    pub(super) fn end_leaving(&mut self, port: PortId) {
        if let Some(lines) = &mut self.in_order
            && lines.end(port)
        {
            self.ready.fill();
        }
    }

    /// A frame is in its line no more.
    pub(super) fn move_up(&mut self, transit: &Transit) {
        if let Some(lines) = &mut self.in_order
            && transit.is_data
        {
            lines.leave(transit);
            self.ready.fill();
        }
    }

    /// Whether a way in has become free since the last call: ports that were asked before may have something to send now.
    pub fn has_moved(&mut self) -> bool {
        self.in_order.as_mut().is_some_and(|lines| core::mem::take(&mut lines.has_moved))
    }
}
