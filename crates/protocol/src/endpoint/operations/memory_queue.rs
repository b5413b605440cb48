//! Requests to memory, in order, and the purpose of each answer.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::ids::{Class, NodeId, RegionId};
use crate::memory::{FrameRange, LeaseId, MemoryAccess, MemoryRequest, MemoryToken};
use crate::operation::groups::GroupId;
use crate::operation::{Atomic, OperationId};

/// Purpose of a memory request.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) enum Purpose {
    /// Remote writes: operations of a stream become visible.
    Visible { class: Class, first: u32, end: u32 },
    /// A signal, which is the operation `first`, and the number of operations before it that it counts.
    Signal { class: Class, first: u32, end: u32, counted: u32 },
    /// A remote load; its bytes go into a reply.
    LoadReply { class: Class, number: u32 },
    /// A remote atomic; its old value goes into a reply.
    AtomicReply { class: Class, number: u32 },
    /// Data of a load or get of the caller.
    Local { class: Class, number: u32, bytes: u64 },
    /// Data of a message for its receive. `end` is the number up to which the message's stream is served then.
    Receive { group: GroupId, length: u64, end: Option<u32> },
    /// Read of a word that an operation waits for.
    Word { operation: OperationId },
}

/// One outstanding request.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) struct Pending {
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

/// Queue of requests, table of outstanding requests, and reference counts of leases.
#[derive(Debug, Default)]
pub(in crate::endpoint) struct MemoryQueue {
    queue: VecDeque<(MemoryToken, RegionId, Queued)>,
    ranges: Vec<FrameRange>,
    pending: Vec<Option<Pending>>,
    free: Vec<MemoryToken>,
    references: Vec<u32>,
}

impl MemoryQueue {
    // Inlined like `write`: the request is written once to its final place.
    #[inline(always)]
    fn open(&mut self, pending: Pending) -> MemoryToken {
        if let Some(lease) = pending.lease {
            self.hold(lease);
        }
        if let Some(token) = self.free.pop() {
            debug_assert!(self.pending[token.0 as usize].is_none(), "a token is given twice");
            self.pending[token.0 as usize] = Some(pending);
            return token;
        }
        self.pending.push(Some(pending));
        MemoryToken(self.pending.len() as u32 - 1)
    }

    /// Returns the position from which ranges are collected for one write request.
    pub(in crate::endpoint) fn mark(&self) -> usize {
        self.ranges.len()
    }

    /// Collects a range for the next write request.
    pub(in crate::endpoint) fn add_range(&mut self, range: FrameRange) {
        self.ranges.push(range);
    }

    /// Returns the ranges collected since this position.
    pub(in crate::endpoint) fn ranges_since(&self, from: usize) -> &[FrameRange] {
        &self.ranges[from..]
    }

    /// Returns true if no request waits to be issued.
    #[inline]
    pub(in crate::endpoint) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Discards the ranges collected since this position.
    pub(in crate::endpoint) fn forget(&mut self, from: usize) {
        self.ranges.truncate(from);
    }

    /// Queues a write of the ranges since `from`.
    #[inline(always)]
    pub(in crate::endpoint) fn write(&mut self, pending: Pending, lease: LeaseId, from: usize) {
        let to = self.ranges.len();
        let token = self.open(Pending { lease: Some(lease), ..pending });
        self.queue.push_back((token, pending.region, Queued::Write { lease, from, to }));
    }

    /// Queues a read.
    pub(in crate::endpoint) fn read(&mut self, pending: Pending, offset: u64, length: u32) {
        let token = self.open(pending);
        self.queue.push_back((token, pending.region, Queued::Read { offset, length }));
    }

    /// Queues an atomic.
    pub(in crate::endpoint) fn atomic(&mut self, pending: Pending, offset: u64, atomic: Atomic) {
        let token = self.open(pending);
        self.queue.push_back((token, pending.region, Queued::Atomic { offset, atomic }));
    }

    /// Returns the next request.
    pub(in crate::endpoint) fn poll(&mut self) -> Option<MemoryRequest<'_>> {
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

    /// Returns the next request if it is a signal.
    pub(in crate::endpoint) fn next_signal(&self) -> Option<&Pending> {
        let (token, ..) = self.queue.front()?;
        let pending = self.pending.get(token.0 as usize)?.as_ref();
        pending.filter(|pending| matches!(pending.purpose, Purpose::Signal { .. }))
    }

    /// Removes the next request, which holds no lease.
    pub(in crate::endpoint) fn forget_next(&mut self) {
        if let Some((token, ..)) = self.queue.pop_front() {
            self.close(token);
        }
    }

    /// Ends an answered request. Returns `None` for a token that is not outstanding.
    pub(in crate::endpoint) fn close(&mut self, token: MemoryToken) -> Option<Pending> {
        let pending = self.pending.get_mut(token.0 as usize)?.take()?;
        self.free.push(token);
        Some(pending)
    }

    /// Adds a reference to a lease.
    pub(in crate::endpoint) fn hold(&mut self, lease: LeaseId) {
        let index = lease.0 as usize;
        if self.references.len() <= index {
            self.references.resize(index + 1, 0);
        }
        self.references[index] += 1;
    }

    /// Removes a reference to a lease. Returns true if it was the last.
    pub(in crate::endpoint) fn end_hold(&mut self, lease: LeaseId) -> bool {
        let references = &mut self.references[lease.0 as usize];
        assert!(*references > 0, "a lease is released twice");
        *references -= 1;
        *references == 0
    }
}
