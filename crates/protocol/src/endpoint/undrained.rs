//! Buffers that a node keeps back, as an injected fault.
//!
//! A node drains all frames: the credits of a frame are free as soon as it is accepted. Real nodes may not. A
//! responder without room for more answers leaves requests queued until answers have left, and a consumer may stop
//! completely. This file emulates such a node: frames are accepted as usual, and their credits are kept back. The
//! fault shows why answers need a channel of their own.
//!
//! It is off by default.

use alloc::vec::Vec;

use super::Endpoint;
use super::peer::Peer;
use crate::ids::{Channel, Class, NodeId, PortId};
use crate::switch::forwarder::Withheld;
use crate::switch::waits::Wait;

/// Credits of frames that were accepted and count as not drained.
#[derive(Debug, Default)]
pub(super) struct Undrained {
    kept: Vec<Kept>,
    is_stopped: [bool; Class::COUNT],
    /// True if any class is stopped, or requests wait for their answers to leave.
    is_in_use: bool,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    source: NodeId,
    class: Class,
    withheld: Withheld,
}

impl Undrained {
    pub(super) fn new(until_answered: bool) -> Self {
        Self { is_in_use: until_answered, ..Self::default() }
    }
}

impl Endpoint {
    /// Stops or resumes draining a class, as an injected fault. Frames that arrive while it is stopped keep their
    /// credits.
    pub fn stop_draining(&mut self, class: Class, stopped: bool) {
        self.undrained.is_stopped[class.index()] = stopped;
        self.undrained.is_in_use =
            self.config().forwarding.until_answered || self.undrained.is_stopped.contains(&true);
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
        (port, channel): (PortId, Channel),
        class: Class,
        source: NodeId,
        bytes: usize,
    ) {
        if !self.undrained.is_in_use {
            return;
        }
        let awaits_answer =
            self.config().forwarding.until_answered && matches!(class, Class::Request | Class::Bulk);
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
        let owes = |class: Class| peer.senders[class.index()].unsent() > 0 || peer.has_more_bulk(class);
        let serves = |class: Class| !peer.serving[class.index()].is_empty();
        let is_answered = ![Class::Reply, Class::BulkReply].into_iter().any(owes)
            && ![Class::Request, Class::Bulk].into_iter().any(serves);
        if is_answered || peer.is_lost {
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
    /// a circle.
    pub(super) fn own_waits(&self) -> Vec<Wait> {
        if self.undrained.kept.is_empty() {
            return Vec::new();
        }
        let mut came_over: Vec<_> =
            self.undrained.kept.iter().map(|kept| self.forwarder.came_over(&kept.withheld)).collect();
        came_over.sort_unstable();
        came_over.dedup();
        let mut waits = Vec::new();
        for (port, lines) in (0..).map(PortId).zip(&self.ready_data) {
            for channel in self.forwarder.channels(port) {
                if !lines.of(channel).is_empty() && self.forwarder.link(port).accounts.is_stalled(channel) {
                    waits.push(self.forwarder.wait_of(
                        port,
                        channel,
                        self.undrained.kept.len(),
                        came_over.clone(),
                    ));
                }
            }
        }
        waits
    }
}
