//! Admission of packets: a packet is accepted only while no queue that it could lengthen is at its bound.

use crate::endpoint::Endpoint;
use crate::endpoint::bounds::BUDGETS_MAX;
use crate::endpoint::peer::Peer;
use crate::ids::Class;
use crate::operation::messages::EAGER_BUDGET_BYTES;
use crate::time::Instant;

impl Endpoint {
    // W-84
    /// Returns true if a packet of this class may be accepted from a peer: no queue that it could lengthen is at its
    /// bound.
    #[inline]
    pub(super) fn can_serve(&self, peer: &Peer, class: Class) -> bool {
        let bounds = &self.bounds;
        let has_space = !bounds.is_full(peer.streams.of(class).not_yet_visible())
            && !bounds.is_full(peer.refusals_held())
            && !bounds.is_full(self.forwarder.events_waiting());
        has_space
            && match class {
                Class::Request | Class::Bulk => self.can_answer(peer),
                Class::Reply | Class::BulkReply => !bounds.is_full(peer.landing as usize),
            }
    }

    fn can_answer(&self, peer: &Peer) -> bool {
        let unsent = |class: Class| peer.streams.of(class).sender.unsent();
        let waiting = self.matching.waiting_from(peer.node);
        unsent(Class::Reply) <= self.bounds.packets
            && unsent(Class::BulkReply) <= self.bounds.packets
            && !self.bounds.is_full(peer.streams.of(Class::BulkReply).bulk.len())
            && waiting.eager_cost <= BUDGETS_MAX * EAGER_BUDGET_BYTES
            && waiting.offers <= self.bounds.offers
    }

    /// Records that work for a peer was added. If a queue is at its bound now, the fast path is closed for its next
    /// packet.
    pub(super) fn note_work(&self, peer: &mut Peer) {
        if !Class::ALL.into_iter().all(|class| self.can_serve(peer, class)) {
            peer.streams.iter_mut().for_each(|stream| stream.headers.set_known(None));
        }
    }

    /// Accepts held packets that waited for space, after work for a peer may have ended.
    pub(super) fn resume_held(&mut self, now: Instant, peer: &mut Peer) {
        peer.is_stalled = false;
        for class in Class::ALL {
            if peer.streams.of(class).receiver.has_next() {
                self.take_held(now, class, peer);
                self.note_ack_due(class, peer);
            }
        }
    }
}
