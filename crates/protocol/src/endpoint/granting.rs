//! Grants of this node to the streams that arrive here, and the demand of its own streams.
//!
//! [`Grants`](crate::transport::grants::Grants) decides. This file gives it arrivals, losses and time, and lets acknowledgements leave that carry new grants. It does nothing in
//! a rack without grants.

use crate::endpoint::Endpoint;
use crate::endpoint::peer::{Peer, Reach};
use crate::ids::{Class, NodeId};
use crate::time::Instant;
use crate::transport::grants::Arrived;
use crate::wire::demand::Demand;

impl Endpoint {
    // W-97
    /// Records the packet `psn` of a peer, behind which `demand` wait, after it was judged.
    #[inline]
    pub(in crate::endpoint) fn note_demand(
        &mut self,
        now: Instant,
        peer: &mut Peer,
        class: Class,
        psn: u32,
        demand: Demand,
    ) {
        if self.grants.is_some() {
            self.grant_to(now, peer, class, psn.wrapping_add(1).wrapping_add(demand.packets() as u32));
        }
    }

    /// Records that a packet of a peer has arrived, and that its sender has packets up to the number `end`. Grants what has returned.
    fn grant_to(&mut self, now: Instant, peer: &mut Peer, class: Class, end: u32) {
        let Some(grants) = &mut self.grants else { return };
        let receiver = &peer.streams.of(class).receiver;
        let arrived = Arrived { expected: receiver.expected(), held: receiver.held_count(), end };
        grants.note_arrival(now, (peer.node, class), arrived);
        let deadline = grants.deadline();
        self.arm(deadline);
        self.announce_grants(Some(peer));
    }

    /// Queues an acknowledgement to each peer with a new grant. `present` is the peer that is in use.
    pub(in crate::endpoint) fn announce_grants(&mut self, mut present: Option<&mut Peer>) {
        while let Some((node, _)) = self.grants.as_mut().and_then(|grants| grants.next_due()) {
            if let Some(peer) = present.as_mut().filter(|peer| peer.node == node) {
                self.queue_ack(peer);
            } else if let Some(mut peer) = self.peers[node.index()].take() {
                if peer.reach == Reach::Reached {
                    self.queue_ack(&mut peer);
                }
                self.put_back(peer);
            }
        }
    }

    // W-98
    /// Returns the grants of a lost node to the pool. `present` is its state.
    pub(in crate::endpoint) fn forget_grants(&mut self, present: &mut Peer) {
        let Some(grants) = &mut self.grants else { return };
        grants.forget(present.node);
        self.announce_grants(Some(present));
    }

    /// Returns grants that nothing has used, and sets the next timer.
    pub(in crate::endpoint) fn handle_grant_timeout(&mut self, now: Instant) {
        let Some(grants) = &mut self.grants else { return };
        grants.handle_timeout(now);
        let deadline = grants.deadline();
        self.arm(deadline);
        self.announce_grants(None);
    }

    /// Returns true if a grant to this node has not left.
    #[inline]
    pub(in crate::endpoint) fn has_unsent_grant(&self, node: NodeId) -> bool {
        self.grants.as_ref().is_some_and(|grants| grants.is_due(node))
    }

    /// Returns true if acknowledgements of this stream must carry its grant. The header of a data packet has no field for it.
    #[inline]
    pub(in crate::endpoint) fn repeats_grant(&self, node: NodeId, class: Class) -> bool {
        self.grants.as_ref().is_some_and(|grants| grants.is_in_use_by((node, class)))
    }

    // W-96
    /// Returns the packets of an own stream that wait behind the one at `index`.
    #[inline]
    pub(in crate::endpoint) fn demand(&self, peer: &Peer, class: Class, index: usize) -> Demand {
        if self.grants.is_none() {
            return Demand::NONE;
        }
        let stream = peer.streams.of(class);
        let mut waiting = stream.sender.behind(index);
        for bulk in &stream.bulk {
            if waiting >= Demand::PACKETS_MAX {
                break;
            }
            waiting = waiting.saturating_add(self.packets_of(bulk));
        }
        Demand::of_packets(waiting)
    }
}
