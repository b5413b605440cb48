//! Copies from one node's memory to another's without a frame, or of their stand-ins.

use rackloom_plan::PayloadMode;
use rackloom_protocol::{Memory, MemoryFault, NodeId};

use crate::loans::range;
use crate::memories::Memories;
use crate::payload::PAYLOAD_BYTES_MIN;
use crate::seat_memory::SeatMemory;
use crate::shadow::write_fingerprints;
use crate::takings::RegionOffset;

/// Writes bytes into a node's memory for another node.
pub(super) fn store(
    memories: &mut Memories,
    (node, to): (NodeId, RegionOffset),
    bytes: &[u8],
) -> Result<(), MemoryFault> {
    let number = memories.node_mut(node).takings.number();
    SeatMemory::new(memories, node, &mut 0, None).put_in(to.region, to.offset, bytes)?;
    memories.with_ledger(|ledger| ledger.note_write(node, to.region, to.offset, bytes.len() as u64));
    memories.add_to_hash(node, number, bytes);
    Ok(())
}

/// Copies bytes from one node's memory to another's, or their stand-in.
pub(super) fn copy(
    memories: &mut Memories,
    (source, from): (NodeId, RegionOffset),
    (node, to): (NodeId, RegionOffset),
    length: u64,
) -> Result<(), MemoryFault> {
    let is_moved = memories.books.mode == PayloadMode::Full || length < PAYLOAD_BYTES_MIN as u64;
    if !is_moved {
        return stand_in(memories, (source, from), (node, to), length);
    }
    let mut bytes = vec![0; usize::try_from(length).map_err(|_| MemoryFault::NotMapped)?];
    SeatMemory::new(memories, source, &mut 0, None).read(from.region, from.offset, &mut bytes)?;
    store(memories, (node, to), &bytes)
}

/// Notes the fingerprints of another node's bytes, or only that they have arrived.
fn stand_in(
    memories: &mut Memories,
    (source, from): (NodeId, RegionOffset),
    (node, to): (NodeId, RegionOffset),
    length: u64,
) -> Result<(), MemoryFault> {
    let bytes = usize::try_from(length).map_err(|_| MemoryFault::NotMapped)?;
    let there = range(&memories.node(source).bytes, from.region, from.offset, bytes);
    let there = there.ok_or(MemoryFault::NotMapped)?;
    let mut stand_in = Vec::new();
    if memories.books.mode == PayloadMode::Shadow {
        write_fingerprints(there, &mut stand_in);
    }
    range(&memories.node(node).bytes, to.region, to.offset, bytes).ok_or(MemoryFault::NotMapped)?;
    if memories.books.mode == PayloadMode::Shadow {
        memories.node_mut(node).shadow.note(to.region, to.offset, length, &stand_in);
    }
    memories.with_ledger(|ledger| ledger.note_write(node, to.region, to.offset, length));
    Ok(())
}
