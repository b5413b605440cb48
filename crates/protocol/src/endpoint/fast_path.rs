//! Fast path for the usual frame: the next packet of a stream, with a predicted header and only writes to one region.
//!
//! If memory answers at once, such a frame is finished during the call: it needs no lease, no memory request and no
//! entry among served operations. Everything is checked before anything is changed, so that any other frame can still
//! take the general path. The outcome must be that of the general path; `tests/fast_path.rs` verifies this.
//!
//! Frames that only acknowledge are recognised alike, unless they report a gap. Refusals and gaps are not handled
//! here.

use alloc::boxed::Box;

use crate::contract::DirectMemory;
use crate::endpoint::Endpoint;
use crate::endpoint::headers::KnownHeader;
use crate::endpoint::operations::memory_queue::Purpose;
use crate::endpoint::operations::serving::pending;
use crate::endpoint::peer::Peer;
use crate::event::Event;
use crate::ids::{Class, NodeId, PortId, RegionId, Tenant};
use crate::memory::regions::{Caller, Need};
use crate::memory::{FrameRange, LeaseId};
use crate::time::Instant;
use crate::transport::sender::AckReport;
use crate::transport::settings::is_short;
use crate::wire::acks::plain_acks;
use crate::wire::frame::{Frame, FrameKind};
use crate::wire::header_prediction::{FixedFields, Numbers};
use crate::wire::layout::{CLASS, FABRIC, OPERATIONS, SOURCE, TENANT, u16_at};
use crate::wire::writes::Writes;

/// Usual packet, completely checked.
struct Packet {
    class: Class,
    numbers: Numbers,
    region: RegionId,
    /// Length of the frame without padding, in bytes.
    length: usize,
    /// Position of its first range among the collected ranges.
    mark: usize,
}

impl Packet {
    /// Returns the number of its first operation, and the number after its last.
    #[inline]
    fn operations(&self) -> (u32, u32) {
        let (first, count) = (self.numbers.first_operation, u32::from(self.numbers.operation_count));
        (first, first.wrapping_add(count))
    }
}

impl Endpoint {
    /// Handles a frame if it is a usual one, with a memory request. Returns false if nothing was changed.
    #[inline]
    pub(super) fn take_fast_path(
        &mut self,
        now: Instant,
        port: PortId,
        lease: LeaseId,
        bytes: &[u8],
    ) -> bool {
        self.take_recognised(port, bytes, |endpoint, peer, packet| {
            endpoint.accept_packet(now, port, bytes.len(), packet, peer);
            let Packet { class, region, mark, .. } = *packet;
            let (first, end) = packet.operations();
            let purpose = Purpose::Visible { class, first, end };
            endpoint.memory.write(pending(peer, region, purpose), lease, mark);
            let stream = peer.streams.of_mut(class);
            stream.serving_from = first;
            stream.serve(end, false);
            endpoint.note_ack_due(class, peer);
            true
        })
    }

    // W-15
    /// Handles a frame if it is a usual one and memory can execute it now: no earlier request is outstanding, and no
    /// operation waits for a word in the region. Returns false if nothing was changed, except bytes that will be
    /// written again.
    pub(super) fn take_fast_path_at_once(
        &mut self,
        now: Instant,
        port: PortId,
        bytes: &[u8],
        memory: &mut dyn DirectMemory,
    ) -> bool {
        if FrameKind::peek(bytes) == Some(FrameKind::Ack) {
            return self.take_plain_acks(now, port, bytes);
        }
        if !self.memory.is_idle() {
            return false;
        }
        self.take_recognised(port, bytes, |endpoint, peer, packet| {
            let Packet { class, region, mark, .. } = *packet;
            let is_free = !peer.streams.of(class).is_serving()
                && !endpoint.words.iter().any(|wait| wait.region == region);
            let is_written =
                is_free && memory.write_at_once(region, endpoint.memory.ranges_since(mark), bytes);
            endpoint.memory.forget(mark);
            if is_written {
                endpoint.accept_packet(now, port, bytes.len(), packet, peer);
                let (_, end) = packet.operations();
                let stream = peer.streams.of_mut(class);
                stream.serving_from = end;
                stream.receiver.visible = end;
                endpoint.note_ack_due(class, peer);
            }
            is_written
        })
    }

    /// Handles a frame that only acknowledges and reports no gap or mark.
    fn take_plain_acks(&mut self, now: Instant, port: PortId, bytes: &[u8]) -> bool {
        self.with_source(bytes, |endpoint, header, peer| {
            let known = peer.ack_headers.known();
            if !known.is_some_and(|known| endpoint.is_predicted(known, port, header)) {
                return None;
            }
            let numbers = Numbers::read(header)?;
            let acks = plain_acks(bytes.get(OPERATIONS..FABRIC + usize::from(numbers.length))?)?;
            endpoint.forwarder.note_predicted_ack(port, bytes.len(), &numbers);
            for ack in acks.into_iter().flatten() {
                endpoint.take_ack(now, peer, ack, AckReport::default());
            }
            Some(())
        })
    }

    #[inline(always)]
    fn take_recognised(
        &mut self,
        port: PortId,
        bytes: &[u8],
        carry_out: impl FnOnce(&mut Self, &mut Box<Peer>, &Packet) -> bool,
    ) -> bool {
        if self.keeps_buffers_back() {
            return false;
        }
        self.with_source(bytes, |endpoint, header, peer| {
            // Read in place: a copy as a whole would wait for its fields.
            let recognised = endpoint.recognise(port, header, bytes, peer);
            carry_out(endpoint, peer, recognised.as_ref()?).then_some(())
        })
    }

    /// Calls `act` with a header and the peer that it names as its source. Returns its result.
    #[inline(always)]
    fn with_source(
        &mut self,
        bytes: &[u8],
        act: impl FnOnce(&mut Self, &[u8; OPERATIONS], &mut Box<Peer>) -> Option<()>,
    ) -> bool {
        let Some(header) = bytes.first_chunk::<OPERATIONS>() else { return false };
        // The neighbour may still write to the original (shared memory), so only this copy is used.
        let header = *header;
        let source = usize::from(u16_at(&header, SOURCE));
        let Some(mut peer) = self.peers.get_mut(source).and_then(Option::take) else { return false };
        let is_done = act(self, &header, &mut peer).is_some();
        self.peers[source] = Some(peer);
        if is_done {
            self.end_flushes();
        }
        is_done
    }

    /// Returns true if a header is like a checked one, and the settings of that check have not changed.
    #[inline]
    fn is_predicted(&self, known: &KnownHeader, port: PortId, header: &[u8; OPERATIONS]) -> bool {
        known.port == port && self.forwarder.still_trusts(known.trust) && known.header.is_like(header)
    }

    fn recognise(
        &mut self,
        port: PortId,
        header: &[u8; OPERATIONS],
        bytes: &[u8],
        peer: &Peer,
    ) -> Option<Packet> {
        let class = Class::from_number(header[CLASS])?;
        let stream = peer.streams.get(class)?;
        let known = stream.headers.known()?;
        if !self.is_predicted(known, port, header) {
            return None;
        }
        let numbers = Numbers::read(header)?;
        let length = FABRIC + usize::from(numbers.length);
        let list = bytes.get(OPERATIONS..length)?;
        let continues = stream.receiver.continues(numbers.psn)
            && stream.continues(numbers.first_operation)
            && !self.bounds.is_full(stream.not_yet_visible());
        if !continues {
            return None;
        }
        let mark = self.memory.mark();
        let caller = Caller { node: NodeId(u16_at(header, SOURCE)), tenant: Tenant(u16_at(header, TENANT)) };
        let region = self.collect_writes(list, caller, numbers.operation_count);
        if region.is_none() {
            self.memory.forget(mark);
        }
        Some(Packet { class, numbers, region: region?, length, mark })
    }

    // W-12, W-13
    /// Collects the ranges of a list of `count` permitted writes to one region. Returns `None` for any other list.
    fn collect_writes(&mut self, list: &[u8], caller: Caller, count: u8) -> Option<RegionId> {
        let mut writes = Writes::of(list)?;
        let region = writes.region;
        let granted = self.regions.grant(region, writes.key, caller, Need::Write).ok()?;
        let mut found = 0_u32;
        while !writes.is_over() {
            let write = writes.take()?;
            let length = write.length as u64;
            let is_within = write.offset >= write.start
                && write.offset.checked_add(length)? <= write.start.checked_add(write.total)?
                && granted.holds(write.start, write.total);
            if !is_within {
                return None;
            }
            if length > 0 {
                let frame_offset = (OPERATIONS + write.at) as u32;
                let region_offset = write.offset;
                self.memory.add_range(FrameRange { frame_offset, length: length as u32, region_offset });
            }
            found += 1;
        }
        (found > 0 && found == u32::from(count)).then_some(region)
    }

    /// Records the acknowledgement and credits of a packet, which arrived on `port` in `received` bytes.
    #[inline]
    fn accept_packet(
        &mut self,
        now: Instant,
        port: PortId,
        received: usize,
        packet: &Packet,
        peer: &mut Box<Peer>,
    ) {
        let (class, numbers) = (packet.class, &packet.numbers);
        self.forwarder.note_predicted(port, received, packet.length, numbers);
        if let Some(ack) = numbers.ack {
            self.take_ack(now, peer, ack, AckReport::default());
        }
        peer.streams.of_mut(class).receiver.accept(now, numbers.ack_now);
        self.note_demand(now, peer, class, numbers.psn, numbers.demand);
        if let Some(scope) = peer.order_oracle.see_number(class, numbers.psn) {
            let (source, number) = (peer.node, numbers.psn);
            self.forwarder.push_event(Event::OrderBroken { source, class, scope, number });
        }
    }

    /// Stores the header of a checked frame that only acknowledges, to predict the next one, if any of our streams is
    /// long.
    pub(super) fn store_ack_header(&self, port: PortId, frame: &Frame<'_>, peer: &mut Peer) {
        if peer.streams.iter().any(|(_, stream)| !is_short(stream.sender.base())) {
            peer.ack_headers.set_known(self.known_header(port, frame));
        }
    }

    /// Stores the header of a checked frame of this class that was next in its stream, to predict the next one, if the
    /// stream is long.
    pub(super) fn store_header(&self, port: PortId, class: Class, frame: &Frame<'_>, peer: &mut Peer) {
        // Replies are never writes by others, and if packets may be executed early, more than their numbers matters.
        let is_request = matches!(class, Class::Request | Class::Bulk);
        let may_take_fast_path = is_request && !self.config().paths.takes_early();
        let stream = peer.streams.of_mut(class);
        if may_take_fast_path && !is_short(stream.receiver.expected()) {
            stream.headers.set_known(self.known_header(port, frame));
        }
    }

    /// Returns the header of a checked frame, if the next one can be predicted from it.
    fn known_header(&self, port: PortId, frame: &Frame<'_>) -> Option<KnownHeader> {
        let trust = self.forwarder.trust(port)?;
        let header = FixedFields::of(frame.bytes().first_chunk()?)?;
        Some(KnownHeader { header, port, trust })
    }
}
