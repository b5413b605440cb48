//! Transfers of several pieces with one completion: lists, blocks at equal distances, and a put with an immediate value.

use std::sync::Arc;

use rackloom::fabric::{CompositeRequest, Node, Queue, Strided};

use crate::codes::{ErrorCode, Failure};
use crate::guard::with_pointers;
use crate::handles;
use crate::node::NodeHandle;
use crate::operation::{RACKLOOM_GET, RACKLOOM_PUT, unknown};
use crate::pointers::{Out, array};
use crate::queue::QueueHandle;
use crate::region::{Address, LocalSlice};

/// Slice of the own node and address at a peer, as one piece of a transfer. The layout does not change.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PieceRecord {
    /// Slice of the own node.
    pub local: LocalSlice,
    /// Address of the first byte at the peer.
    pub remote: Address,
}

/// Blocks at equal distances. Distances count from the beginning of a block to that of the next one, in bytes, and may
/// be shorter than a block. The layout does not change.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StridedRecord {
    /// Number of blocks.
    pub blocks: u64,
    /// Length of a block, at least one byte.
    pub block_bytes: u64,
    /// Distance of two blocks in the slice of the own node.
    pub local_stride: u64,
    /// Distance of two blocks at the peer.
    pub remote_stride: u64,
}

impl From<StridedRecord> for Strided {
    fn from(record: StridedRecord) -> Self {
        let StridedRecord { blocks, block_bytes, local_stride, remote_stride } = record;
        Self { blocks, block_bytes, local_stride, remote_stride }
    }
}

/// Direction of pieces.
enum Direction {
    Put,
    Get,
}

fn direction(kind: u32) -> Result<Direction, Failure> {
    match kind {
        RACKLOOM_PUT => Ok(Direction::Put),
        RACKLOOM_GET => Ok(Direction::Get),
        kind => Err(unknown("kind of transfer", kind)),
    }
}

/// Begins the transfers of a node. Their completion arrives in a queue.
///
/// # Safety
/// `number` is null or valid for a write.
unsafe fn submit(
    node: NodeHandle,
    (queue, context, number): (QueueHandle, u64, *mut u64),
    request: impl FnOnce(&Node) -> Result<CompositeRequest, Failure>,
) -> Result<(), Failure> {
    let number = Out::optional(number)?;
    let (node, queue) = (handles::get::<Node>(node)?, handles::get::<Arc<Queue>>(queue)?);
    let submitted = request(&node)?.submit(&queue, context)?;
    if let Some(number) = number {
        // SAFETY: needed because the place is memory of C. The caller promises that it is valid.
        unsafe { number.set(submitted.0) };
    }
    Ok(())
}

/// Begins the transfers of `count` pieces and returns at once. `kind` is `RACKLOOM_PUT`, from the slices to the peers,
/// or `RACKLOOM_GET`. Peers may be different nodes, and pieces may arrive in any order. One completion, with `context`,
/// arrives in `queue` when all have ended: the first failure, or success. `number` may be null and gets the number of
/// the operation, which its completion has. It cannot be cancelled.
///
/// Errors: BAD_ARGUMENT for another kind; handles of the slices; INVALID for a slice of another node; CLOSED. The
/// completion has those of `rackloom_put`.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_vector_submit(
    node: NodeHandle,
    kind: u32,
    pieces: *const PieceRecord,
    count: u64,
    queue: QueueHandle,
    context: u64,
    number: *mut u64,
) -> ErrorCode {
    with_pointers!({
        submit(node, (queue, context, number), |node| {
            let direction = direction(kind)?;
            let read = |piece: &PieceRecord| Ok((piece.local.read()?, piece.remote.read()?));
            let pieces = array(pieces, count)?.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
            Ok(match direction {
                Direction::Put => node.put_vector(&pieces),
                Direction::Get => node.get_vector(&pieces),
            })
        })
    })
}

/// Begins the transfers of blocks at equal distances, such as a column of a matrix, and returns at once. The blocks
/// begin at the start of `local` and at `remote`. `kind`, `queue`, `context` and `number` are those of
/// `rackloom_vector_submit`.
///
/// Errors: those of `rackloom_vector_submit`; INVALID if the blocks are not within the slice.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_strided_submit(
    node: NodeHandle,
    kind: u32,
    local: LocalSlice,
    remote: Address,
    layout: *const StridedRecord,
    queue: QueueHandle,
    context: u64,
    number: *mut u64,
) -> ErrorCode {
    with_pointers!({
        submit(node, (queue, context, number), |node| {
            let (direction, layout) = (direction(kind)?, array(layout, 1)?[0].into());
            let (local, remote) = (local.read()?, remote.read()?);
            Ok(match direction {
                Direction::Put => node.put_strided(&local, remote, layout),
                Direction::Get => node.get_strided(remote, &local, layout),
            })
        })
    })
}

/// Begins a put of a slice, after which the target gets an empty message with the tag `immediate`, and returns at once.
/// A receive of the target that takes the message completes behind the data. `queue`, `context` and `number` are those
/// of `rackloom_vector_submit`.
///
/// Errors: those of `rackloom_vector_submit`. The completion has also those of `rackloom_send`. No message is sent if
/// the put fails.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_put_with_immediate_submit(
    node: NodeHandle,
    local: LocalSlice,
    remote: Address,
    immediate: u64,
    queue: QueueHandle,
    context: u64,
    number: *mut u64,
) -> ErrorCode {
    with_pointers!({
        submit(node, (queue, context, number), |node| {
            Ok(node.put_with_immediate(&local.read()?, remote.read()?, immediate))
        })
    })
}
