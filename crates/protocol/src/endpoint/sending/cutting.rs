//! Cutting of long transfers into packets, only when the window has space for them.

use crate::endpoint::Endpoint;
use crate::endpoint::peer::Peer;
use crate::endpoint::stream::Stream;
use crate::error::OperationError;
use crate::ids::Class;
use crate::operation::bulk::Bulk;
use crate::operation::groups::GroupId;
use crate::operation::outstanding::{ReplyKind, ReplyWait, VisibleWait, Waiting};
use crate::operation::{LocalRange, RemoteAddress, Signal};
use crate::transmit::Following;
use crate::transport::packet::PayloadSource;
use crate::transport::sender::Sender;
use crate::wire::layout::OPERATIONS;
use crate::wire::packed::{Operation, PUT_BYTES, SELECT_BYTES, get_data_header, put_header};

impl Endpoint {
    /// Number of payload bytes in one packet of a long transfer: the capacity of a frame, in multiples of 256.
    pub(in crate::endpoint) fn segment_bytes(&self) -> u64 {
        let payload_bytes_max =
            usize::from(self.config().frame_bytes_max) - OPERATIONS - SELECT_BYTES - PUT_BYTES;
        (if payload_bytes_max >= 256 { payload_bytes_max / 256 * 256 } else { payload_bytes_max }) as u64
    }

    /// Cuts the next packet from the long transfers of a stream, if the window is open and nothing else waits.
    pub(in crate::endpoint) fn cut_bulk(&mut self, peer: &mut Peer, class: Class) {
        let sender = &peer.streams.of(class).sender;
        if sender.next().is_some() || !sender.window_open() {
            return;
        }
        while let Some(bulk) = peer.streams.of(class).bulk.front().copied() {
            let is_over = match bulk {
                Bulk::Put { .. } => self.cut_put(peer, class, bulk),
                Bulk::Get { group, target, into } => {
                    let request = Operation::Get { offset: target.offset, length: into.length as u32 };
                    let Stream { sender, outstanding, .. } = peer.streams.of_mut(class);
                    let number = sender.append(Some((target.region, target.key)), &request);
                    let kind =
                        ReplyKind::Bytes { region: into.region, offset: into.offset, length: into.length };
                    let wait = ReplyWait { number, group, kind, missing: into.length, is_over: false };
                    outstanding.expect_reply(wait);
                    true
                }
                Bulk::Pull { group, offer, into } => {
                    let request = Operation::Pull { offer, length: into.length as u32 };
                    let Stream { sender, outstanding, .. } = peer.streams.of_mut(class);
                    let number = sender.append(None, &request);
                    let kind =
                        ReplyKind::Bytes { region: into.region, offset: into.offset, length: into.length };
                    let wait = ReplyWait { number, group, kind, missing: into.length, is_over: false };
                    outstanding.expect_reply(wait);
                    peer.seldom_mut().pulls.push((number, offer, into.length));
                    true
                }
                Bulk::GetData { .. } => self.cut_get_data(peer, class, bulk),
            };
            if is_over {
                peer.streams.of_mut(class).pop_bulk();
                if class == Class::Bulk {
                    peer.bulk_cut += 1;
                    peer.note_cut(bulk);
                }
            }
            if peer.streams.of(class).sender.next().is_some() {
                return;
            }
        }
    }

    /// Cuts one packet of a put. Returns true if all of the put is in packets.
    fn cut_put(&mut self, peer: &mut Peer, class: Class, bulk: Bulk) -> bool {
        let Bulk::Put { group, target, source, signal, position, first, error, transfer } = bulk else {
            return true;
        };
        let is_gone = source.length > 0 && !self.regions.holds(source.region, source.offset, source.length);
        if let Some(error) = error.or(is_gone.then_some(OperationError::MemoryFailed)) {
            // Packets in flight are still accounted for: the put ends after them.
            return self.abandon_put(peer, class, group, first, error);
        }
        assert!(position <= source.length, "a put is cut beyond its end");
        let length = (source.length - position).min(self.segment_bytes());
        let transfer = self.name_transfer(position, transfer);
        let Stream { sender, outstanding, bulk, .. } = peer.streams.of_mut(class);
        let mut last = sender.next_operation();
        let first = first.unwrap_or(last);
        if source.length > 0 {
            last = cut_segment(sender, target, source, position, length, transfer);
        }
        let position = position + length;
        if position < source.length {
            if let Some(Bulk::Put { position: slot, first: first_slot, transfer: name, .. }) =
                bulk.front_mut()
            {
                *slot = position;
                *first_slot = Some(first);
                *name = transfer;
            }
            return false;
        }
        if let Some(signal) = signal {
            let counted = if source.length > 0 { last.wrapping_sub(first).wrapping_add(1) } else { 0 };
            let Signal { offset, kind, value, .. } = signal;
            let update = Operation::Signal { offset, kind, value, counted };
            last = sender.append_after_payload((signal.region, signal.key), &update);
        }
        let wait = VisibleWait { first, last, command: Waiting::Part(group), error: None };
        outstanding.expect_visible(wait);
        true
    }

    /// Returns the identifier of a transfer of which `position` bytes are in packets: a new one at its beginning.
    /// Identifiers repeat after 2^32 transfers.
    fn name_transfer(&mut self, position: u64, known: u32) -> u32 {
        if position > 0 {
            return known;
        }
        self.transfers = self.transfers.checked_add(1).unwrap_or(1);
        self.transfers
    }

    fn abandon_put(
        &mut self,
        peer: &mut Peer,
        class: Class,
        group: GroupId,
        first: Option<u32>,
        error: OperationError,
    ) -> bool {
        let Stream { sender, outstanding, .. } = peer.streams.of_mut(class);
        let next = sender.next_operation();
        match first {
            Some(first) if sender.visible() != next => {
                let last = next.wrapping_sub(1);
                let wait = VisibleWait { first, last, command: Waiting::Part(group), error: Some(error) };
                outstanding.expect_visible(wait);
            }
            _ => self.end_part(group, Err(error)),
        }
        true
    }

    /// Cuts one packet of get data. Returns true if all data is in packets, or can no longer be read.
    fn cut_get_data(&mut self, peer: &mut Peer, class: Class, bulk: Bulk) -> bool {
        let Bulk::GetData { operation, region, offset, length, position, transfer } = bulk else {
            return true;
        };
        if !self.regions.holds(region, offset, length) {
            self.refuse(peer, Class::Bulk, operation, region, OperationError::Revoked);
            return true;
        }
        assert!(position <= length, "the data of a get is cut beyond its end");
        let part = (length - position).min(self.segment_bytes());
        let transfer = self.name_transfer(position, transfer);
        let source = PayloadSource {
            region,
            offset: offset + position,
            length: part as usize,
            split: 0,
            answers: Some(operation),
            following: following(transfer, length - position - part),
        };
        let Stream { sender, bulk, .. } = peer.streams.of_mut(class);
        sender.append_gathered(None, source, |body| {
            get_data_header(body, operation, position as u32, part as usize);
        });
        if let Some(Bulk::GetData { position: slot, transfer: name, .. }) = bulk.front_mut() {
            *slot = position + part;
            *name = transfer;
        }
        position + part >= length
    }
}

/// Returns the bytes that are cut later, limited to the range of the field.
fn following(transfer: u32, bytes: u64) -> Following {
    Following { transfer, bytes: u32::try_from(bytes).unwrap_or(u32::MAX) }
}

fn cut_segment(
    sender: &mut Sender,
    target: RemoteAddress,
    source: LocalRange,
    position: u64,
    length: u64,
    transfer: u32,
) -> u32 {
    let payload = PayloadSource {
        region: source.region,
        offset: source.offset + position,
        length: length as usize,
        split: 0,
        answers: None,
        following: following(transfer, source.length - position - length),
    };
    sender.append_gathered(Some((target.region, target.key)), payload, |body| {
        put_header(body, target.offset.wrapping_add(position), target.offset, source.length, length as usize);
    })
}
