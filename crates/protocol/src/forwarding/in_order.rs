//! Member without virtual output queues: frames of one ingress link leave in order of arrival, for any egress
//! port.
//!
//! With a queue per egress port a frame waits only for its own port. With one queue per ingress port it waits for the
//! frame before it too, even if that needs another port: head-of-line blocking. An ingress begins its next frame when
//! the previous one has left, so a full switch keeps 58.6 % of its throughput under uniform traffic (Karol, Hluchyj
//! and Morgan 1987). Channels have a queue each and share the ingress.
//!
//! Frames stay in the queues of their ports; this file only decides which may leave. A frame counts as having left
//! when its port has space for another.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::egress::Transit;
use crate::config::{MemberConfig, PortConfig};
use crate::ids::PortId;
use crate::memory::LeaseId;
use crate::per_channel::PerChannel;

/// Queues of all ingress ports.
#[derive(Debug)]
pub(super) struct InOrder {
    ingresses: Vec<Ingress>,
    /// Ingress port of the frame that is leaving, by egress port.
    leaving: Vec<Option<PortId>>,
    /// True if an ingress has become free since the last call of [`InOrder::take_moved`].
    has_moved: bool,
}

#[derive(Debug)]
struct Ingress {
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
        let ingress = |port| Ingress { lines: lines(port), is_busy: false };
        let ingresses: Vec<_> = config.ports.iter().map(ingress).collect();
        Self { leaving: vec![None; ingresses.len()], ingresses, has_moved: false }
    }

    pub(super) fn join(&mut self, transit: &Transit) {
        self.ingresses[transit.ingress.index()].lines.of_mut(transit.channel).push_back(transit.lease);
    }

    /// Removes a frame that leaves or is given up, at any position.
    pub(super) fn leave(&mut self, transit: &Transit) {
        let line = self.ingresses[transit.ingress.index()].lines.of_mut(transit.channel);
        if let Some(slot) = line.iter().position(|lease| *lease == transit.lease) {
            line.remove(slot);
        }
    }

    pub(super) fn begin(&mut self, port: PortId, transit: &Transit) {
        self.end(port);
        self.leaving[port.index()] = Some(transit.ingress);
        self.ingresses[transit.ingress.index()].is_busy = true;
    }

    /// Ends the frame that was leaving by this port. Returns true if there was one.
    pub(super) fn end(&mut self, port: PortId) -> bool {
        let Some(ingress) = self.leaving[port.index()].take() else { return false };
        self.ingresses[ingress.index()].is_busy = false;
        self.has_moved = true;
        true
    }

    /// Returns true if a frame may still be leaving by this port.
    pub(super) fn is_leaving(&self, port: PortId) -> bool {
        self.leaving[port.index()].is_some()
    }

    pub(super) fn is_first(&self, transit: &Transit) -> bool {
        let ingress = &self.ingresses[transit.ingress.index()];
        !ingress.is_busy && ingress.lines.of(transit.channel).front() == Some(&transit.lease)
    }

    /// Returns true if an ingress has become free since the last call.
    pub(super) const fn take_moved(&mut self) -> bool {
        core::mem::replace(&mut self.has_moved, false)
    }
}
