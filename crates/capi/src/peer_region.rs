//! Regions of peers of the same server, mapped into this process.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use rackloom::fabric::{Node, PeerRegion, Word};

use crate::codes::{ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles;
use crate::node::NodeHandle;
use crate::operation::{
    RACKLOOM_COMPARE_SWAP, RACKLOOM_FETCH_ADD, RACKLOOM_FETCH_AND, RACKLOOM_FETCH_MAX, RACKLOOM_FETCH_MIN,
    RACKLOOM_FETCH_OR, RACKLOOM_FETCH_XOR, RACKLOOM_I32, RACKLOOM_I64, RACKLOOM_SWAP, RACKLOOM_U32,
    RACKLOOM_U64, unknown,
};
use crate::pointers::{Out, array, array_mut};
use crate::region::Address;

/// Handle of a mapped region of a peer.
pub type PeerRegionHandle = u64;

/// Maps a region of a peer of the same server. The offset of the address is ignored.
///
/// Errors: NOT_MAPPED with a reason: the peer is in another server or of another tenant, the rack has `force_wire`, the memory is not of
/// `rackloom_region_allocate`, or there is no answer in time; CLOSED.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_peer_region_map(
    node: NodeHandle,
    address: Address,
    timeout_ns: u64,
    region: *mut PeerRegionHandle,
) -> ErrorCode {
    with_pointers!({
        let region = Out::new(region)?;
        let node = handles::get::<Node>(node)?;
        let mapped = node.map_peer(address.read()?, Duration::from_nanos(timeout_ns))?;
        region.set(handles::add(Arc::new(mapped))?);
        Ok(())
    })
}

/// Frees a mapped region.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_peer_region_free(region: PeerRegionHandle) -> ErrorCode {
    guard::call(|| handles::free::<Arc<PeerRegion>>(region))
}

/// Returns the length of a mapped region in bytes.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_peer_region_length(
    region: PeerRegionHandle,
    length: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let length = Out::new(length)?;
        length.set(handles::get::<Arc<PeerRegion>>(region)?.len());
        Ok(())
    })
}

/// Copies `length` bytes at `data` into a mapped region, at `offset`. They are visible to the owner when the call returns.
///
/// Errors: REFUSED with the reason OUT_OF_BOUNDS, PERMISSION_DENIED or REVOKED; PEER_LOST.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_peer_region_write(
    region: PeerRegionHandle,
    offset: u64,
    data: *const c_void,
    length: u64,
) -> ErrorCode {
    with_pointers!({
        let region = handles::get::<Arc<PeerRegion>>(region)?;
        Ok(region.write(offset, array::<u8>(data.cast(), length)?)?)
    })
}

/// Copies `length` bytes of a mapped region, from `offset`, to `data`.
///
/// Errors: those of `rackloom_peer_region_write`.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_peer_region_read(
    region: PeerRegionHandle,
    offset: u64,
    data: *mut c_void,
    length: u64,
) -> ErrorCode {
    with_pointers!({
        let region = handles::get::<Arc<PeerRegion>>(region)?;
        Ok(region.read(offset, array_mut::<u8>(data.cast(), length)?)?)
    })
}

/// Updates a word of a mapped region. The arguments are those of `rackloom_atomic`.
///
/// Errors: those of `rackloom_peer_region_write`; REFUSED with the reason MISALIGNED; BAD_ARGUMENT.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_peer_region_atomic(
    region: PeerRegionHandle,
    offset: u64,
    atomic: u32,
    word: u32,
    operand: u64,
    compare: u64,
    old: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let old = Out::optional(old)?;
        let region = &*handles::get::<Arc<PeerRegion>>(region)?;
        let found = match word {
            RACKLOOM_U32 => update(region, offset, atomic, operand as u32, compare as u32)?.into(),
            RACKLOOM_I32 => u64::from(update(region, offset, atomic, operand as i32, compare as i32)? as u32),
            RACKLOOM_U64 => update(region, offset, atomic, operand, compare)?,
            RACKLOOM_I64 => update(region, offset, atomic, operand as i64, compare as i64)? as u64,
            word => return Err(unknown("type of word", word)),
        };
        if let Some(old) = old {
            old.set(found);
        }
        Ok(())
    })
}

fn update<W: Word>(
    region: &PeerRegion,
    offset: u64,
    atomic: u32,
    operand: W,
    compare: W,
) -> Result<W, Failure> {
    Ok(match atomic {
        RACKLOOM_FETCH_ADD => region.fetch_add(offset, operand)?,
        RACKLOOM_FETCH_AND => region.fetch_and(offset, operand)?,
        RACKLOOM_FETCH_OR => region.fetch_or(offset, operand)?,
        RACKLOOM_FETCH_XOR => region.fetch_xor(offset, operand)?,
        RACKLOOM_FETCH_MIN => region.fetch_min(offset, operand)?,
        RACKLOOM_FETCH_MAX => region.fetch_max(offset, operand)?,
        RACKLOOM_SWAP => region.swap(offset, operand)?,
        RACKLOOM_COMPARE_SWAP => region.compare_swap(offset, compare, operand)?,
        kind => return Err(unknown("kind of atomic", kind)),
    })
}

/// Stores a word of 8 bytes after all earlier writes of this thread, and ends waits of the owner for it.
///
/// Errors: those of `rackloom_peer_region_atomic`.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_peer_region_signal(
    region: PeerRegionHandle,
    offset: u64,
    value: u64,
) -> ErrorCode {
    guard::call(|| Ok(handles::get::<Arc<PeerRegion>>(region)?.signal(offset, value)?))
}
