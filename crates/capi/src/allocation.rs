//! Regions as allocations: attributes of an address, rights of one node, and handles for other nodes.

use std::sync::Arc;
use std::time::Duration;

use rackloom::fabric::{Node, PointerAttributes, Region, RegionHandle as Exported};

use crate::codes::{ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles;
use crate::node::NodeHandle;
use crate::peer_region::PeerRegionHandle;
use crate::pointers::{self, Out, Sized32, array, put_versioned};
use crate::region::{Address, RegionHandle, device_numbers, peer_access, peer_access_number};

/// Location, key and length of a region as bytes, which the program sends to another node. A node that has them may access the region as far as its
/// rights go. The layout does not change.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ExportedRegion {
    /// Bytes without a meaning for the program.
    pub bytes: [u8; 32],
}

/// Attributes of an address in a region of a node. `size` is set by the program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AttributesRecord {
    /// sizeof(rackloom_pointer_attributes).
    pub size: u32,
    /// Number of the region that contains the address.
    pub region: u32,
    /// Offset of the address within the region, in bytes.
    pub offset: u64,
    /// Length of the region, in bytes.
    pub length: u64,
    /// Memory that the region takes, in bytes: at least its length, in whole pages or blocks if it came from a pool.
    pub reserved_bytes: u64,
    /// Device of the memory, one of `RACKLOOM_DEVICE_...`.
    pub device: u32,
    /// 1 if the memory came from a pool.
    pub is_pooled: u32,
    /// Number of the GPU, or seed of the fake device.
    pub device_number: u64,
}

// SAFETY: needed to copy it by its bytes. It has the layout of C and begins with its size. It consists of numbers, so every bit pattern is a value.
unsafe impl Sized32 for AttributesRecord {
    const SIZE_MIN: usize = size_of::<Self>();
}

/// Writes the attributes of an address of this process, or of the node's device as of `rackloom_region_device_address`. The time grows with the number of
/// regions.
///
/// Errors: INVALID if the address is in no region of the node; BAD_SIZE.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_node_pointer_attributes(
    node: NodeHandle,
    address: u64,
    attributes: *mut AttributesRecord,
) -> ErrorCode {
    with_pointers!({
        let found = handles::get::<Node>(node)?.pointer_attributes(address);
        let none = || Failure::new(ErrorCode::Invalid, "the address is in no region of the node");
        let PointerAttributes { region, offset, length, reserved_bytes, device, is_pooled, .. } =
            found.ok_or_else(none)?;
        let [device, device_number] = device_numbers(device);
        put_versioned(attributes, |size| AttributesRecord {
            size,
            region: region.0,
            offset,
            length,
            reserved_bytes,
            device: device as u32,
            is_pooled: is_pooled.into(),
            device_number,
        })
    })
}

/// Sets the access rights of one node to a region, in place of those of its options, until the region ends. `access` has the values of
/// `rackloom_pool_set_access`. All mappings of the region end, also those of other nodes.
///
/// Errors: BAD_ARGUMENT for unknown rights; NO_SUCH_NODE; CLOSED.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_region_set_access(region: RegionHandle, peer: u32, access: u32) -> ErrorCode {
    guard::call(|| {
        let region = handles::get::<Region>(region)?;
        Ok(region.set_peer_access(pointers::node(peer)?, peer_access(access)?)?)
    })
}

/// Writes the access rights of one node to a region: those that were set for the node or its pool, or else those of the options. `RACKLOOM_ACCESS_NONE` if
/// there are none.
///
/// Errors: CLOSED.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_region_access(
    region: RegionHandle,
    peer: u32,
    access: *mut u32,
) -> ErrorCode {
    with_pointers!({
        let access = Out::new(access)?;
        let rights = handles::get::<Region>(region)?.peer_access(pointers::node(peer)?)?;
        access.set(peer_access_number(Some(rights)));
        Ok(())
    })
}

/// Writes the bytes by which other nodes find and map a region. They are valid until the last handle of the region is freed.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_region_export(
    region: RegionHandle,
    exported: *mut ExportedRegion,
) -> ErrorCode {
    with_pointers!({
        let exported = Out::new(exported)?;
        exported.set(ExportedRegion { bytes: handles::get::<Region>(region)?.export().0 });
        Ok(())
    })
}

/// Copies the bytes of an exported region.
///
/// # Safety
/// `exported` is null or valid for reads.
unsafe fn read(exported: *const ExportedRegion) -> Result<Exported, Failure> {
    // SAFETY: needed because the bytes are memory of C. The caller promises that they are valid; null is an error.
    let exported = unsafe { array(exported, 1) }?;
    Ok(Exported(exported[0].bytes))
}

/// Writes the address of the first byte and the length of an exported region. Each of the two pointers may be null.
///
/// Errors: INVALID if the bytes are not those of `rackloom_region_export`.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_exported_region_address(
    exported: *const ExportedRegion,
    address: *mut Address,
    length: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let (address, length) = (Out::optional(address)?, Out::optional(length)?);
        let (found, bytes) = read(exported)?.address_and_length()?;
        if let Some(address) = address {
            address.set(found.into());
        }
        if let Some(length) = length {
            length.set(bytes);
        }
        Ok(())
    })
}

/// Maps an exported region of a peer of the same server. `rackloom_peer_region_free` frees it.
///
/// Errors: INVALID if the bytes are not those of `rackloom_region_export`; those of `rackloom_peer_region_map`.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_peer_region_import(
    node: NodeHandle,
    exported: *const ExportedRegion,
    timeout_ns: u64,
    region: *mut PeerRegionHandle,
) -> ErrorCode {
    with_pointers!({
        let region = Out::new(region)?;
        let node = handles::get::<Node>(node)?;
        let mapped = node.import(&read(exported)?, Duration::from_nanos(timeout_ns))?;
        region.set(handles::add(Arc::new(mapped))?);
        Ok(())
    })
}
