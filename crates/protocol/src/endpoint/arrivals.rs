//! What comes from the wire for this node: checks, acknowledgements, and packets in order.

use alloc::boxed::Box;

use super::Endpoint;
use super::peer::Peer;
use crate::event::DropReason;
use crate::ids::{Class, Incarnation, PortId};
use crate::link::credits::is_ahead;
use crate::memory::LeaseId;
use crate::time::Instant;
use crate::transport::receiver::Arrival;
use crate::wire::frame::{FabricHeader, Frame, FrameKind};
use crate::wire::layout::OPERATIONS;
use crate::wire::packed::{Operation, Operations, census};

impl Endpoint {
    /// A routed frame for this node. The lease is held once here and given back at the end.
    pub(super) fn take_routed(&mut self, now: Instant, port: PortId, lease: LeaseId, frame: &Frame<'_>) {
        self.memory.hold(lease);
        if let Err(reason) = self.try_routed(now, port, lease, frame) {
            self.forwarder.drop_frame(port, reason);
        }
        self.unhold(lease);
    }

    pub(super) fn unhold(&mut self, lease: LeaseId) {
        if self.memory.unhold(lease) {
            self.forwarder.release(lease);
        }
    }

    fn try_routed(
        &mut self,
        now: Instant,
        port: PortId,
        lease: LeaseId,
        frame: &Frame<'_>,
    ) -> Result<(), DropReason> {
        // W-10
        if frame.link.has_end_to_end_check {
            if !frame.end_to_end_check_holds() {
                return Err(DropReason::EndToEndCheck);
            }
        } else if self.config().end_to_end_check {
            return Err(DropReason::CheckMissing);
        }
        let header = frame.fabric()?;
        let life = self.check_identity(&header)?;
        let is_data = frame.link.kind == FrameKind::Data;
        check_operations(&header, frame, is_data)?;
        let Some(mut peer) = self.peer_of(header.source) else { return Err(DropReason::StaleIncarnation) };
        if life != peer.life {
            // A new life has been reported in this very turn; its streams begin when the turn settles.
            self.put_back(peer);
            return Err(DropReason::StaleIncarnation);
        }
        let result = if is_data {
            if let Some(ack) = header.ack {
                self.take_ack(now, &mut peer, ack.class, (ack.psn, ack.operation), false, &[]);
            }
            self.take_packet(now, port, lease, frame, &header, &mut peer)
        } else {
            for operation in Operations::new(frame.operations()) {
                if let Ok(Operation::Ack { class, psn, operation, hole, bitmap }) = operation {
                    self.take_ack(now, &mut peer, class, (psn, operation), hole, bitmap);
                }
            }
            Ok(())
        };
        self.put_back(peer);
        self.end_flushes();
        result
    }

    // W-7
    /// Identity and tenant come from the plan; lives from link reports. A frame that says otherwise is not believed.
    /// Returns the life of the source.
    fn check_identity(&self, header: &FabricHeader) -> Result<Incarnation, DropReason> {
        let tenant = self.config().tenants.get(header.source.index());
        if tenant != Some(&header.tenant) || header.source == self.config().node {
            return Err(DropReason::Stranger);
        }
        let source = self.forwarder.life(header.source).ok_or(DropReason::StaleIncarnation)?;
        if source.tag() != header.source_incarnation
            || self.config().incarnation.tag() != header.destination_incarnation
        {
            return Err(DropReason::StaleIncarnation);
        }
        Ok(source)
    }

    fn take_packet(
        &mut self,
        now: Instant,
        port: PortId,
        lease: LeaseId,
        frame: &Frame<'_>,
        header: &FabricHeader,
        peer: &mut Box<Peer>,
    ) -> Result<(), DropReason> {
        let receiver = &mut peer.receivers[header.class.index()];
        let result = match receiver.judge(header.psn) {
            Arrival::InOrder => {
                self.accept(now, lease, header, frame.operations(), peer);
                self.take_held(now, header.class, peer);
                Ok(())
            }
            Arrival::Hold(place) => {
                receiver.hold(place, lease, port, frame.bytes());
                self.memory.hold(lease);
                Ok(())
            }
            Arrival::Duplicate => {
                receiver.note_duplicate();
                Err(DropReason::Duplicate)
            }
            Arrival::OutOfOrder => {
                receiver.note_hole();
                Err(DropReason::OutOfOrder)
            }
            Arrival::BeyondWindow => Err(DropReason::BeyondWindow),
        };
        let receiver = &peer.receivers[header.class.index()];
        let (deadline, is_due) = (receiver.deadline(), receiver.ack_due());
        self.arm(deadline);
        if is_due {
            self.queue_ack(peer);
        }
        peer.may_owe_acks = true;
        result
    }

    fn accept(
        &mut self,
        now: Instant,
        lease: LeaseId,
        header: &FabricHeader,
        operations: &[u8],
        peer: &mut Peer,
    ) {
        peer.receivers[header.class.index()].accept(now, header.ack_now);
        self.skip_voided(header, peer);
        self.serve_packet(lease, header, operations, peer);
    }

    /// Operations that their sender gave up keep their numbers: the stream passes over them.
    fn skip_voided(&self, header: &FabricHeader, peer: &mut Peer) {
        let class = header.class;
        let served =
            peer.serving[class.index()].back().map_or(peer.receivers[class.index()].visible, |last| last.end);
        if is_ahead(header.first_operation, served) {
            peer.serve(class, header.first_operation, true);
        }
    }

    /// A hole is filled: take what was held behind it.
    fn take_held(&mut self, now: Instant, class: Class, peer: &mut Peer) {
        while let Some(held) = peer.receivers[class.index()].next_held() {
            // The bytes passed every check when they came in, and are a private copy.
            let end = crate::wire::layout::FABRIC
                + usize::from(crate::wire::layout::u16_at(&held.bytes, crate::wire::layout::LENGTH));
            if let Ok(header) = FabricHeader::of(&held.bytes) {
                self.accept(now, held.lease, &header, &held.bytes[OPERATIONS..end], peer);
            }
            peer.receivers[class.index()].recycle(held.bytes);
            self.unhold(held.lease);
        }
    }

    fn take_ack(
        &mut self,
        now: Instant,
        peer: &mut Peer,
        class: Class,
        (psn, operation): (u32, u32),
        hole: bool,
        bitmap: &[u8],
    ) {
        let sender = &mut peer.senders[class.index()];
        let outcome = sender.handle_ack(now, psn, operation, hole, bitmap);
        let deadline = sender.deadline();
        self.arm(deadline);
        if outcome.operations_visible {
            self.end_visible(peer, class);
        }
        if outcome.packets_taken && !peer.refusal_holds.is_empty() {
            self.release_refusals(peer, class);
        }
        self.queue_data(peer, class);
    }
}

// W-12
/// The list of operations must be whole and must be what the header promises before anything of it is used.
fn check_operations(header: &FabricHeader, frame: &Frame<'_>, is_data: bool) -> Result<(), DropReason> {
    let census = census(frame.operations()).map_err(|_| DropReason::Malformed)?;
    let holds = if is_data {
        census.acknowledgements == 0 && census.numbered == usize::from(header.operation_count)
    } else {
        census.acknowledgements == census.all
    };
    if holds { Ok(()) } else { Err(DropReason::Malformed) }
}
