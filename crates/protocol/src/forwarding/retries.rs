//! Link-level retry at the ports of a member: frames that are numbered and kept, judged, requested and replayed.
//!
//! The rules are in [`crate::link::retry`]. This file connects them with headers, credits and counters.

use super::departures::Numbers;
use super::forwarder::Forwarder;
use crate::event::{DropReason, Event};
use crate::ids::{Channel, PortId};
use crate::link::retry::buffer::KeptFrame;
use crate::link::retry::receiver::Arrival;
use crate::time::Instant;
use crate::transmit::{Body, Passage, Transmit};
use crate::wire::control::{CONSUMED_BYTES, NUMBERING_BYTES, consumed_beside, numbering};
use crate::wire::frame::{Frame, FrameKind};
use crate::wire::layout::{CHANNEL, FABRIC, FREED, LINK_ACK, put_u32};
use crate::wire::seal_hop;

impl Forwarder {
    // ---- frames in -------------------------------------------------------------------------------------------------

    // W-26
    /// Returns true if a routed frame is the next one of the neighbour. Also handles the acknowledgement that it
    /// carries.
    pub(super) fn judge_repeated(
        &mut self,
        now: Instant,
        port: PortId,
        frame: &Frame<'_>,
    ) -> Result<(), DropReason> {
        let (link, counters) = (&mut self.links[port.index()], &mut self.counters[port.index()]);
        let Some(retry) = &mut link.retry else { return Ok(()) };
        let header = &frame.link;
        retry.sender.receive_ack(now, header.link_ack);
        if !header.is_unprotected {
            let bytes = frame.bytes().len();
            match retry.receiver.judge(now, header.sequence, bytes, &mut counters.retry) {
                Arrival::InOrder => {}
                Arrival::Duplicate => return Err(DropReason::LinkDuplicate),
                Arrival::OutOfSequence => return Err(DropReason::LinkOutOfSequence),
            }
        }
        if header.kind == FrameKind::Data {
            let credits = link.credits_mut(header.channel);
            credits.count_arrival(credits.cost(frame.bytes().len()));
        }
        // W-29
        link.credits_mut(header.channel).update_consumed(header.consumed);
        Ok(())
    }

    /// Handles a frame of the neighbour's retry. Ignored if the link has no retry or carries no data.
    pub(super) fn take_retry(
        &mut self,
        now: Instant,
        port: PortId,
        frame: &Frame<'_>,
    ) -> Result<(), DropReason> {
        let (link, counters) = (&mut self.links[port.index()], &mut self.counters[port.index()].retry);
        if !link.state().carries_data() {
            return Err(DropReason::LinkDown);
        }
        let Some(retry) = &mut link.retry else { return Err(DropReason::Malformed) };
        let header = &frame.link;
        match header.kind {
            FrameKind::LinkAck => {
                counters.rx_ack += 1;
                retry.sender.receive_ack(now, header.link_ack);
            }
            FrameKind::LinkNack => {
                counters.rx_nack += 1;
                if let Some(given_up) = retry.sender.receive_nack(now, header.link_ack, counters) {
                    self.note_flush(port, given_up);
                }
            }
            FrameKind::LinkInit => {
                let name = numbering(frame.body()).ok_or(DropReason::Malformed)?;
                let others = link.accounts.count() - 1;
                retry.sender.replay_now(now);
                if retry.receiver.receive_init(name, header.sequence) {
                    // Frames that were flushed at the neighbour are consumed and will not arrive.
                    link.credits_mut(Channel(0)).update_consumed(header.consumed);
                    for (channel, consumed) in (1..).zip(consumed_beside(frame.body())).take(others) {
                        link.credits_mut(Channel(channel)).update_consumed(consumed);
                    }
                }
            }
            FrameKind::LinkInitEcho => {
                retry.sender.receive_echo(numbering(frame.body()).ok_or(DropReason::Malformed)?);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn handle_retry_timeout(&mut self, now: Instant, port: PortId) {
        let counters = &mut self.counters[port.index()].retry;
        let Some(retry) = &mut self.links[port.index()].retry else { return };
        if let Some(given_up) = retry.sender.handle_time(now, counters) {
            self.note_flush(port, given_up);
        }
    }

    fn note_flush(&mut self, port: PortId, given_up: usize) {
        self.push_event(Event::LinkFlushed { port, frames: given_up as u32 });
    }

    // ---- frames out ------------------------------------------------------------------------------------------------

    /// Numbers a routed frame that leaves on a link with retry. A discarded frame costs no credits.
    pub(super) fn number_repeatable(
        &mut self,
        port: PortId,
        channel: Channel,
        is_data: bool,
        length: usize,
    ) -> Numbers {
        let (link, counters) = (&mut self.links[port.index()], &mut self.counters[port.index()]);
        let cost = if is_data { link.credits(channel).cost(length) } else { 0 };
        let (sequence, passage) = match &mut link.retry {
            Some(retry) => retry.sender.number(length, &mut counters.retry),
            None => (0, Passage::Plain),
        };
        let consumed = match passage {
            Passage::Discarded => link.credits(channel).consumed(),
            _ => link.accounts.consume(channel, cost),
        };
        if let Some(retry) = &mut link.retry
            && passage != Passage::Discarded
        {
            retry.receiver.acknowledge();
        }
        Numbers { channel, sequence, consumed, is_numbered: true, passage, is_marked: false }
    }

    /// Records that a numbered frame is complete. `is_kept` is true if the device keeps a copy.
    pub fn keep_sent(&mut self, now: Instant, port: PortId, frame: &mut [u8], is_kept: bool) {
        seal_hop(frame);
        if let Some(retry) = &mut self.links[port.index()].retry {
            retry.sender.keep(now, frame, is_kept);
        }
    }

    /// Number of frames that may have to be replayed, or `None` without retry.
    pub fn repeatable(&self, port: PortId) -> Option<usize> {
        self.links[port.index()].retry.as_ref().map(|retry| retry.sender.outstanding_frames())
    }

    /// Returns the next frame of retry itself, or the next replayed frame.
    pub(super) fn transmit_retry(&mut self, now: Instant, port: PortId, out: &mut [u8]) -> Option<Transmit> {
        let counters = &mut self.counters[port.index()].retry;
        let retry = self.links[port.index()].retry.as_mut()?;
        if retry.sender.init_is_due(now) {
            counters.tx_init += 1;
            let name = retry.sender.send_init(now);
            return Some(self.transmit_numbering(port, out, FrameKind::LinkInit, name));
        }
        if let Some(name) = retry.receiver.take_echo() {
            return Some(self.transmit_numbering(port, out, FrameKind::LinkInitEcho, name));
        }
        if retry.receiver.take_refusal() {
            counters.tx_nack += 1;
            retry.receiver.acknowledge();
            return Some(self.finish_control(port, Channel(0), out, FrameKind::LinkNack, 0, true));
        }
        let KeptFrame { length, behind } = retry.sender.next_replayed(now, out, counters)?;
        let body = behind.map_or(Body::Written, |behind| Body::Kept { behind });
        let passage = Passage::Repeated;
        Some(Transmit { length, body, end_to_end_check: false, doorbell: true, passage })
    }

    // W-45
    /// Sends a separate acknowledgement, if no routed frame, which would carry it, could leave before.
    pub fn transmit_link_ack(&mut self, now: Instant, port: PortId, out: &mut [u8]) -> Option<Transmit> {
        let link = &mut self.links[port.index()];
        let carries = link.state().carries_data();
        let retry = link.retry.as_mut()?;
        if !carries || !retry.receiver.ack_due(now) {
            return None;
        }
        self.counters[port.index()].retry.tx_ack += 1;
        retry.receiver.acknowledge();
        Some(self.finish_control(port, Channel(0), out, FrameKind::LinkAck, 0, true))
    }

    fn transmit_numbering(&mut self, port: PortId, out: &mut [u8], kind: FrameKind, name: u32) -> Transmit {
        put_u32(out, FABRIC, name);
        let mut length = NUMBERING_BYTES;
        if kind == FrameKind::LinkInit {
            // The header carries the counters of the first channel.
            for channel in self.channels(port).skip(1) {
                put_u32(out, FABRIC + length, self.links[port.index()].credits(channel).consumed());
                length += CONSUMED_BYTES;
            }
        }
        self.finish_control(port, Channel(0), out, kind, length, true)
    }

    // W-28
    /// Updates a kept frame that is replayed: its number and credits stay, the fields of the other direction are new.
    pub fn refresh_sent(&mut self, port: PortId, out: &mut [u8]) {
        let link = &mut self.links[port.index()];
        if let Some(retry) = &mut link.retry {
            put_u32(out, LINK_ACK, retry.receiver.acknowledge());
        }
        put_u32(out, FREED, link.credits_mut(Channel(out[CHANNEL])).announce());
        seal_hop(out);
        let is_data = FrameKind::peek(out) == Some(FrameKind::Data);
        self.count_sent(port, out.len(), is_data);
    }
}
