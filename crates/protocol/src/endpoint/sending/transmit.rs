//! Own frames of a node: choice of the next stream, packets of long transfers, piggybacked acknowledgements.

use crate::endpoint::Endpoint;
use crate::endpoint::peer::{Peer, Reach};
use crate::error::OperationError;
use crate::event::Event;
use crate::ids::{Channel, Class, PortId};
use crate::time::Instant;
use crate::transmit::{Body, Passage, Transmit};
use crate::transport::packet::PayloadSource;
use crate::transport::settings::is_short;
use crate::wire::frame::{FabricHeader, StreamAck};
use crate::wire::header_prediction::{FreshPacket, Numbers, Template};
use crate::wire::layout::{FABRIC, OPERATIONS};
use crate::wire::packed::Operation;

impl Endpoint {
    /// Records that a stream may have something to send.
    #[inline]
    pub(in crate::endpoint) fn queue_data(&mut self, peer: &mut Peer, class: Class) {
        if peer.streams.of(class).tickets < peer.tickets_max()
            && peer.is_sendable(class)
            && peer.reach == Reach::Reached
        {
            self.put_in_line(peer, class);
        }
    }

    fn put_in_line(&mut self, peer: &mut Peer, class: Class) {
        if peer.uses_several_paths() {
            return self.spread_tickets(peer, class);
        }
        let Some(port) = peer.ports[class.index()] else { return };
        peer.streams.of_mut(class).tickets = 1;
        let channel = self.forwarder.own_channel(port, class);
        self.ready_data[port.index()].of_mut(channel).push_back((peer.node, class));
    }

    /// Records that an acknowledgement to a peer is due.
    pub(in crate::endpoint) fn queue_ack(&mut self, peer: &mut Peer) {
        peer.may_have_acks_due = true;
        let is_due = peer.streams.iter().any(|(_, stream)| stream.receiver.ack_due());
        if peer.is_ack_queued || !is_due && !self.has_unsent_grant(peer.node) {
            return;
        }
        let Some(port) = peer.ports[Class::Reply.index()] else { return };
        peer.is_ack_queued = true;
        self.ready_acks[port.index()].push_back(peer.node);
    }

    pub(in crate::endpoint) fn wants_own(&self, port: PortId) -> bool {
        if !self.forwarder.carries(port) {
            return false;
        }
        !self.ready_acks[port.index()].is_empty()
            || self.ready_data[port.index()]
                .any(|channel, line| !line.is_empty() && self.forwarder.may_admit_own(port, channel))
    }

    // ---- acknowledgements ------------------------------------------------------------------------------------------

    pub(in crate::endpoint) fn transmit_ack(&mut self, port: PortId, out: &mut [u8]) -> Option<Transmit> {
        if !self.forwarder.carries(port) {
            return None;
        }
        loop {
            let node = self.ready_acks[port.index()].pop_front()?;
            let Some(mut peer) = self.peers[node.index()].take() else { continue };
            peer.is_ack_queued = false;
            let transmit = self.build_ack(port, &mut peer, out);
            self.put_back(peer);
            if transmit.is_some() {
                return transmit;
            }
        }
    }

    // W-82
    fn build_ack(&mut self, port: PortId, peer: &mut Peer, out: &mut [u8]) -> Option<Transmit> {
        let mut operations = alloc::vec::Vec::new();
        core::mem::swap(&mut operations, &mut self.ack_operations);
        operations.clear();
        let mut count = 0;
        for class in Class::ALL {
            if peer.streams.of(class).receiver.has_ack_due() {
                let operation = peer.acknowledged_operation(class);
                let receiver = &mut peer.streams.of_mut(class).receiver;
                let hole = receiver.acknowledge(&mut self.bitmap);
                let (marked, psn) = (receiver.take_mark(), receiver.expected());
                Operation::Ack { class, psn, operation, hole, marked, bitmap: &self.bitmap }
                    .encode(&mut operations);
                count += 1;
            }
            // W-97
            let grant = self.grants.as_mut().and_then(|grants| grants.announce((peer.node, class)));
            if let Some(psn) = grant {
                Operation::Grant { class, psn }.encode(&mut operations);
                count += 1;
            }
        }
        let length = OPERATIONS + operations.len();
        if count > 0 {
            out[OPERATIONS..length].copy_from_slice(&operations);
        }
        self.ack_operations = operations;
        if count == 0 {
            return None;
        }
        let passage = self.write_ack_headers(port, peer, count, length, out);
        let end_to_end_check = self.config().end_to_end_check;
        Some(Transmit { length, body: Body::Written, end_to_end_check, doorbell: true, passage })
    }

    /// Writes the headers of a frame that only acknowledges, from a template as for data.
    fn write_ack_headers(
        &mut self,
        port: PortId,
        peer: &mut Peer,
        operation_count: u8,
        length: usize,
        out: &mut [u8],
    ) -> Passage {
        if let Some(template) = peer.ack_headers.template(port) {
            let link = self.forwarder.number_ack_plain(port, length);
            let fresh = FreshPacket { operation_count, ..FreshPacket::default() };
            template.write_fresh(out, length - FABRIC, &link, fresh);
            return Passage::Plain;
        }
        FabricHeader { operation_count, ..self.fixed_header(peer, Class::Reply) }.write(out);
        let passage = self.forwarder.finish_own(port, Channel(0), out, false, length);
        if peer.streams.iter().any(|(_, stream)| !is_short(stream.receiver.expected())) {
            peer.ack_headers.set_template(self.template_of(port, passage, out));
        }
        passage
    }

    /// Returns the template for the next headers through this port, if it is usable.
    fn template_of(&self, port: PortId, passage: Passage, out: &[u8]) -> Option<(PortId, Template)> {
        let is_plain = passage == Passage::Plain && self.forwarder.trust(port).is_some();
        Template::of(out).filter(|_| is_plain).map(|template| (port, template))
    }

    // ---- data ------------------------------------------------------------------------------------------------------

    pub(in crate::endpoint) fn transmit_data(
        &mut self,
        now: Instant,
        port: PortId,
        channel: Channel,
        out: &mut [u8],
    ) -> Option<Transmit> {
        if !self.forwarder.carries(port) {
            return None;
        }
        loop {
            let (node, class) = *self.ready_data[port.index()].of(channel).front()?;
            let Some(mut peer) = self.peers[node.index()].take() else {
                self.ready_data[port.index()].of_mut(channel).pop_front();
                continue;
            };
            let outcome = self.send_packet(now, port, channel, &mut peer, class, out);
            if !matches!(outcome, Sending::Stalled) {
                self.end_turn(port, channel, &mut peer, class);
            }
            self.drain_answered(&peer);
            self.put_back(peer);
            match outcome {
                Sending::Sent(transmit) => return Some(transmit),
                Sending::Stalled => return None,
                Sending::Nothing => {}
            }
        }
    }

    /// Ends the turn of the first queued stream: moves it to the end of the queue, or removes it.
    fn end_turn(&mut self, port: PortId, channel: Channel, peer: &mut Peer, class: Class) {
        let line = self.ready_data[port.index()].of_mut(channel);
        if peer.uses_several_paths() {
            line.pop_front();
            peer.streams.of_mut(class).tickets -= 1;
            self.queue_data(peer, class);
        } else if peer.reach == Reach::Lost || !peer.is_sendable(class) {
            line.pop_front();
            peer.streams.of_mut(class).tickets = 0;
        } else if line.len() > 1 {
            line.rotate_left(1);
        }
    }

    fn send_packet(
        &mut self,
        now: Instant,
        port: PortId,
        channel: Channel,
        peer: &mut Peer,
        class: Class,
        out: &mut [u8],
    ) -> Sending {
        if peer.has_more_bulk(class) {
            self.cut_bulk(peer, class);
        }
        let Some(index) = peer.streams.of(class).sender.next() else { return Sending::Nothing };
        self.withdraw_answer(peer, class, index);
        let length = OPERATIONS + peer.streams.of(class).sender.packet(index).length();
        if !self.forwarder.admits_own(port, channel, length) {
            self.forwarder.note_stall(now, port, channel, length);
            return Sending::Stalled;
        }
        let passage = self.write_headers(port, peer, class, index, length, out);
        let path = if peer.uses_several_paths() { port.0 } else { 0 };
        let sender = &mut peer.streams.of_mut(class).sender;
        let packet = sender.packet(index);
        place_operations(packet, out);
        let body = packet.source.as_ref().map_or(Body::Written, gathered);
        if sender.note_sent(now, index, path) {
            self.forwarder.count_retransmission(port);
        }
        let deadline = sender.deadline();
        self.arm_stream(peer, deadline);
        let end_to_end_check = self.config().end_to_end_check;
        Sending::Sent(Transmit { length, body, end_to_end_check, doorbell: true, passage })
    }

    /// Writes the headers of a packet, with an acknowledgement if one is due. They come from the template of its stream and
    /// port if there is one, and are written field by field otherwise.
    fn write_headers(
        &mut self,
        port: PortId,
        peer: &mut Peer,
        class: Class,
        index: usize,
        length: usize,
        out: &mut [u8],
    ) -> Passage {
        let ack = self.piggyback(peer);
        let (more_bulk, stream) = (peer.has_more_bulk(class), peer.streams.of(class));
        let sender = &stream.sender;
        let (packet, psn, is_last) = (sender.packet(index), sender.psn(index), sender.is_last(index));
        let ack_now = is_last && !(more_bulk && sender.window_open());
        let (operation_count, first_operation) = (packet.operation_count, packet.first_operation);
        let again = packet.transmissions > 0;
        let demand = self.demand(peer, class, index);
        if let Some(template) = stream.headers.template(port) {
            let link = self.forwarder.number_plain(port, length);
            let length = (length - FABRIC) as u16;
            template.write(
                out,
                &Numbers { length, link, operation_count, ack_now, again, demand, ack, psn, first_operation },
            );
            return Passage::Plain;
        }
        let fixed = self.fixed_header(peer, class);
        FabricHeader { operation_count, first_operation, psn, again, demand, ack_now, ack, ..fixed }
            .write(out);
        let channel = self.forwarder.own_channel(port, class);
        let passage = self.forwarder.finish_own(port, channel, out, true, length);
        if !is_short(psn) {
            peer.streams.of_mut(class).headers.set_template(self.template_of(port, passage, out));
        }
        passage
    }

    /// Replaces an answer of a get whose bytes may no longer be read by a refusal under the same number. The
    /// requester then gets an error instead of invalid bytes.
    fn withdraw_answer(&mut self, peer: &mut Peer, class: Class, index: usize) {
        let sender = &mut peer.streams.of_mut(class).sender;
        let Some(source) = sender.packet(index).source else { return };
        let Some(number) = source.answers else { return };
        if self.regions.holds(source.region, source.offset, source.length as u64) {
            return;
        }
        let error = OperationError::Revoked;
        let code = error.wire_code().unwrap_or(0);
        sender.replace(index, &Operation::Refusal { operation: number, class: Class::Bulk, code });
        let event = Event::AccessRefused { source: peer.node, region: source.region, error };
        self.forwarder.push_event(event);
    }

    fn piggyback(&mut self, peer: &mut Peer) -> Option<StreamAck> {
        if !peer.may_have_acks_due {
            return None;
        }
        let found = peer.streams.iter().find(|(class, stream)| {
            stream.receiver.may_piggyback() && !self.repeats_grant(peer.node, *class)
        });
        let class = found.map(|(class, _)| class);
        // Acknowledgements that could not be carried need no search before more packets have arrived.
        peer.may_have_acks_due = class.is_some();
        let class = class?;
        let operation = peer.acknowledged_operation(class);
        let receiver = &mut peer.streams.of_mut(class).receiver;
        receiver.acknowledge(&mut self.bitmap);
        Some(StreamAck { class, psn: receiver.expected(), operation })
    }
}

enum Sending {
    Sent(Transmit),
    /// No credits. The stream stays first in the queue.
    Stalled,
    /// The stream has nothing to send.
    Nothing,
}

/// Writes a packet's operations after the fabric header, with a gap for gathered payload.
#[inline]
pub(in crate::endpoint) fn place_operations(packet: &crate::transport::packet::Packet, out: &mut [u8]) {
    let Some(source) = &packet.source else {
        out[OPERATIONS..OPERATIONS + packet.body.len()].copy_from_slice(&packet.body);
        return;
    };
    let at = OPERATIONS + source.split;
    out[OPERATIONS..at].copy_from_slice(&packet.body[..source.split]);
    let rest = at + source.length;
    out[rest..rest + packet.body.len() - source.split].copy_from_slice(&packet.body[source.split..]);
}

/// Returns the payload that goes into the gap.
pub(in crate::endpoint) const fn gathered(source: &PayloadSource) -> Body {
    let PayloadSource { region, offset, length, split, following, .. } = *source;
    Body::Memory { region, offset, at: OPERATIONS + split, length, following }
}
