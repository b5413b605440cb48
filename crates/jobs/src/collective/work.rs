//! Access to a rank's own memory, by the buffers that a schedule names.
//!
//! The `rackloom_collectives` crate decides which accesses are made. Memory may be shared with other processes, so it
//! is never borrowed.

use rackloom_collectives::Buffer;
use rackloom_protocol::{Combine, JobMemory, RegionId};

use super::memory_plan::{INPUT, OUTPUT, SCRATCH};

pub(crate) use rackloom_collectives::execute::{BLOCK_BYTES, Blocks, POLL_BYTES_MAX, WORKED_BYTES_MAX};

pub(super) const fn region_of(buffer: Buffer) -> RegionId {
    match buffer {
        Buffer::Input => INPUT,
        Buffer::Output => OUTPUT,
        Buffer::Scratch => SCRATCH,
    }
}

/// Reads own memory.
pub(crate) fn read(
    memory: &mut dyn JobMemory,
    region: RegionId,
    offset: usize,
    out: &mut [u8],
) -> Result<(), String> {
    memory
        .read(region, offset as u64, out)
        .map_err(|fault| format!("own memory of {region} at {offset} cannot be read: {fault:?}"))
}

/// Requests that own memory combines its values. Returns whether memory did so.
pub(super) fn combine(memory: &mut dyn JobMemory, what: &Combine) -> Result<bool, String> {
    memory.combine(what).map_err(|fault| format!("own memory cannot be worked on: {fault:?}: {what:?}"))
}

/// Writes own memory.
pub(crate) fn write(
    memory: &mut dyn JobMemory,
    region: RegionId,
    offset: usize,
    bytes: &[u8],
) -> Result<(), String> {
    memory
        .write(region, offset as u64, bytes)
        .map_err(|fault| format!("own memory of {region} at {offset} cannot be written: {fault:?}"))
}
