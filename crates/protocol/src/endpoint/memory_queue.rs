//! What memory has been asked to do, in order, and what each answer is for.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::ids::{Class, NodeId, RegionId};
use crate::memory::{FrameRange, LeaseId, MemoryAccess, MemoryRequest, MemoryToken};
use crate::operation::groups::GroupId;
use crate::operation::{Atomic, OperationId};

/// What an answer of memory is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// Remote writes: operations of a stream become visible.
    Visible { class: Class, first: u32, end: u32 },
    /// A signal, that is the operation `first`, and how many operations before it it counts.
    Signal { class: Class, first: u32, end: u32, counted: u32 },
    /// A remote load: its bytes go into a reply.
    LoadReply { class: Class, number: u32 },
    /// A remote atomic: its old value goes into a reply.
    AtomicReply { class: Class, number: u32 },
    /// Data of the caller's own load or get.
    Local { class: Class, number: u32, bytes: u64 },
    /// A message's data on its way to its receive; `end` is what the message's stream is served up to then.
    Receive { group: GroupId, length: u64, end: Option<u32> },
    /// A look at a word that somebody waits for.
    Word { operation: OperationId },
}

/// One request under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub purpose: Purpose,
    pub region: RegionId,
    pub node: NodeId,
    pub generation: u32,
    pub lease: Option<LeaseId>,
}

#[derive(Clone, Copy, Debug)]
enum Queued {
    Write { lease: LeaseId, from: usize, to: usize },
    Read { offset: u64, length: u32 },
    Atomic { offset: u64, atomic: Atomic },
}

/// The queue, the table of requests under way, and the count of references to each lease.
#[derive(Debug, Default)]
pub(super) struct MemoryQueue {
    queue: VecDeque<(MemoryToken, RegionId, Queued)>,
    ranges: Vec<FrameRange>,
    pending: Vec<Option<Pending>>,
    free: Vec<MemoryToken>,
    references: Vec<u32>,
}

impl MemoryQueue {
    // Inlined, as `write` is: what is kept is written once where it stays, and not copied as a whole behind its own fields.
    #[inline(always)]
    fn open(&mut self, pending: Pending) -> MemoryToken {
        if let Some(lease) = pending.lease {
            self.hold(lease);
        }
        if let Some(token) = self.free.pop() {
            self.pending[token.0 as usize] = Some(pending);
            return token;
        }
        self.pending.push(Some(pending));
        MemoryToken(self.pending.len() as u32 - 1)
    }

    /// Ranges collected since this position become one write request.
    pub(super) fn mark(&self) -> usize {
        self.ranges.len()
    }

    /// Collect a range for the next write request.
    pub(super) fn add_range(&mut self, range: FrameRange) {
        self.ranges.push(range);
    }

    /// The ranges collected since this position.
    pub(super) fn ranges_since(&self, from: usize) -> &[FrameRange] {
        &self.ranges[from..]
    }

    /// Whether nothing waits to be asked.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Forget the ranges since this position: they become no request after all.
    pub(super) fn forget(&mut self, from: usize) {
        self.ranges.truncate(from);
    }

    /// Ask for a write of the ranges since `from`.
    #[inline(always)]
    pub(super) fn write(&mut self, pending: Pending, lease: LeaseId, from: usize) {
        let to = self.ranges.len();
        let token = self.open(Pending { lease: Some(lease), ..pending });
        self.queue.push_back((token, pending.region, Queued::Write { lease, from, to }));
    }

    /// Ask for a read.
    pub(super) fn read(&mut self, pending: Pending, offset: u64, length: u32) {
        let token = self.open(pending);
        self.queue.push_back((token, pending.region, Queued::Read { offset, length }));
    }

    /// Ask for an atomic.
    pub(super) fn atomic(&mut self, pending: Pending, offset: u64, atomic: Atomic) {
        let token = self.open(pending);
        self.queue.push_back((token, pending.region, Queued::Atomic { offset, atomic }));
    }

    /// The next request.
    pub(super) fn poll(&mut self) -> Option<MemoryRequest<'_>> {
        let Some((token, region, queued)) = self.queue.pop_front() else {
            self.ranges.clear();
            return None;
        };
        let access = match queued {
            Queued::Write { lease, from, to } => {
                MemoryAccess::Write { lease, ranges: &self.ranges[from..to] }
            }
            Queued::Read { offset, length } => MemoryAccess::Read { offset, length },
            Queued::Atomic { offset, atomic } => MemoryAccess::Atomic { offset, atomic },
        };
        Some(MemoryRequest { token, region, access })
    }

    /// The next request, if it is a signal.
    pub(super) fn next_signal(&self) -> Option<&Pending> {
        let (token, ..) = self.queue.front()?;
        let pending = self.pending.get(token.0 as usize)?.as_ref();
        pending.filter(|pending| matches!(pending.purpose, Purpose::Signal { .. }))
    }

    /// The next request, which holds no lease, is not made after all.
    pub(super) fn forget_next(&mut self) {
        if let Some((token, ..)) = self.queue.pop_front() {
            self.close(token);
        }
    }

    /// A request was answered. `None` for a token that is not under way.
    pub(super) fn close(&mut self, token: MemoryToken) -> Option<Pending> {
        let pending = self.pending.get_mut(token.0 as usize)?.take()?;
        self.free.push(token);
        Some(pending)
    }

    /// One more thing refers to a lease.
    pub(super) fn hold(&mut self, lease: LeaseId) {
        let index = lease.0 as usize;
        if self.references.len() <= index {
            self.references.resize(index + 1, 0);
        }
        self.references[index] += 1;
    }

    /// One thing less refers to a lease. True when it was the last.
    pub(super) fn unhold(&mut self, lease: LeaseId) -> bool {
        let references = &mut self.references[lease.0 as usize];
        *references -= 1;
        *references == 0
    }
}
