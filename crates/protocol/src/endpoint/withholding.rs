//! Withholding of credits: frames that are accepted and not drained, and the waits that this causes.

use alloc::vec::Vec;

use crate::config::RequestDrain;
use crate::endpoint::Endpoint;
use crate::endpoint::peer::{Peer, Reach};
use crate::endpoint::undrained::Kept;
use crate::forwarding::waits::Wait;
use crate::ids::{Channel, Class, NodeId, PortId};

impl Endpoint {
    /// Stops or resumes draining a class, as an injected fault. Frames that arrive while it is stopped keep their
    /// credits.
    pub fn stop_draining(&mut self, class: Class, stopped: bool) {
        self.undrained.is_stopped[class.index()] = stopped;
        self.undrained.is_in_use = self.config().forwarding.drain == RequestDrain::Answered
            || self.undrained.is_stopped.contains(&true);
        if !stopped {
            self.free_kept(|kept| kept.class == class);
        }
    }

    /// Returns true if accepted frames may keep their credits.
    #[inline]
    pub(super) const fn keeps_buffers_back(&self) -> bool {
        self.undrained.is_in_use
    }

    /// Records that a data frame for this node was accepted.
    #[inline]
    pub(super) fn note_taken(
        &mut self,
        port: PortId,
        channel: Channel,
        class: Class,
        source: NodeId,
        bytes: usize,
    ) {
        if !self.undrained.is_in_use {
            return;
        }
        let awaits_answer = self.config().forwarding.drain == RequestDrain::Answered
            && matches!(class, Class::Request | Class::Bulk);
        if awaits_answer || self.undrained.is_stopped[class.index()] {
            let withheld = self.forwarder.withhold(port, channel, bytes);
            self.undrained.kept.push(Kept { source, class, withheld });
        }
    }

    /// Frees the credits of requests whose answers may have left.
    #[inline]
    pub(super) fn drain_answered(&mut self, peer: &Peer) {
        if self.undrained.kept.is_empty() {
            return;
        }
        let has_unsent =
            |class: Class| peer.streams.of(class).sender.unsent() > 0 || peer.has_more_bulk(class);
        let serves = |class: Class| peer.streams.of(class).is_serving();
        let is_answered = ![Class::Reply, Class::BulkReply].into_iter().any(has_unsent)
            && ![Class::Request, Class::Bulk].into_iter().any(serves);
        if is_answered || peer.reach == Reach::Lost {
            let (node, is_stopped) = (peer.node, self.undrained.is_stopped);
            self.free_kept(|kept| kept.source == node && !is_stopped[kept.class.index()]);
        }
    }

    fn free_kept(&mut self, is_due: impl Fn(&Kept) -> bool) {
        let (forwarder, kept) = (&mut self.forwarder, &mut self.undrained.kept);
        kept.retain(|kept| {
            let is_due = is_due(kept);
            if is_due {
                forwarder.give_back(&kept.withheld);
            }
            !is_due
        });
    }

    /// Returns the waits of this node's own frames for credits while it keeps back those of others: one more step of
    /// a cycle.
    pub(super) fn own_waits(&self) -> Vec<Wait> {
        if self.undrained.kept.is_empty() {
            return Vec::new();
        }
        let mut arrived_over: Vec<_> =
            self.undrained.kept.iter().map(|kept| self.forwarder.arrived_over(&kept.withheld)).collect();
        arrived_over.sort_unstable();
        arrived_over.dedup();
        let mut waits = Vec::new();
        for (port, lines) in (0..).map(PortId).zip(&self.ready_data) {
            for channel in self.forwarder.channels(port) {
                if !lines.of(channel).is_empty() && self.forwarder.link(port).accounts.is_stalled(channel) {
                    waits.push(self.forwarder.wait_of(
                        port,
                        channel,
                        self.undrained.kept.len(),
                        arrived_over.clone(),
                    ));
                }
            }
        }
        waits
    }
}
