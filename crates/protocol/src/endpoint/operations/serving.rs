//! Remote requests: permission checks, memory requests, answers.
//!
//! Consecutive writes to one region become one memory request. Memory requests are issued in stream order, so a load
//! reads all stores before it and none after it.

use crate::endpoint::Endpoint;
use crate::endpoint::operations::memory_queue::{Pending, Purpose};
use crate::endpoint::peer::{Peer, RefusalHold};
use crate::error::OperationError;
use crate::event::Event;
use crate::ids::{Class, Key, RegionId};
use crate::link::credits::is_ahead;
use crate::memory::regions::{Caller, Need};
use crate::memory::{FrameRange, LeaseId, MemoryDone, MemoryToken};
use crate::operation::Atomic;
use crate::operation::bulk::Bulk;
use crate::operation::messages::{Content, Unexpected, eager_cost};
use crate::time::Instant;
use crate::wire::frame::FabricHeader;
use crate::wire::layout::OPERATIONS;
use crate::wire::packed::{Operation, Operations};
use crate::wire::writes::Write;

/// Writes to one region that become one request.
#[derive(Clone, Copy)]
struct Batch {
    region: RegionId,
    mark: usize,
    first: u32,
    end: u32,
}

/// Packet being executed.
struct Service {
    lease: LeaseId,
    class: Class,
    caller: Caller,
    selected: (RegionId, Key),
    batch: Option<Batch>,
    /// True if an operation completed at once that may make this node send. Answers of memory handle this themselves.
    may_send: bool,
}

impl Endpoint {
    // W-15
    pub(in crate::endpoint) fn serve_packet(
        &mut self,
        lease: LeaseId,
        header: &FabricHeader,
        operations: &[u8],
        peer: &mut Peer,
    ) {
        let class = header.class;
        peer.streams.of_mut(class).serving_from = header.first_operation;
        let nothing = (RegionId(u32::MAX), Key(0));
        let (caller, batch) = (Caller { node: header.source, tenant: header.tenant }, None);
        let mut service = Service { lease, class, caller, selected: nothing, batch, may_send: false };
        let mut number = header.first_operation;
        let mut reader = Operations::new(operations);
        while let Some(Ok(operation)) = reader.next() {
            if let Operation::Select { region, key } = operation {
                service.selected = (region, key);
                continue;
            }
            self.serve_operation(&mut service, peer, number, &operation, reader.position());
            number = number.wrapping_add(1);
        }
        self.close_batch(&mut service, peer);
        if matches!(class, Class::Reply | Class::BulkReply) {
            peer.serve(class, number, true);
        }
        if service.may_send {
            for class in Class::ALL {
                self.queue_data(peer, class);
            }
        }
    }

    /// Executes one operation of a packet, which ends at `position` of the list.
    fn serve_operation(
        &mut self,
        service: &mut Service,
        peer: &mut Peer,
        number: u32,
        operation: &Operation<'_>,
        position: usize,
    ) {
        let end_of_payload = (OPERATIONS + position) as u32;
        let is_request = matches!(service.class, Class::Request | Class::Bulk);
        service.may_send |= !matches!(operation, Operation::Store { .. } | Operation::Put { .. });
        let result = match *operation {
            Operation::Store { offset, data } if is_request => {
                let (start, total, length) = (offset, data.len() as u64, data.len());
                let at = position - length;
                self.serve_write(service, peer, number, Write { offset, start, total, at, length })
            }
            Operation::Put { offset, start, total, data } if is_request => {
                let (at, length) = (position - data.len(), data.len());
                self.serve_write(service, peer, number, Write { offset, start, total, at, length })
            }
            Operation::Load { offset, length } if is_request => {
                self.serve_load(service, peer, number, offset, length)
            }
            Operation::Atomic { offset, atomic } if is_request => {
                self.serve_atomic(service, peer, number, offset, atomic)
            }
            Operation::Signal { offset, kind, value, counted } if is_request => {
                self.serve_signal(service, peer, number, counted, offset, kind.atomic(value))
            }
            Operation::Message { tag, data } if is_request => {
                let length = data.len() as u64;
                let frame_offset = end_of_payload - data.len() as u32;
                let content = Content::Eager { lease: service.lease, frame_offset };
                self.serve_message(
                    service,
                    peer,
                    Unexpected { source: peer.node, tag, length, number, content },
                );
                return;
            }
            Operation::Offer { tag, length } if is_request => {
                let (length, content) = (u64::from(length), Content::Offered);
                self.serve_message(
                    service,
                    peer,
                    Unexpected { source: peer.node, tag, length, number, content },
                );
                return;
            }
            Operation::Pull { offer, length } if is_request => {
                self.close_batch(service, peer);
                let result = self.serve_pull(peer, number, offer, length);
                if result.is_ok() {
                    peer.serve(service.class, number.wrapping_add(1), true);
                }
                result
            }
            Operation::Received { operation, cost } if !is_request => {
                self.take_received(peer, operation, cost);
                return;
            }
            Operation::Get { offset, length } if is_request => {
                self.serve_get(service, peer, number, offset, length)
            }
            Operation::LoadReply { operation, data } if !is_request => {
                let request = request_class(service.class);
                self.take_bytes(service.lease, peer, request, operation, 0, data.len(), end_of_payload);
                return;
            }
            Operation::GetData { operation, position, data } if !is_request => {
                let request = request_class(service.class);
                self.take_bytes(
                    service.lease,
                    peer,
                    request,
                    operation,
                    position,
                    data.len(),
                    end_of_payload,
                );
                return;
            }
            Operation::AtomicReply { operation, value } if !is_request => {
                self.take_value(peer, request_class(service.class), operation, value);
                return;
            }
            Operation::Void { length, .. } if is_request => {
                self.serve_void(service, peer, number, length);
                return;
            }
            // Requested data that the peer could not read.
            Operation::Void { field, .. } => {
                let code = OperationError::SourceFailed.wire_code().unwrap_or(0);
                self.take_refusal(peer, request_class(service.class), field as u32, code);
                return;
            }
            Operation::Refusal { operation, class, code } if !is_request => {
                self.take_refusal(peer, class, operation, code);
                return;
            }
            _ => Err(OperationError::PermissionDenied),
        };
        if let Err(error) = result {
            service.may_send = true;
            self.close_batch(service, peer);
            peer.serve(service.class, number.wrapping_add(1), true);
            self.refuse(peer, service.class, number, service.selected.0, error);
        }
    }

    // W-13
    fn check(&self, service: &Service, need: Need, offset: u64, length: u64) -> Result<(), OperationError> {
        let (region, key) = service.selected;
        self.regions.check(region, key, service.caller, need, offset, length)
    }

    fn serve_write(
        &mut self,
        service: &mut Service,
        peer: &mut Peer,
        number: u32,
        write: Write,
    ) -> Result<(), OperationError> {
        let Write { offset, start, total, at, length } = write;
        self.check(service, Need::Write, start, total)?;
        let end = offset.checked_add(length as u64);
        if offset < start || end.is_none_or(|end| end > start + total) {
            return Err(OperationError::OutOfBounds);
        }
        let region = service.selected.0;
        if service.batch.is_some_and(|batch| batch.region != region) {
            self.close_batch(service, peer);
        }
        let mark = self.memory.mark();
        let batch = service.batch.get_or_insert(Batch { region, mark, first: number, end: number });
        batch.end = number.wrapping_add(1);
        if length > 0 {
            let (frame_offset, length) = ((OPERATIONS + at) as u32, length as u32);
            self.memory.add_range(FrameRange { frame_offset, length, region_offset: offset });
        }
        Ok(())
    }

    fn close_batch(&mut self, service: &mut Service, peer: &mut Peer) {
        let Some(batch) = service.batch.take() else { return };
        let purpose = Purpose::Visible { class: service.class, first: batch.first, end: batch.end };
        let pending = pending(peer, batch.region, purpose);
        self.memory.write(pending, service.lease, batch.mark);
        peer.serve(service.class, batch.end, false);
    }

    fn serve_message(&mut self, service: &mut Service, peer: &mut Peer, message: Unexpected) {
        self.close_batch(service, peer);
        let end = message.number.wrapping_add(1);
        let waits = self.take_message(peer, message);
        peer.serve(service.class, end, !waits);
    }

    // W-53
    /// Handles an operation whose payload its sender could not read: does nothing, and confirms its receipt to the
    /// sender.
    fn serve_void(&mut self, service: &mut Service, peer: &mut Peer, number: u32, length: usize) {
        service.may_send = true;
        self.close_batch(service, peer);
        peer.serve(service.class, number.wrapping_add(1), true);
        if service.class == Class::Request {
            // Only messages carry data in this class.
            self.send_received(peer, number, eager_cost(length as u64));
        }
        self.send_refusal(peer, service.class, number, OperationError::SourceFailed);
    }

    fn serve_load(
        &mut self,
        service: &mut Service,
        peer: &mut Peer,
        number: u32,
        offset: u64,
        length: u32,
    ) -> Result<(), OperationError> {
        self.check(service, Need::Read, offset, u64::from(length))?;
        self.close_batch(service, peer);
        let purpose = Purpose::LoadReply { class: service.class, number };
        self.memory.read(pending(peer, service.selected.0, purpose), offset, length);
        peer.serve(service.class, number.wrapping_add(1), false);
        Ok(())
    }

    fn serve_atomic(
        &mut self,
        service: &mut Service,
        peer: &mut Peer,
        number: u32,
        offset: u64,
        atomic: Atomic,
    ) -> Result<(), OperationError> {
        self.check(service, Need::Atomic, offset, atomic.width.bytes())?;
        if !offset.is_multiple_of(atomic.width.bytes()) {
            return Err(OperationError::Misaligned);
        }
        self.close_batch(service, peer);
        let purpose = Purpose::AtomicReply { class: service.class, number };
        self.memory.atomic(pending(peer, service.selected.0, purpose), offset, atomic);
        peer.serve(service.class, number.wrapping_add(1), false);
        Ok(())
    }

    fn serve_signal(
        &mut self,
        service: &mut Service,
        peer: &mut Peer,
        number: u32,
        counted: u32,
        offset: u64,
        atomic: Atomic,
    ) -> Result<(), OperationError> {
        self.check(service, Need::Write, offset, 8)?;
        if !offset.is_multiple_of(8) {
            return Err(OperationError::Misaligned);
        }
        self.close_batch(service, peer);
        let end = number.wrapping_add(1);
        let purpose = Purpose::Signal { class: service.class, first: number, end, counted };
        self.memory.atomic(pending(peer, service.selected.0, purpose), offset, atomic);
        peer.serve(service.class, end, false);
        Ok(())
    }

    fn serve_get(
        &mut self,
        service: &mut Service,
        peer: &mut Peer,
        number: u32,
        offset: u64,
        length: u32,
    ) -> Result<(), OperationError> {
        self.check(service, Need::Read, offset, u64::from(length))?;
        self.close_batch(service, peer);
        let region = service.selected.0;
        let length = u64::from(length);
        let data = Bulk::GetData { operation: number, region, offset, length, position: 0, transfer: 0 };
        peer.streams.of_mut(Class::BulkReply).push_bulk(data);
        peer.serve(service.class, number.wrapping_add(1), true);
        Ok(())
    }

    /// Refuses an operation towards its sender, and reports the attempt to the owner of the region.
    pub(in crate::endpoint) fn refuse(
        &mut self,
        peer: &mut Peer,
        class: Class,
        number: u32,
        region: RegionId,
        error: OperationError,
    ) {
        self.send_refusal(peer, class, number, error);
        self.forwarder.push_event(Event::AccessRefused { source: peer.node, region, error });
    }

    fn send_refusal(&mut self, peer: &mut Peer, class: Class, number: u32, error: OperationError) {
        let code = error.wire_code().unwrap_or(0);
        let reply = &mut peer.streams.of_mut(class.reply()).sender;
        reply.append(None, &Operation::Refusal { operation: number, class, code });
        let hold = RefusalHold { class, number, reply_psn: reply.last_psn() };
        peer.seldom_mut().refusal_holds.push_back(hold);
        self.note_failed(peer, class, number, number.wrapping_add(1), Some(error));
    }

    /// Releases refusals that have arrived, so that they no longer limit the operation acknowledgement.
    pub(in crate::endpoint) fn release_refusals(&mut self, peer: &mut Peer, reply_class: Class) {
        let base = peer.streams.of(reply_class).sender.base();
        let holds = &mut peer.seldom_mut().refusal_holds;
        let before = holds.len();
        holds.retain(|hold| hold.class.reply() != reply_class || !is_ahead(base, hold.reply_psn));
        if holds.len() < before {
            peer.streams.of_mut(request_class(reply_class)).receiver.demand_ack();
            self.queue_ack(peer);
        }
    }

    /// Handles an answer of memory.
    pub(in crate::endpoint) fn finish_memory(
        &mut self,
        now: Instant,
        token: MemoryToken,
        done: MemoryDone<'_>,
    ) {
        let Some(pending) = self.memory.close(token) else { return };
        if let Purpose::Word { operation } = pending.purpose {
            self.finish_look(operation, done);
            return;
        }
        if let Some(Some(mut peer)) = self.peers.get_mut(pending.node.index()).map(Option::take) {
            if peer.generation == pending.generation {
                self.finish_for_peer(&mut peer, &pending, done);
                if peer.is_stalled {
                    self.resume_held(now, &mut peer);
                }
                self.drain_answered(&peer);
            } else if let Purpose::Receive { group, .. } = pending.purpose {
                // The message arrived completely, but under an earlier incarnation of its sender.
                self.end_part(group, Err(OperationError::OutcomeUnknown));
            }
            self.put_back(peer);
        }
        if let Some(lease) = pending.lease {
            self.end_hold(lease);
        }
        if !self.words.is_empty() {
            self.check_words_in(pending.region);
        }
        self.end_flushes();
    }

    /// Sends an acknowledgement if memory answered late. If memory answers at once, the acknowledgement of the packet
    /// covers it; otherwise that has left, and the sender would learn of visible operations only with the next one.
    pub(in crate::endpoint) fn acknowledge_if_late(&mut self, peer: &mut Peer, class: Class) {
        let receiver = &mut peer.streams.of_mut(class).receiver;
        if !receiver.has_ack_due() {
            receiver.demand_ack();
            self.queue_ack(peer);
        }
    }

    fn finish_for_peer(&mut self, peer: &mut Peer, pending: &Pending, done: MemoryDone<'_>) {
        if matches!(pending.purpose, Purpose::Local { .. }) {
            assert!(peer.landing > 0, "data lands that was not requested from memory");
            peer.landing -= 1;
        }
        match (pending.purpose, done) {
            (
                Purpose::Visible { class, first, end } | Purpose::Signal { class, first, end, .. },
                MemoryDone::Failed(_),
            ) => {
                let mut number = first;
                while number != end {
                    self.refuse(peer, class, number, pending.region, OperationError::MemoryFailed);
                    number = number.wrapping_add(1);
                }
                peer.served(class, end);
            }
            (Purpose::Visible { class, end, .. } | Purpose::Signal { class, end, .. }, _) => {
                // Fast case: only an acknowledgement goes back, and it is already queued.
                peer.served(class, end);
                self.acknowledge_if_late(peer, class);
                return;
            }
            (Purpose::LoadReply { class, number }, MemoryDone::Bytes(data)) => {
                let reply = Operation::LoadReply { operation: number, data };
                peer.streams.of_mut(class.reply()).sender.append(None, &reply);
                peer.served(class, number.wrapping_add(1));
            }
            (Purpose::AtomicReply { class, number }, MemoryDone::Value(value)) => {
                let reply = Operation::AtomicReply { operation: number, value };
                peer.streams.of_mut(class.reply()).sender.append(None, &reply);
                peer.served(class, number.wrapping_add(1));
            }
            (Purpose::LoadReply { class, number } | Purpose::AtomicReply { class, number }, _) => {
                self.refuse(peer, class, number, pending.region, OperationError::MemoryFailed);
                peer.served(class, number.wrapping_add(1));
            }
            (Purpose::Local { class, number, bytes }, MemoryDone::Written) => {
                self.finish_local(peer, class, number, Ok(bytes));
            }
            (Purpose::Local { class, number, .. }, _) => {
                self.finish_local(peer, class, number, Err(OperationError::MemoryFailed));
            }
            (Purpose::Receive { group, length, end }, done) => {
                let result =
                    if done == MemoryDone::Written { Ok(length) } else { Err(OperationError::MemoryFailed) };
                self.end_part(group, result);
                if let Some(end) = end {
                    peer.served(Class::Request, end);
                    self.acknowledge_if_late(peer, Class::Request);
                }
            }
            (Purpose::Word { .. }, _) => {}
        }
        self.note_work(peer);
        self.queue_data(peer, Class::Reply);
        self.queue_data(peer, Class::BulkReply);
    }
}

pub(in crate::endpoint) fn pending(peer: &Peer, region: RegionId, purpose: Purpose) -> Pending {
    Pending { purpose, region, node: peer.node, generation: peer.generation, lease: None }
}

/// Returns the class whose replies travel in this class.
const fn request_class(reply: Class) -> Class {
    match reply {
        Class::Reply | Class::Request => Class::Request,
        Class::BulkReply | Class::Bulk => Class::Bulk,
    }
}
