//! Bounds on the work that one remote node may queue at this one.
//!
//! A correct node keeps limits that the plan sets: a window of packets, operations per packet, outstanding loads and
//! an eager budget. A node that ignores them must not make this one grow. So each queue that serves a remote node is
//! measured before the transport accepts a packet. A packet that arrives while a queue is at its bound is dropped,
//! counted as [`DropReason::ServingFull`](crate::event::DropReason::ServingFull) and not acknowledged. Its sender
//! retransmits it later.
//!
//! The bounds hold between packets: one packet may exceed a bound by the operations that it carries.

use super::Endpoint;
use super::peer::Peer;
use crate::config::{MemberConfig, PackingMode};
use crate::ids::Class;
use crate::operation::messages::{EAGER_BUDGET_BYTES, EAGER_COST_MIN};
use crate::time::Instant;

/// Number of eager messages that fit into the budget of one sender.
const EAGER_MESSAGES_MAX: usize = (EAGER_BUDGET_BYTES / EAGER_COST_MIN) as usize;
/// Budgets that one sender may use. A sender that loses its path forgets its messages that wait for receives here,
/// and begins a new budget when it returns. The old messages still wait.
const BUDGETS_MAX: u64 = 2;

/// Bounds per remote node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Operations in one queue: served and not yet visible, gets and pulls not yet cut, refusals not yet
    /// acknowledged.
    operations: usize,
    /// Packets of answers in one class that have not been sent yet.
    packets: usize,
    /// Offers without a matching receive.
    offers: usize,
}

impl Bounds {
    pub(super) fn of(config: &MemberConfig) -> Self {
        let window = config.transport.window_packets as usize;
        let per_packet = usize::from(config.packing.operations_max).max(1);
        let outstanding = config.outstanding_loads_max as usize;
        let small = EAGER_MESSAGES_MAX + outstanding;
        let packed = if config.packing.mode == PackingMode::Off { 1 } else { per_packet };
        Self {
            operations: window * per_packet + small,
            packets: window + small.div_ceil(packed),
            offers: BUDGETS_MAX as usize * outstanding,
        }
    }

    /// Returns true if a queue of this many operations is at its bound.
    #[inline]
    pub(super) const fn is_full(&self, operations: usize) -> bool {
        operations >= self.operations
    }
}

impl Endpoint {
    // W-84
    /// Returns true if a packet of this class may be accepted from a peer: no queue that it could lengthen is at its
    /// bound.
    #[inline]
    pub(super) fn has_room_to_serve(&self, peer: &Peer, class: Class) -> bool {
        let bounds = &self.bounds;
        let has_room = !bounds.is_full(peer.not_yet_visible(class))
            && !bounds.is_full(peer.refusal_holds.len())
            && !bounds.is_full(self.forwarder.events_waiting());
        has_room
            && match class {
                Class::Request | Class::Bulk => self.has_room_to_answer(peer),
                Class::Reply | Class::BulkReply => !bounds.is_full(peer.landing),
            }
    }

    fn has_room_to_answer(&self, peer: &Peer) -> bool {
        let unsent = |class: Class| peer.senders[class.index()].unsent();
        let waiting = self.matching.waiting_from(peer.node);
        unsent(Class::Reply) <= self.bounds.packets
            && unsent(Class::BulkReply) <= self.bounds.packets
            && !self.bounds.is_full(peer.bulk[Class::BulkReply.index()].len())
            && waiting.eager_cost <= BUDGETS_MAX * EAGER_BUDGET_BYTES
            && waiting.offers <= self.bounds.offers
    }

    /// Records that work for a peer was added. If a queue is at its bound now, the fast path is closed for its next
    /// packet.
    pub(super) fn note_work(&self, peer: &mut Peer) {
        if !Class::ALL.into_iter().all(|class| self.has_room_to_serve(peer, class)) {
            peer.acquaintances = [None; Class::COUNT];
        }
    }

    /// Accepts held packets that waited for room, after work for a peer may have ended.
    pub(super) fn resume_held(&mut self, now: Instant, peer: &mut Peer) {
        peer.is_stalled = false;
        for class in Class::ALL {
            if peer.receivers[class.index()].has_next() {
                self.take_held(now, class, peer);
                self.note_owed(class, peer);
            }
        }
    }
}
