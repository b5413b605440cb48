//! What a rank does in its own memory, block by block.
//!
//! Memory may be shared with other processes, so it is never borrowed: work goes through private blocks.

use rackloom_collectives::reduce::{Accumulator, reduce};
use rackloom_collectives::{Buffer, ElementType, Local, Program, ReduceOperation, Span};
use rackloom_protocol::{Memory, RegionId};

use super::room::{INPUT, OUTPUT, SCRATCH};

/// Bytes that are worked on at a time.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;
/// Bytes that are worked on in one turn.
pub(crate) const TURN_BYTES: usize = 1 << 20;
/// A block of a fold is no smaller, however many operands there are.
const FOLDED_BYTES_MIN: usize = 512;

/// Private room for work.
#[derive(Debug)]
pub(crate) struct Blocks {
    pub(crate) left: Vec<u8>,
    pub(crate) right: Vec<u8>,
    operation: ReduceOperation,
    folded: Accumulator,
}

impl Blocks {
    pub(crate) fn new(operation: ReduceOperation, element: ElementType) -> Self {
        let folded = Accumulator::new(operation, element);
        Self { left: vec![0; BLOCK_BYTES], right: vec![0; BLOCK_BYTES], operation, folded }
    }
}

/// Go on with a piece of work of which `worked` bytes are done, for about `budget` bytes. Returns how many were read.
pub(super) fn work(
    memory: &mut dyn Memory,
    (program, piece): (&Program, Local),
    element: ElementType,
    worked: &mut usize,
    (blocks, budget): (&mut Blocks, usize),
) -> Result<usize, String> {
    let target_bytes = piece.target().bytes(element.bytes()).len();
    let operands = program.sources(&piece).len().max(1);
    // Each block of a fold reads a block from every operand, and a turn has no more than its share of time.
    let block_bytes = (TURN_BYTES / operands).clamp(FOLDED_BYTES_MIN, BLOCK_BYTES) & !(FOLDED_BYTES_MIN - 1);
    let mut moved = 0;
    while *worked < target_bytes && moved < budget {
        let length = (target_bytes - *worked).min(block_bytes);
        work_block(memory, (program, piece), element, *worked..*worked + length, blocks)?;
        *worked += length;
        moved += length * operands;
    }
    Ok(moved)
}

/// Do a part of a piece of work, counted in bytes from the beginning of its target.
fn work_block(
    memory: &mut dyn Memory,
    (program, piece): (&Program, Local),
    element: ElementType,
    part: std::ops::Range<usize>,
    blocks: &mut Blocks,
) -> Result<(), String> {
    let at = |span: Span| (region_of(span.buffer), span.bytes(element.bytes()).start + part.start);
    let (to, target) = at(piece.target());
    let (left, right) = (&mut blocks.left[..part.len()], &mut blocks.right[..part.len()]);
    match piece {
        Local::Copy { source, .. } => {
            let (from, source) = at(source);
            read(memory, from, source, left)?;
        }
        Local::Reduce { source, .. } => {
            let (from, source) = at(source);
            read(memory, from, source, right)?;
            read(memory, to, target, left)?;
            reduce(blocks.operation, element, left, right).map_err(|error| error.to_string())?;
        }
        Local::Fold { .. } => {
            for &source in program.sources(&piece) {
                let (from, source) = at(source);
                read(memory, from, source, right)?;
                blocks.folded.take(right).map_err(|error| error.to_string())?;
            }
            blocks.folded.finish(left).map_err(|error| error.to_string())?;
        }
    }
    write(memory, to, target, left)
}

pub(super) const fn region_of(buffer: Buffer) -> RegionId {
    match buffer {
        Buffer::Input => INPUT,
        Buffer::Output => OUTPUT,
        Buffer::Scratch => SCRATCH,
    }
}

/// Read own memory.
pub(crate) fn read(
    memory: &mut dyn Memory,
    region: RegionId,
    offset: usize,
    out: &mut [u8],
) -> Result<(), String> {
    memory
        .read(region, offset as u64, out)
        .map_err(|fault| format!("own memory of {region} at {offset} cannot be read: {fault:?}"))
}

/// Write own memory.
pub(crate) fn write(
    memory: &mut dyn Memory,
    region: RegionId,
    offset: usize,
    bytes: &[u8],
) -> Result<(), String> {
    memory
        .write(region, offset as u64, bytes)
        .map_err(|fault| format!("own memory of {region} at {offset} cannot be written: {fault:?}"))
}
