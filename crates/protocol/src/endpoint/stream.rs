//! Both directions of one class between this node and a remote one.
//!
//! A stream exists from its first packet or operation on, because most pairs of nodes use one or two of the four classes
//! ([`Streams`](crate::endpoint::streams::Streams)). It holds numbers and what is in progress. What only some streams need
//! is stored separately.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

use crate::endpoint::headers::Headers;
use crate::endpoint::operations::failed_operations::FailedOperations;
use crate::error::OperationError;
use crate::inline_queue::InlineQueue;
use crate::link::credits::is_ahead;
use crate::operation::bulk::Bulk;
use crate::operation::outstanding::Outstanding;
use crate::transport::receiver::Receiver;
use crate::transport::sender::Sender;
use crate::transport::settings::StreamSettings;

/// Operations accepted in order that memory has yet to execute. The stream is visible up to `end` once this entry and
/// all before it are done.
#[derive(Clone, Copy, Debug)]
struct Serving {
    first: u32,
    end: u32,
    is_done: bool,
}

/// Both directions of one class between this node and a remote one.
#[derive(Debug)]
pub(in crate::endpoint) struct Stream {
    pub sender: Sender,
    pub receiver: Receiver,
    /// Served operations, ordered by number.
    serving: InlineQueue<Serving>,
    /// Operations of this node that are in progress.
    pub outstanding: Outstanding,
    /// Long transfers that are not yet in packets.
    pub bulk: VecDeque<Bulk>,
    pub headers: Headers,
    failed_operations: Option<Box<FailedOperations>>,
    /// Number of the next operation to serve of the present packet.
    pub serving_from: u32,
    /// Number of entries of the stream in the queues of ports: one, or one per packet if packets choose paths.
    pub tickets: u16,
}

impl Stream {
    pub(in crate::endpoint) fn new(settings: &Arc<StreamSettings>) -> Self {
        Self {
            sender: Sender::new(Arc::clone(settings)),
            receiver: Receiver::new(Arc::clone(settings)),
            serving: InlineQueue::default(),
            outstanding: Outstanding::default(),
            bulk: VecDeque::new(),
            headers: Headers::default(),
            failed_operations: None,
            serving_from: 0,
            tickets: 0,
        }
    }

    /// Adds a long transfer. The queue of a stream begins with one entry.
    pub(in crate::endpoint) fn push_bulk(&mut self, bulk: Bulk) {
        if self.bulk.capacity() == 0 {
            self.bulk.reserve_exact(1);
        }
        self.bulk.push_back(bulk);
    }

    /// Removes the first long transfer, and the queue of a short stream with the last one.
    pub(in crate::endpoint) fn pop_bulk(&mut self) {
        self.bulk.pop_front();
        if self.bulk.is_empty() && self.sender.is_short() {
            self.bulk = VecDeque::new();
        }
    }

    /// Returns true if operations were accepted that are not visible yet.
    #[inline]
    pub(in crate::endpoint) const fn is_serving(&self) -> bool {
        !self.serving.is_empty()
    }

    /// Returns true if an operation of this number follows directly on all accepted ones.
    #[inline]
    pub(in crate::endpoint) fn continues(&self, number: u32) -> bool {
        self.serving.back().map_or(self.receiver.visible, |last| last.end) == number
    }

    /// Number of operations that were accepted and are not visible yet.
    #[inline]
    pub(in crate::endpoint) fn not_yet_visible(&self) -> usize {
        let visible = self.receiver.visible;
        self.serving.back().map_or(0, |last| last.end.wrapping_sub(visible) as usize)
    }

    /// Records that operations up to `end` were accepted and wait for memory.
    pub(in crate::endpoint) fn serve(&mut self, end: u32, is_done: bool) {
        let first = core::mem::replace(&mut self.serving_from, end);
        let entry = Serving { first, end, is_done };
        if self.serving.back().is_some_and(|last| is_ahead(last.first, first)) {
            self.serve_before_others(entry);
        } else {
            self.serving.push_back(entry);
        }
        if is_done {
            self.advance_visible();
        }
    }

    #[cold]
    fn serve_before_others(&mut self, entry: Serving) {
        let later = self.serving.iter().position(|other| is_ahead(other.first, entry.first));
        let index = later.unwrap_or(self.serving.len());
        self.serving.insert(index, entry);
    }

    /// Returns the first operation before `number` that was neither served nor given up, if any: operations executed
    /// early are after a gap.
    #[inline]
    pub(in crate::endpoint) fn gap_before(&self, number: u32) -> Option<u32> {
        let served = match self.serving.back() {
            None => self.receiver.visible,
            Some(last) if is_ahead(number, last.first) => last.end,
            Some(_) => self.served_before(number),
        };
        is_ahead(number, served).then_some(served)
    }

    /// Returns the index before which the entries of served operations before `number` end.
    #[cold]
    fn served_before(&self, number: u32) -> u32 {
        let before = self.serving.iter().rev().find(|entry| is_ahead(number, entry.first));
        before.map_or(self.receiver.visible, |entry| entry.end)
    }

    /// Returns true if all operations from `from` to before `to` were served.
    pub(in crate::endpoint) fn has_served(&self, from: u32, to: u32) -> bool {
        let visible = self.receiver.visible;
        let mut next = if is_ahead(visible, from) { visible } else { from };
        for entry in self.serving.iter() {
            if !is_ahead(entry.first, next) && is_ahead(entry.end, next) {
                next = entry.end;
            }
        }
        !is_ahead(to, next)
    }

    /// Records that memory has executed the operations up to `end`.
    pub(in crate::endpoint) fn served(&mut self, end: u32) {
        // Memory answers in order and mostly at once, so this is usually the first entry.
        if let Some(entry) = self.serving.iter_mut().find(|entry| entry.end == end && !entry.is_done) {
            entry.is_done = true;
        }
        self.advance_visible();
    }

    fn advance_visible(&mut self) {
        let visible = &mut self.receiver.visible;
        while let Some(first) = self.serving.front()
            && first.is_done
            && !is_ahead(first.first, *visible)
        {
            *visible = first.end;
            self.serving.pop_front();
        }
    }

    /// Records failed operations, from `first` to before `end`.
    pub(in crate::endpoint) fn note_failed(&mut self, first: u32, end: u32, error: Option<OperationError>) {
        let visible = self.receiver.visible;
        self.failed_operations.get_or_insert_default().note(first, end, error, visible);
    }

    /// Returns the error of the last failed operation of a range, if any has failed.
    pub(in crate::endpoint) fn find_failed(&self, first: u32, end: u32) -> Option<Option<OperationError>> {
        self.failed_operations.as_ref()?.find(first, end)
    }
}
