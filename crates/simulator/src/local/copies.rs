//! Copies from one node's memory to another's without a frame.

use rackloom_plan::PayloadMode;
use rackloom_protocol::{Memory, MemoryFault, NodeId};

use crate::memory::memories::Memories;
use crate::memory::payload::PAYLOAD_BYTES_MIN;
use crate::memory::pending_copies::RegionOffset;
use crate::memory::references::range;
use crate::memory::seat_memory::SeatMemory;

/// Writes bytes into a node's memory for another node.
pub(super) fn store(
    memories: &mut Memories,
    node: NodeId,
    to: RegionOffset,
    bytes: &[u8],
) -> Result<(), MemoryFault> {
    let number = memories.node_mut(node).pending_copies.number();
    SeatMemory::new(memories, node, &mut 0, None).put_in(to.region, to.offset, bytes)?;
    let length = bytes.len() as u64;
    memories.with_ledger(|ledger| ledger.note_write(node, to.region, to.offset, length));
    if memories.payload_table.mode == PayloadMode::Elided {
        memories.node_mut(node).add_elided(to.region, length);
    }
    memories.add_to_hash(node, number, bytes);
    Ok(())
}

/// Copies bytes from one node's memory to another's, or notes only that they have arrived.
pub(super) fn copy(
    memories: &mut Memories,
    source: NodeId,
    from: RegionOffset,
    node: NodeId,
    to: RegionOffset,
    length: u64,
) -> Result<(), MemoryFault> {
    let is_moved = memories.payload_table.mode == PayloadMode::Full || length < PAYLOAD_BYTES_MIN as u64;
    if !is_moved {
        return elide(memories, source, from, node, to, length);
    }
    let mut bytes = vec![0; usize::try_from(length).map_err(|_| MemoryFault::NotMapped)?];
    SeatMemory::new(memories, source, &mut 0, None).read(from.region, from.offset, &mut bytes)?;
    store(memories, node, to, &bytes)
}

/// Notes that another node's bytes have arrived, without them.
fn elide(
    memories: &mut Memories,
    source: NodeId,
    from: RegionOffset,
    node: NodeId,
    to: RegionOffset,
    length: u64,
) -> Result<(), MemoryFault> {
    let bytes = usize::try_from(length).map_err(|_| MemoryFault::NotMapped)?;
    let is_mapped = |node: NodeId, at: RegionOffset| {
        range(&memories.node(node).bytes, at.region, at.offset, bytes).is_some()
    };
    if !is_mapped(source, from) || !is_mapped(node, to) {
        return Err(MemoryFault::NotMapped);
    }
    memories.with_ledger(|ledger| ledger.note_write(node, to.region, to.offset, length));
    memories.node_mut(node).add_elided(to.region, length);
    Ok(())
}
