//! Ends of the caller's operations: acknowledged, answered, refused, lost.

use crate::endpoint::Endpoint;
use crate::endpoint::operations::memory_queue::{Pending, Purpose};
use crate::endpoint::operations::serving::pending;
use crate::endpoint::peer::Peer;
use crate::endpoint::stream::Stream;
use crate::error::OperationError;
use crate::event::Event;
use crate::ids::{Class, NodeId, RegionId};
use crate::link::credits::is_ahead;
use crate::memory::{FrameRange, LeaseId, MemoryDone};
use crate::operation::OperationId;
use crate::operation::bulk::Bulk;
use crate::operation::groups::GroupId;
use crate::operation::outstanding::{ReplyKind, Waiting};

impl Endpoint {
    /// Ends one part of a command.
    pub(in crate::endpoint) fn end_part(&mut self, group: GroupId, result: Result<u64, OperationError>) {
        if let Some((operation, result)) = self.groups.end_part(group, result) {
            self.forwarder.push_event(Event::Completed { operation, result });
        }
    }

    /// Ends an operation or a part of one.
    #[inline]
    pub(in crate::endpoint) fn end_waiting(&mut self, command: Waiting, result: Result<u64, OperationError>) {
        match command {
            Waiting::Command(operation) => {
                self.groups.end_one();
                self.forwarder.push_event(Event::Completed { operation, result });
            }
            Waiting::Part(group) => self.end_part(group, result),
        }
    }

    /// Ends operations of a stream that have become visible.
    pub(in crate::endpoint) fn end_visible(&mut self, peer: &mut Peer, class: Class) {
        let Stream { sender, outstanding, .. } = peer.streams.of_mut(class);
        while let Some((command, error)) = outstanding.pop_visible(sender.visible()) {
            match (command, error) {
                // The event is written once, directly to its final place.
                (Waiting::Command(operation), None) => {
                    self.groups.end_one();
                    self.forwarder.push_event(Event::Completed { operation, result: Ok(0) });
                }
                (command, error) => self.end_waiting(command, error.map_or(Ok(0), Err)),
            }
        }
        if class == Class::Request {
            peer.posted_last = peer.posted_in_flight();
        }
    }

    /// Handles received data of a load or get, which goes to the caller's memory.
    #[allow(clippy::too_many_arguments, reason = "the place of the bytes and the name of the request")]
    pub(in crate::endpoint) fn take_bytes(
        &mut self,
        lease: LeaseId,
        peer: &mut Peer,
        class: Class,
        number: u32,
        position: u32,
        length: usize,
        end_of_payload: u32,
    ) {
        let Some(wait) = peer.streams.of_mut(class).outstanding.reply(number) else { return };
        let ReplyKind::Bytes { region, offset, length: expected } = wait.kind else { return };
        let bytes = length as u64;
        if bytes == 0 || u64::from(position) + bytes > expected || bytes > wait.missing {
            return;
        }
        let region_offset = offset + u64::from(position);
        if !self.regions.holds(region, region_offset, bytes) {
            self.finish_local(peer, class, number, Err(OperationError::MemoryFailed));
            return;
        }
        let mark = self.memory.mark();
        let frame_offset = end_of_payload - length as u32;
        self.memory.add_range(FrameRange { frame_offset, length: length as u32, region_offset });
        let purpose = Purpose::Local { class, number, bytes };
        peer.landing += 1;
        self.memory.write(pending(peer, region, purpose), lease, mark);
    }

    /// Handles the completion of a write to the caller's memory, for a load or get.
    pub(in crate::endpoint) fn finish_local(
        &mut self,
        peer: &mut Peer,
        class: Class,
        number: u32,
        result: Result<u64, OperationError>,
    ) {
        let outstanding = &mut peer.streams.of_mut(class).outstanding;
        let Some(wait) = outstanding.reply(number) else { return };
        let group = wait.group;
        let result = match result {
            Ok(bytes) => {
                // No assertion: a peer may send the same bytes in two packets, and both may arrive before either is
                // written.
                wait.missing = wait.missing.saturating_sub(bytes);
                if wait.missing > 0 {
                    return;
                }
                Ok(0)
            }
            Err(error) => Err(error),
        };
        outstanding.end_reply(number);
        let result = self.finish_pull(peer, class, number, result);
        self.end_part(group, result);
    }

    /// Handles a received old value of an atomic.
    pub(in crate::endpoint) fn take_value(&mut self, peer: &mut Peer, class: Class, number: u32, value: u64) {
        let outstanding = &mut peer.streams.of_mut(class).outstanding;
        let Some(wait) = outstanding.reply(number) else { return };
        if wait.kind != ReplyKind::Value {
            return;
        }
        let group = wait.group;
        outstanding.end_reply(number);
        self.end_part(group, Ok(value));
    }

    /// Handles a received refusal of an operation.
    pub(in crate::endpoint) fn take_refusal(&mut self, peer: &mut Peer, class: Class, number: u32, code: u8) {
        let error = OperationError::from_wire_code(code).unwrap_or(OperationError::MemoryFailed);
        let Stream { outstanding, bulk, .. } = peer.streams.of_mut(class);
        if let Some(wait) = outstanding.reply(number) {
            let group = wait.group;
            outstanding.end_reply(number);
            if class == Class::Request {
                peer.forget_offer(number);
            }
            let result = self.finish_pull(peer, class, number, Err(error));
            self.end_part(group, result);
        } else if let Some(wait) = outstanding.visible_wait(number) {
            wait.error = wait.error.or(Some(error));
        } else if let Some(Bulk::Put { first: Some(first), error: slot, .. }) = bulk.front_mut()
            && !is_ahead(*first, number)
        {
            *slot = slot.or(Some(error));
        } else if class == Class::Request {
            // The caller has been notified of the failure of a put that was given up.
            peer.posted_error = peer.posted_error.or(Some(OperationError::EarlierFailure));
        }
    }

    // ---- flushes and words -----------------------------------------------------------------------------------------

    /// Ends the flushes whose marks have all been reached.
    #[inline]
    pub(in crate::endpoint) fn end_flushes(&mut self) {
        if !self.flushes.is_empty() {
            self.look_at_flushes();
        }
    }

    fn look_at_flushes(&mut self) {
        let Self { flushes, peers, forwarder, .. } = self;
        flushes.retain_mut(|flush| {
            flush.marks.retain_mut(|mark| match &mut peers[mark.node.index()] {
                Some(peer) => {
                    let reached = peer.has_reached(mark);
                    if reached {
                        flush.failed = flush.failed.or_else(|| peer.take_posted_error());
                    }
                    !reached
                }
                // The peer is taken out while its own frame is handled; it is checked right after.
                None => true,
            });
            if !flush.marks.is_empty() {
                return true;
            }
            let operation = flush.operation;
            let result = flush.failed.map_or(Ok(0), |(node, error)| {
                forwarder.push_event(Event::FlushFailed { operation, node });
                Err(error)
            });
            forwarder.push_event(Event::Completed { operation, result });
            false
        });
    }

    /// Fails the flushes that wait for a lost node. Returns true if one of them reports the posted store.
    pub(in crate::endpoint) fn fail_flushes(&mut self, node: NodeId, posted: Option<u32>) -> bool {
        let mut is_reported = false;
        for flush in &mut self.flushes {
            let Some(index) = flush.marks.iter().position(|mark| mark.node == node) else { continue };
            let mark = flush.marks.swap_remove(index);
            if flush.failed.is_none() {
                flush.failed = Some((node, OperationError::OutcomeUnknown));
                is_reported |= posted.is_some_and(|posted| is_ahead(mark.request, posted));
            }
        }
        is_reported
    }

    /// Checks the awaited words of a region, which may have changed.
    pub(in crate::endpoint) fn check_words_in(&mut self, region: RegionId) {
        for index in 0..self.words.len() {
            if self.words[index].region == region {
                self.look_at_word(index);
            }
        }
    }

    pub(in crate::endpoint) fn look_at_word(&mut self, index: usize) {
        let wait = &mut self.words[index];
        if wait.is_checking {
            wait.is_stale = true;
            return;
        }
        wait.is_checking = true;
        wait.is_stale = false;
        let pending = Pending {
            purpose: Purpose::Word { operation: wait.operation },
            region: wait.region,
            node: self.forwarder.config.node,
            generation: 0,
            lease: None,
        };
        self.memory.read(pending, wait.offset, 8);
    }

    pub(in crate::endpoint) fn finish_look(&mut self, operation: OperationId, done: MemoryDone<'_>) {
        let Some(index) = self.words.iter().position(|wait| wait.operation == operation) else { return };
        let wait = &mut self.words[index];
        wait.is_checking = false;
        let result = match done {
            MemoryDone::Bytes(bytes) if bytes.len() == 8 => {
                let mut word = [0; 8];
                word.copy_from_slice(bytes);
                let word = u64::from_le_bytes(word);
                match (wait.condition.holds(word, wait.value), wait.is_stale, wait.is_last) {
                    (true, ..) => Ok(word),
                    (false, false, true) => Err(OperationError::Unreachable),
                    (false, true, _) => return self.look_at_word(index),
                    (false, false, false) => return,
                }
            }
            _ => Err(OperationError::MemoryFailed),
        };
        self.words.swap_remove(index);
        self.forwarder.push_event(Event::Completed { operation, result });
    }
}
