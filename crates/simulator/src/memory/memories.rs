//! The memories of all nodes, and the copies from one to another that are still to be made.
//!
//! If payloads have bytes, a memory that takes one usually only notes that ([`crate::memory::pending_copies`]). The copies are made here, and the
//! copied bytes are added to the hash of the run. The order of the copies changes neither.
//!
//! [`crate::memory::seat_memory`] has a node's access to its own memory during its poll.

use std::sync::Arc;

use crc_fast::crc64_nvme;
use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::{Event, Instant, MemoryFault, NodeId, RegionId};

use crate::device::WorkClock;
use crate::ledger::{AllMemories, Ledger};
use crate::memory::payload::{Payload, PayloadTable};
use crate::memory::pending_copies::{PendingCopies, PendingCopy, RegionOffset};
use crate::memory::references::{BytesLocation, range};
use crate::memory::spans::Spans;

/// Bytes that may be noted before they are copied. Several times the second-level cache: the copies evict the cache
/// once for thousands of frames. Small compared with the memories themselves.
const NOTED_BYTES_MAX: u64 = 32 << 20;
/// A shorter payload is copied at once: it evicts almost nothing.
const NOTED_PAYLOAD_BYTES_MIN: u64 = 1_024;

/// Memory of one node.
#[derive(Debug, Default)]
pub(crate) struct NodeMemory {
    pub(crate) bytes: VectorMemory,
    /// Payloads that it has taken from other nodes.
    pub(crate) pending_copies: PendingCopies,
    /// Ranges that other nodes have taken from it and not copied yet.
    pub(crate) awaited: Spans,
    /// Bytes that other nodes have written, by region, if payloads are elided.
    elided: Vec<(RegionId, u64)>,
    /// Clock of the node's own work, if that takes time.
    pub(crate) work: Option<WorkClock>,
}

impl NodeMemory {
    /// Counts bytes that another node has written.
    pub(crate) fn add_elided(&mut self, region: RegionId, bytes: u64) {
        match self.elided.iter_mut().find(|(of, _)| *of == region) {
            Some((_, counted)) => *counted += bytes,
            None => self.elided.push((region, bytes)),
        }
    }

    /// Returns the bytes that other nodes have written into a region.
    pub(crate) fn elided(&self, region: RegionId) -> u64 {
        self.elided.iter().find(|(of, _)| *of == region).map_or(0, |(_, counted)| *counted)
    }
}

/// The memories of all nodes, and the table of payloads that they share with the frames.
#[derive(Debug)]
pub(crate) struct Memories {
    nodes: Vec<NodeMemory>,
    pub(crate) payload_table: Arc<PayloadTable>,
    /// Nodes that still have something to copy.
    open: Vec<NodeId>,
    noted_bytes: u64,
    /// Sum of the hashes of all copied payloads, in any order.
    hash: u64,
}

impl Memories {
    pub(crate) fn new(members: usize, payload_table: Arc<PayloadTable>) -> Self {
        let nodes = (0..members).map(|_| NodeMemory::default()).collect();
        Self { nodes, payload_table, open: Vec::new(), noted_bytes: 0, hash: 0 }
    }

    /// Returns a node's bytes. Call [`Memories::settle_all`] first to include payloads taken lately.
    pub(crate) fn bytes(&self, node: NodeId) -> &VectorMemory {
        &self.nodes[node.index()].bytes
    }

    /// Returns a node's bytes for writes at unspecified offsets.
    pub(crate) fn bytes_mut(&mut self, node: NodeId) -> &mut VectorMemory {
        self.settle_all();
        let memory = &mut self.nodes[node.index()].bytes;
        self.payload_table.keep_all(node, memory);
        memory
    }

    /// Returns the empty memory of a node's new incarnation. Bytes that frames in flight refer to stay with them.
    pub(crate) fn renew(&mut self, node: NodeId) -> &mut VectorMemory {
        self.settle_all();
        let memory = &mut self.nodes[node.index()];
        self.payload_table.keep_all(node, &memory.bytes);
        *memory = NodeMemory { work: memory.work.take(), ..NodeMemory::default() };
        &mut memory.bytes
    }

    /// Keeps a ledger from now on.
    pub(crate) fn keep_ledger(&self) {
        self.payload_table.keep_ledger(self.nodes.len());
    }

    /// Calls `act` with the ledger, if one is kept.
    pub(crate) fn with_ledger<T>(&self, act: impl FnOnce(&mut Ledger) -> T) -> Option<T> {
        self.payload_table.with_ledger(act)
    }

    /// Passes an endpoint's events to the ledger. It compares bytes where operations have ended.
    pub(crate) fn report_to_ledger(&mut self, now: Instant, node: NodeId, events: &[Event]) {
        let has_ends = events.iter().any(|event| matches!(event, Event::Completed { .. }));
        if has_ends && self.with_ledger(|_| ()).is_some() {
            self.settle_all();
        }
        self.with_ledger(|ledger| ledger.handle_events(now, node, events, self));
    }

    pub(crate) fn node(&self, node: NodeId) -> &NodeMemory {
        &self.nodes[node.index()]
    }

    pub(crate) fn node_mut(&mut self, node: NodeId) -> &mut NodeMemory {
        &mut self.nodes[node.index()]
    }

    /// Returns a hash of all payloads that memories have taken; 0 if there were none. Call [`Memories::settle_all`] first.
    pub(crate) const fn hash(&self) -> u64 {
        self.hash
    }

    /// Takes a payload that another node references. The node must have settled the target range before (`seat_memory.rs`).
    pub(crate) fn take(
        &mut self,
        node: NodeId,
        to: RegionOffset,
        payload: &Payload,
    ) -> Result<(), MemoryFault> {
        let (source, length) = (payload.source, usize::from(payload.length));
        let payload_table = Arc::clone(&self.payload_table);
        let references = payload_table.references();
        let located =
            references.get(source.index()).and_then(|references| references.locate(payload.reference));
        let from = match located.ok_or(MemoryFault::NotMapped)? {
            BytesLocation::At(from) => from,
            BytesLocation::Kept(bytes) => return self.copy_in(node, to, bytes),
        };
        let source_memory = self.nodes.get(source.index()).ok_or(MemoryFault::NotMapped)?;
        range(&source_memory.bytes, from.region, from.offset, length).ok_or(MemoryFault::NotMapped)?;
        range(&self.node(node).bytes, to.region, to.offset, length).ok_or(MemoryFault::NotMapped)?;
        let (length, number) = (u64::from(payload.length), self.node_mut(node).pending_copies.number());
        let pending_copy = PendingCopy { source, from, to, length, payload_bytes: length, number };
        if length >= NOTED_PAYLOAD_BYTES_MIN {
            self.note(node, pending_copy);
            return Ok(());
        }
        if self.node(node).pending_copies.reach(to.region, to.offset, to.offset + length) {
            self.settle(node);
        }
        self.copy(node, &pending_copy);
        Ok(())
    }

    /// Adds bytes that were copied into a node's memory without a frame to the hash, as payload `number` of the node.
    pub(crate) fn add_to_hash(&mut self, node: NodeId, number: u64, bytes: &[u8]) {
        self.hash = self.hash.wrapping_add(mixed(crc64_nvme(bytes), node, number));
    }

    fn note(&mut self, node: NodeId, pending_copy: PendingCopy) {
        let pending_copies = &mut self.node_mut(node).pending_copies;
        let is_first = pending_copies.is_empty();
        let has_joined = pending_copies.add(pending_copy);
        if is_first {
            self.open.push(node);
        }
        let (from, length) = (pending_copy.from, pending_copy.length);
        let awaited = &mut self.node_mut(pending_copy.source).awaited;
        if has_joined {
            awaited.widen(from.region, from.offset, from.offset + length);
        } else {
            awaited.add(from.region, from.offset, from.offset + length);
        }
        self.noted_bytes += length;
        if self.noted_bytes >= NOTED_BYTES_MAX {
            self.settle_all();
        }
    }

    /// Copies bytes that are outside all memories.
    fn copy_in(&mut self, node: NodeId, to: RegionOffset, bytes: &[u8]) -> Result<(), MemoryFault> {
        if self.node(node).pending_copies.reach(to.region, to.offset, to.offset + bytes.len() as u64) {
            self.settle(node);
        }
        let target_memory = &mut self.nodes[node.index()];
        let target =
            range_mut(&mut target_memory.bytes, to, bytes.len() as u64).ok_or(MemoryFault::NotMapped)?;
        target.copy_from_slice(bytes);
        let number = target_memory.pending_copies.number();
        self.hash = self.hash.wrapping_add(mixed(crc64_nvme(bytes), node, number));
        Ok(())
    }

    /// Copies the payloads that a node has taken.
    pub(crate) fn settle(&mut self, node: NodeId) {
        self.open.retain(|open| *open != node);
        self.copy_taken(node);
    }

    /// Copies the payloads that all nodes have taken.
    pub(crate) fn settle_all(&mut self) {
        let mut open = std::mem::take(&mut self.open);
        open.drain(..).for_each(|node| self.copy_taken(node));
        self.open = open;
    }

    fn copy_taken(&mut self, node: NodeId) {
        let pending_copies = self.nodes[node.index()].pending_copies.take_all();
        for pending_copy in &pending_copies {
            self.nodes[pending_copy.source.index()].awaited.remove(pending_copy.from.region);
            self.noted_bytes -= pending_copy.length;
            self.copy(node, pending_copy);
        }
        self.nodes[node.index()].pending_copies.recycle(pending_copies);
    }

    /// Copies payload by payload, each of which is read once for the hash and again while it is in cache. Both ranges existed
    /// when it was taken, and regions are removed only after this call.
    fn copy(&mut self, node: NodeId, pending_copy: &PendingCopy) {
        let PendingCopy { source, from, to, length, payload_bytes, number } = *pending_copy;
        let mut hash = 0_u64;
        let mut note = |at: usize, bytes: &[u8]| {
            hash = hash.wrapping_add(mixed(crc64_nvme(bytes), node, number + at as u64));
        };
        let payload_bytes = payload_bytes as usize;
        if let Ok([source_memory, target_memory]) =
            self.nodes.get_disjoint_mut([source.index(), node.index()])
        {
            let there = range(&source_memory.bytes, from.region, from.offset, length as usize);
            let here = range_mut(&mut target_memory.bytes, to, length);
            let (there, here) = (there.unwrap_or_default(), here.unwrap_or_default());
            let pairs = there.chunks(payload_bytes).zip(here.chunks_mut(payload_bytes));
            for (at, (source, target)) in pairs.enumerate() {
                note(at, source);
                target.copy_from_slice(source);
            }
        } else {
            // Copy within one memory.
            let own = &mut self.nodes[node.index()].bytes;
            let there = range(own, from.region, from.offset, length as usize).unwrap_or_default().to_vec();
            there.chunks(payload_bytes).enumerate().for_each(|(at, bytes)| note(at, bytes));
            range_mut(own, to, length).into_iter().for_each(|here| here.copy_from_slice(&there));
        }
        self.hash = self.hash.wrapping_add(hash);
    }
}

impl AllMemories for Memories {
    fn bytes(&self, node: NodeId) -> &VectorMemory {
        Self::bytes(self, node)
    }
}

fn range_mut(memory: &mut VectorMemory, location: RegionOffset, length: u64) -> Option<&mut [u8]> {
    let RegionOffset { region, offset } = location;
    let (begin, length) = (usize::try_from(offset).ok()?, usize::try_from(length).ok()?);
    memory.bytes_mut(region).get_mut(begin..begin.checked_add(length)?)
}

/// Mixes a payload's hash with the node that took it and its number there, so that sums of them differ whenever one of them differs
/// (the finaliser of SplitMix64).
const fn mixed(hash: u64, node: NodeId, number: u64) -> u64 {
    let which = (number << 16 | node.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut word = hash.rotate_left(17) ^ which;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
