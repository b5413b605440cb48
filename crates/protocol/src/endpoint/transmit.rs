//! Frames of this node's own: which stream goes next, how long transfers are cut, what rides along.

use super::Endpoint;
use super::peer::Peer;
use crate::error::OperationError;
use crate::event::Event;
use crate::ids::{Class, PortId};
use crate::operation::bulk::Bulk;
use crate::operation::outstanding::{ReplyKind, ReplyWait, VisibleWait};
use crate::operation::{LocalRange, RemoteAddress};
use crate::surroundings::{Body, Transmit};
use crate::time::Instant;
use crate::transport::packet::PayloadSource;
use crate::wire::frame::{FabricHeader, PiggybackAck};
use crate::wire::layout::OPERATIONS;
use crate::wire::packed::{Operation, PUT_BYTES, SELECT_BYTES, get_data_header, put_header};

impl Endpoint {
    /// Payload bytes of one packet of a long transfer: what a frame holds, in multiples of 256.
    pub(super) fn segment_bytes(&self) -> u64 {
        let room = usize::from(self.config().frame_bytes_max) - OPERATIONS - SELECT_BYTES - PUT_BYTES;
        (if room >= 256 { room / 256 * 256 } else { room }) as u64
    }

    /// Note that a stream may have something to send.
    #[inline]
    pub(super) fn queue_data(&mut self, peer: &mut Peer, class: Class) {
        if !peer.is_data_queued[class.index()] && peer.is_sendable(class) && !peer.is_lost {
            self.put_in_line(peer, class);
        }
    }

    fn put_in_line(&mut self, peer: &mut Peer, class: Class) {
        let Some(port) = peer.ports[class.index()] else { return };
        peer.is_data_queued[class.index()] = true;
        self.ready_data[port.index()].push_back((peer.node, class));
    }

    /// Note that a peer is owed an acknowledgement.
    pub(super) fn queue_ack(&mut self, peer: &mut Peer) {
        peer.may_owe_acks = true;
        if peer.is_ack_queued || !peer.receivers.iter().any(crate::transport::receiver::Receiver::ack_due) {
            return;
        }
        let Some(port) = peer.ports[Class::Reply.index()] else { return };
        peer.is_ack_queued = true;
        self.ready_acks[port.index()].push_back(peer.node);
    }

    pub(super) fn wants_own(&self, port: PortId) -> bool {
        if !self.forwarder.carries(port) {
            return false;
        }
        !self.ready_acks[port.index()].is_empty()
            || (!self.ready_data[port.index()].is_empty() && self.forwarder.may_admit_own(port))
    }

    // ---- acknowledgements ------------------------------------------------------------------------------------------

    pub(super) fn transmit_ack(&mut self, port: PortId, out: &mut [u8]) -> Option<Transmit> {
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

    fn build_ack(&mut self, port: PortId, peer: &mut Peer, out: &mut [u8]) -> Option<Transmit> {
        let mut operations = alloc::vec::Vec::new();
        core::mem::swap(&mut operations, &mut self.ack_operations);
        operations.clear();
        let mut count = 0;
        for class in Class::ALL {
            if !peer.receivers[class.index()].owes_ack() {
                continue;
            }
            let operation = peer.acknowledged_operation(class);
            let receiver = &mut peer.receivers[class.index()];
            let hole = receiver.acknowledge(&mut self.bitmap);
            let psn = receiver.expected();
            Operation::Ack { class, psn, operation, hole, bitmap: &self.bitmap }.encode(&mut operations);
            count += 1;
        }
        let length = OPERATIONS + operations.len();
        if count > 0 {
            out[OPERATIONS..length].copy_from_slice(&operations);
        }
        self.ack_operations = operations;
        if count == 0 {
            return None;
        }
        FabricHeader { operation_count: count, ..peer.headers[Class::Reply.index()] }.write(out);
        let passage = self.forwarder.finish_own(port, out, false, length);
        let end_to_end_check = self.config().end_to_end_check;
        Some(Transmit { length, body: Body::Written, end_to_end_check, doorbell: true, passage })
    }

    // ---- data ------------------------------------------------------------------------------------------------------

    pub(super) fn transmit_data(&mut self, now: Instant, port: PortId, out: &mut [u8]) -> Option<Transmit> {
        if !self.forwarder.carries(port) {
            return None;
        }
        loop {
            let (node, class) = *self.ready_data[port.index()].front()?;
            let Some(mut peer) = self.peers[node.index()].take() else {
                self.ready_data[port.index()].pop_front();
                continue;
            };
            let outcome = self.send_packet(now, port, &mut peer, class, out);
            if !matches!(outcome, Sending::Stalled) {
                self.end_turn(port, &mut peer, class);
            }
            self.put_back(peer);
            match outcome {
                Sending::Sent(transmit) => return Some(transmit),
                Sending::Stalled => return None,
                Sending::Nothing => {}
            }
        }
    }

    /// The stream first in line has had its turn: it goes to the end of the line, or out of it.
    fn end_turn(&mut self, port: PortId, peer: &mut Peer, class: Class) {
        let line = &mut self.ready_data[port.index()];
        if peer.is_lost || !peer.is_sendable(class) {
            line.pop_front();
            peer.is_data_queued[class.index()] = false;
        } else if line.len() > 1 {
            line.rotate_left(1);
        }
    }

    fn send_packet(
        &mut self,
        now: Instant,
        port: PortId,
        peer: &mut Peer,
        class: Class,
        out: &mut [u8],
    ) -> Sending {
        if peer.has_more_bulk(class) {
            self.cut_bulk(peer, class);
        }
        let Some(index) = peer.senders[class.index()].next() else { return Sending::Nothing };
        self.withdraw_answer(peer, class, index);
        let length = OPERATIONS + peer.senders[class.index()].packet(index).0.length();
        if !self.forwarder.admits_own(port, length) {
            self.forwarder.note_stall(now, port, length);
            return Sending::Stalled;
        }
        let ack = self.piggyback(peer);
        let mut header = peer.headers[class.index()];
        let more_bulk = peer.has_more_bulk(class);
        let sender = &mut peer.senders[class.index()];
        let (packet, psn, is_last) = sender.packet(index);
        header.operation_count = packet.operation_count;
        header.first_operation = packet.first_operation;
        header.psn = psn;
        header.ack_now = is_last && !(more_bulk && sender.window_open());
        header.ack = ack;
        header.write(out);
        let body = place_packet(packet, out);
        if sender.note_sent(now, index) {
            self.forwarder.count_retransmission(port);
        }
        let deadline = sender.deadline();
        self.arm(deadline);
        let passage = self.forwarder.finish_own(port, out, true, length);
        let end_to_end_check = self.config().end_to_end_check;
        Sending::Sent(Transmit { length, body, end_to_end_check, doorbell: true, passage })
    }

    /// A packet that answers a get, but whose bytes may not be read any more, becomes a refusal under the same number: the
    /// caller hears of it as if the rest had been refused, and is never given bytes that nobody vouches for.
    fn withdraw_answer(&mut self, peer: &mut Peer, class: Class, index: usize) {
        let sender = &mut peer.senders[class.index()];
        let Some(source) = sender.packet(index).0.source else { return };
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

    fn piggyback(&mut self, peer: &mut Peer) -> Option<PiggybackAck> {
        if !peer.may_owe_acks {
            return None;
        }
        let class = Class::ALL.into_iter().find(|class| peer.receivers[class.index()].may_piggyback());
        // What cannot ride along has no claim on later frames before more has come.
        peer.may_owe_acks = class.is_some();
        let class = class?;
        let operation = peer.acknowledged_operation(class);
        let receiver = &mut peer.receivers[class.index()];
        receiver.acknowledge(&mut self.bitmap);
        Some(PiggybackAck { class, psn: receiver.expected(), operation })
    }

    /// Cut the next packet from the long transfers of a stream, if the window is open and nothing else waits.
    fn cut_bulk(&mut self, peer: &mut Peer, class: Class) {
        let sender = &peer.senders[class.index()];
        if sender.next().is_some() || !sender.window_open() {
            return;
        }
        while let Some(bulk) = peer.bulk[class.index()].front().copied() {
            let is_over = match bulk {
                Bulk::Put { .. } => self.cut_put(peer, class, bulk),
                Bulk::Get { group, target, into } => {
                    let request = Operation::Get { offset: target.offset, length: into.length as u32 };
                    let sender = &mut peer.senders[class.index()];
                    let number = sender.append(Some((target.region, target.key)), &request);
                    let kind =
                        ReplyKind::Bytes { region: into.region, offset: into.offset, length: into.length };
                    let wait = ReplyWait { number, group, kind, missing: into.length, is_over: false };
                    peer.outstanding[class.index()].expect_reply(wait);
                    true
                }
                Bulk::Pull { group, offer, into } => {
                    let request = Operation::Pull { offer, length: into.length as u32 };
                    let number = peer.senders[class.index()].append(None, &request);
                    let kind =
                        ReplyKind::Bytes { region: into.region, offset: into.offset, length: into.length };
                    let wait = ReplyWait { number, group, kind, missing: into.length, is_over: false };
                    peer.outstanding[class.index()].expect_reply(wait);
                    peer.pulls.push((number, offer, into.length));
                    true
                }
                Bulk::GetData { .. } => self.cut_get_data(peer, class, bulk),
            };
            if is_over {
                peer.bulk[class.index()].pop_front();
                if class == Class::Bulk {
                    peer.bulk_cut += 1;
                }
            }
            if peer.senders[class.index()].next().is_some() {
                return;
            }
        }
    }

    /// Cut one packet of a put. True when the put is wholly in packets.
    fn cut_put(&mut self, peer: &mut Peer, class: Class, bulk: Bulk) -> bool {
        let Bulk::Put { group, target, source, signal, position, first, error } = bulk else { return true };
        let is_gone = source.length > 0 && !self.regions.holds(source.region, source.offset, source.length);
        if let Some(error) = error.or(is_gone.then_some(OperationError::MemoryFailed)) {
            // What is in flight already is answered for: the put ends once it has been.
            return self.abandon_put(peer, class, group, first, error);
        }
        let length = (source.length - position).min(self.segment_bytes());
        let sender = &mut peer.senders[class.index()];
        let mut last = sender.next_operation();
        let first = first.unwrap_or(last);
        if source.length > 0 {
            last = cut_segment(sender, target, source, position, length);
        }
        let position = position + length;
        if position < source.length {
            if let Some(Bulk::Put { position: slot, first: first_slot, .. }) =
                peer.bulk[class.index()].front_mut()
            {
                *slot = position;
                *first_slot = Some(first);
            }
            return false;
        }
        if let Some(signal) = signal {
            let update = Operation::Signal { offset: signal.offset, kind: signal.kind, value: signal.value };
            last = sender.append_after_payload((signal.region, signal.key), &update);
        }
        let wait = VisibleWait { first, last, group: Some(group), error: None };
        peer.outstanding[class.index()].visible.push_back(wait);
        true
    }

    fn abandon_put(
        &mut self,
        peer: &mut Peer,
        class: Class,
        group: crate::operation::groups::GroupId,
        first: Option<u32>,
        error: OperationError,
    ) -> bool {
        let next = peer.senders[class.index()].next_operation();
        match first {
            Some(first) if peer.senders[class.index()].visible() != next => {
                let last = next.wrapping_sub(1);
                let wait = VisibleWait { first, last, group: Some(group), error: Some(error) };
                peer.outstanding[class.index()].visible.push_back(wait);
            }
            _ => self.end_part(group, Err(error)),
        }
        true
    }

    /// Cut one packet of get data. True when the data is wholly in packets, or can no longer be had.
    fn cut_get_data(&mut self, peer: &mut Peer, class: Class, bulk: Bulk) -> bool {
        let Bulk::GetData { operation, region, offset, length, position } = bulk else { return true };
        if !self.regions.holds(region, offset, length) {
            self.refuse(peer, Class::Bulk, operation, region, OperationError::Revoked);
            return true;
        }
        let part = (length - position).min(self.segment_bytes());
        let source = PayloadSource {
            region,
            offset: offset + position,
            length: part as usize,
            split: 0,
            answers: Some(operation),
        };
        peer.senders[class.index()].append_gathered(None, source, |body| {
            get_data_header(body, operation, position as u32, part as usize);
        });
        if let Some(Bulk::GetData { position: slot, .. }) = peer.bulk[class.index()].front_mut() {
            *slot = position + part;
        }
        position + part >= length
    }
}

enum Sending {
    Sent(Transmit),
    /// No credits; the stream stays first in line.
    Stalled,
    /// The stream has nothing to send after all.
    Nothing,
}

fn cut_segment(
    sender: &mut crate::transport::sender::Sender,
    target: RemoteAddress,
    source: LocalRange,
    position: u64,
    length: u64,
) -> u32 {
    let payload = PayloadSource {
        region: source.region,
        offset: source.offset + position,
        length: length as usize,
        split: 0,
        answers: None,
    };
    sender.append_gathered(Some((target.region, target.key)), payload, |body| {
        put_header(body, target.offset.wrapping_add(position), target.offset, source.length, length as usize);
    })
}

/// Put a packet's operations behind the fabric header, leaving a gap for payload that is gathered.
fn place_packet(packet: &crate::transport::packet::Packet, out: &mut [u8]) -> Body {
    let Some(source) = packet.source else {
        out[OPERATIONS..OPERATIONS + packet.body.len()].copy_from_slice(&packet.body);
        return Body::Written;
    };
    let at = OPERATIONS + source.split;
    out[OPERATIONS..at].copy_from_slice(&packet.body[..source.split]);
    let rest = at + source.length;
    out[rest..rest + packet.body.len() - source.split].copy_from_slice(&packet.body[source.split..]);
    Body::Memory { region: source.region, offset: source.offset, at, length: source.length }
}
