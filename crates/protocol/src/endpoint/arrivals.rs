//! Received frames for this node: checks, acknowledgements, and packets in order.

use alloc::boxed::Box;

use crate::endpoint::Endpoint;
use crate::endpoint::peer::Peer;
use crate::event::{DropReason, Event};
use crate::ids::{Class, Incarnation, PortId};
use crate::memory::LeaseId;
use crate::planted::{PlantedBug, is_planted};
use crate::time::Instant;
use crate::transport::receiver::{Arrival, Early, Held, Receiver};
use crate::transport::sender::AckReport;
use crate::wire::frame::{FabricHeader, Frame, FrameKind, StreamAck};
use crate::wire::layout::{FABRIC, LENGTH, OPERATIONS, u16_at};
use crate::wire::packed::{Operation, Operations, count_operations};

impl Endpoint {
    /// Handles a routed frame for this node. The lease is held during the call and released at the end.
    pub(super) fn take_routed(&mut self, now: Instant, port: PortId, lease: LeaseId, frame: &Frame<'_>) {
        self.memory.hold(lease);
        if let Err(reason) = self.try_routed(now, port, lease, frame) {
            self.forwarder.drop_frame(port, reason);
        }
        self.end_hold(lease);
    }

    pub(super) fn end_hold(&mut self, lease: LeaseId) {
        if self.memory.end_hold(lease) {
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
        let incarnation = self.check_identity(&header)?;
        let is_data = frame.link.kind == FrameKind::Data;
        check_operations(&header, frame, is_data)?;
        let Some(mut peer) = self.peer_of(header.source) else { return Err(DropReason::StaleIncarnation) };
        if incarnation != peer.incarnation {
            // A new incarnation was reported in this poll iteration. Its streams begin at the end of the iteration.
            self.put_back(peer);
            return Err(DropReason::StaleIncarnation);
        }
        let result = if is_data {
            if let Some(ack) = header.ack {
                self.take_ack(now, &mut peer, ack, AckReport::default());
            }
            let channel = frame.link.channel;
            self.note_taken(port, channel, header.class, header.source, frame.bytes().len());
            if frame.link.is_marked {
                receiver_of(&mut peer, header.class).note_mark();
                self.forwarder.count_marks(port).rx_marked += 1;
            }
            let result = self.take_packet(now, port, lease, frame, &header, &mut peer);
            self.drain_answered(&peer);
            result
        } else {
            for operation in Operations::new(frame.operations()) {
                match operation {
                    Ok(Operation::Ack { class, psn, operation, hole, marked, bitmap }) => {
                        self.forwarder.count_marks(port).rx_echo += u64::from(marked);
                        let ack = StreamAck { class, psn, operation };
                        let report = AckReport { hole, is_marked: marked, bitmap };
                        self.take_ack(now, &mut peer, ack, report);
                    }
                    Ok(Operation::Grant { class, psn }) => {
                        peer.streams.of_mut(class).sender.handle_grant(psn);
                        self.queue_data(&mut peer, class);
                    }
                    _ => {}
                }
            }
            self.store_ack_header(port, frame, &mut peer);
            Ok(())
        };
        self.put_back(peer);
        self.end_flushes();
        result
    }

    // W-7
    /// Checks identity and tenant against the plan, and incarnations against link reports. Returns the incarnation of
    /// the source.
    ///
    /// # Errors
    /// The reason to drop the frame if they differ.
    fn check_identity(&self, header: &FabricHeader) -> Result<Incarnation, DropReason> {
        let tenant = self.config().tenants.get(header.source.index());
        if tenant != Some(&header.tenant) || header.source == self.config().node {
            return Err(DropReason::UnknownSender);
        }
        let source = self.forwarder.incarnation(header.source).ok_or(DropReason::StaleIncarnation)?;
        let is_for_this_incarnation = self.config().incarnation.tag() == header.destination_incarnation
            || is_planted(PlantedBug::StaleEpochTaken);
        if source.tag() != header.source_incarnation || !is_for_this_incarnation {
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
        if peer.is_stalled {
            self.resume_held(now, peer);
        }
        let has_space = self.can_serve(peer, header.class);
        let result = match receiver_of(peer, header.class).judge(header.psn) {
            // W-84
            Arrival::InOrder if !has_space => Err(DropReason::ServingFull),
            Arrival::InOrder => {
                self.accept(now, lease, port, header, frame.operations(), peer);
                self.take_held(now, header.class, peer);
                self.store_header(port, header.class, frame, peer);
                self.note_work(peer);
                Ok(())
            }
            Arrival::Hold(slot)
                if has_space && self.takes_early(peer, slot, port, header, frame.operations()) =>
            {
                receiver_of(peer, header.class).note_taken(slot, header.first_operation);
                self.carry_out(lease, port, header, frame.operations(), peer);
                self.take_early(header.class, peer);
                Ok(())
            }
            Arrival::Hold(slot) => {
                let receiver = receiver_of(peer, header.class);
                receiver.hold(slot, lease, port, frame.bytes());
                if is_planted(PlantedBug::AckBeforeVisible) {
                    receiver.visible = header.first_operation.wrapping_add(header.operation_count.into());
                }
                self.memory.hold(lease);
                Ok(())
            }
            Arrival::Duplicate if is_planted(PlantedBug::TakenTwice) => {
                self.carry_out(lease, port, header, frame.operations(), peer);
                Ok(())
            }
            Arrival::Duplicate => {
                if is_planted(PlantedBug::CreditLeak) {
                    let _ = self.forwarder.withhold(port, frame.link.channel, frame.bytes().len());
                }
                receiver_of(peer, header.class).note_duplicate();
                Err(DropReason::Duplicate)
            }
            Arrival::OutOfOrder => {
                receiver_of(peer, header.class).note_hole();
                Err(DropReason::OutOfOrder)
            }
            Arrival::BeyondWindow => Err(DropReason::BeyondWindow),
        };
        self.note_demand(now, peer, header.class, header.psn, header.demand);
        self.note_ack_due(header.class, peer);
        result
    }

    /// Records that a packet of this class was judged, so that an acknowledgement is due now or later.
    pub(super) fn note_ack_due(&mut self, class: Class, peer: &mut Peer) {
        let receiver = &peer.streams.of(class).receiver;
        let (deadline, is_due) = (receiver.deadline(), receiver.ack_due());
        self.arm_stream(peer, deadline);
        if is_due {
            self.queue_ack(peer);
        }
        peer.may_have_acks_due = true;
    }

    fn accept(
        &mut self,
        now: Instant,
        lease: LeaseId,
        port: PortId,
        header: &FabricHeader,
        operations: &[u8],
        peer: &mut Peer,
    ) {
        receiver_of(peer, header.class).accept(now, header.ack_now);
        self.skip_voided(peer, header.class, header.first_operation);
        self.carry_out(lease, port, header, operations, peer);
    }

    /// Advances the stream past operations that their sender gave up; these keep their numbers.
    #[inline]
    fn skip_voided(&mut self, peer: &mut Peer, class: Class, first_operation: u32) {
        let stream = peer.streams.of_mut(class);
        if let Some(gap) = stream.gap_before(first_operation) {
            stream.serving_from = gap;
            stream.serve(first_operation, true);
            self.note_failed(peer, class, gap, first_operation, None);
        }
    }

    /// Executes a packet, checked by the order oracle.
    fn carry_out(
        &mut self,
        lease: LeaseId,
        port: PortId,
        header: &FabricHeader,
        operations: &[u8],
        peer: &mut Peer,
    ) {
        if let Some(scope) = peer.order_oracle.see(header, port, operations) {
            let (source, class, number) = (peer.node, header.class, header.psn);
            self.forwarder.push_event(Event::OrderBroken { source, class, scope, number });
        }
        self.serve_packet(lease, header, operations, peer);
    }

    /// Executes held packets after a gap is filled.
    pub(super) fn take_held(&mut self, now: Instant, class: Class, peer: &mut Peer) {
        while peer.streams.of(class).receiver.has_next() {
            if !self.can_serve(peer, class) {
                peer.is_stalled = true;
                return;
            }
            let Some(early) = receiver_of(peer, class).next_early() else { return };
            match early {
                Early::Held(held) => {
                    if let Some((header, operations)) = read(&held) {
                        self.accept(now, held.lease, held.port, &header, operations, peer);
                    }
                    self.give_back(held, class, peer);
                }
                Early::Taken { first_operation } => {
                    receiver_of(peer, class).accept(now, false);
                    self.skip_voided(peer, class, first_operation);
                }
            }
        }
        if self.config().paths.takes_early() {
            self.take_early(class, peer);
        }
    }

    /// Executes held packets early: signals whose data is visible now.
    fn take_early(&mut self, class: Class, peer: &mut Peer) {
        loop {
            let is_ready = |slot: usize, held: &Held| {
                let is_ready = |(header, operations): (FabricHeader, &[u8])| {
                    self.takes_early(peer, slot, held.port, &header, operations)
                };
                read(held).is_some_and(is_ready)
            };
            if !self.can_serve(peer, class) {
                return;
            }
            let Some(slot) = peer.streams.of(class).receiver.find_held(is_ready) else { return };
            let Some(held) = receiver_of(peer, class).take_at(slot) else { return };
            if let Some((header, operations)) = read(&held) {
                receiver_of(peer, class).note_taken(slot, header.first_operation);
                self.carry_out(held.lease, held.port, &header, operations, peer);
            }
            self.give_back(held, class, peer);
        }
    }

    fn give_back(&mut self, held: Held, class: Class, peer: &mut Peer) {
        receiver_of(peer, class).recycle(held.bytes);
        self.end_hold(held.lease);
    }

    pub(super) fn take_ack(&mut self, now: Instant, peer: &mut Peer, ack: StreamAck, report: AckReport<'_>) {
        let StreamAck { class, psn, operation } = ack;
        let sender = &mut peer.streams.of_mut(class).sender;
        let outcome = sender.handle_ack(now, psn, operation, report);
        let deadline = sender.deadline();
        self.arm_stream(peer, deadline);
        if outcome.operations_visible {
            self.end_visible(peer, class);
            peer.judge_overlap();
        }
        if outcome.packets_taken && peer.refusals_held() > 0 {
            self.release_refusals(peer, class);
        }
        if peer.is_stalled {
            self.resume_held(now, peer);
        }
        self.queue_data(peer, class);
    }
}

#[inline]
fn receiver_of(peer: &mut Peer, class: Class) -> &mut Receiver {
    &mut peer.streams.of_mut(class).receiver
}

/// Reads a held packet again. Its bytes are a private copy that has passed all checks.
fn read(held: &Held) -> Option<(FabricHeader, &[u8])> {
    let end = FABRIC + usize::from(u16_at(&held.bytes, LENGTH));
    Some((FabricHeader::of(&held.bytes).ok()?, held.bytes.get(OPERATIONS..end)?))
}

// W-12
/// Checks that the list of operations is complete and agrees with the header, before any operation is used.
fn check_operations(header: &FabricHeader, frame: &Frame<'_>, is_data: bool) -> Result<(), DropReason> {
    let count_operations = count_operations(frame.operations()).map_err(|_| DropReason::Malformed)?;
    let holds = if is_data {
        count_operations.acknowledgements == 0
            && count_operations.numbered == usize::from(header.operation_count)
    } else {
        count_operations.acknowledgements == count_operations.all
    };
    if holds { Ok(()) } else { Err(DropReason::Malformed) }
}
