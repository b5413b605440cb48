//! Regions: memory of a node that peers may access.

use std::ffi::c_void;

use rackloom::fabric::{
    Access, DeviceChoice, Key, Node, Region, RegionId, RegionOptions, RemoteAddress, Slice,
};

use crate::codes::{ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles;
use crate::node::NodeHandle;
use crate::pointers::{self, Out, Sized32, array, array_mut, versioned};

/// Handle of a region.
pub type RegionHandle = u64;

/// Access right: loads and gets.
pub const RACKLOOM_ACCESS_READ: u32 = 1;
/// Access right: stores, puts and signals.
pub const RACKLOOM_ACCESS_WRITE: u32 = 2;
/// Access right: atomics.
pub const RACKLOOM_ACCESS_ATOMIC: u32 = 4;
/// All access rights.
pub const RACKLOOM_ACCESS_ALL: u32 = 7;
/// No access right, of one node.
pub const RACKLOOM_ACCESS_NONE: u32 = 8;
/// Access rights of the region's options, of one node.
pub const RACKLOOM_ACCESS_OF_OPTIONS: u32 = 16;

/// Memory of the host.
pub const RACKLOOM_DEVICE_HOST: u32 = 0;
/// Memory of the GPU whose number is given.
pub const RACKLOOM_DEVICE_CUDA: u32 = 1;
/// Memory of a fake device, for tests. The number is the seed of its delays.
pub const RACKLOOM_DEVICE_FAKE: u32 = 2;
/// Result of a query: a device of a kind for which this version of the header has no number.
pub const RACKLOOM_DEVICE_OTHER: u32 = u32::MAX;

/// Address of a byte in the memory of a node. The layout does not change.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// Number of the node that owns the memory.
    pub node: u32,
    /// Number of the region at that node.
    pub region: u32,
    /// Offset of the first byte in the region.
    pub offset: u64,
    /// Key of the region.
    pub key: u64,
}

impl Address {
    pub(crate) fn read(self) -> Result<RemoteAddress, Failure> {
        let Self { node, region, offset, key } = self;
        Ok(RemoteAddress { node: pointers::node(node)?, region: RegionId(region), offset, key: Key(key) })
    }
}

impl From<RemoteAddress> for Address {
    fn from(RemoteAddress { node, region, offset, key }: RemoteAddress) -> Self {
        Self { node: node.0.into(), region: region.0, offset, key: key.0 }
    }
}

/// Part of a region of this process, as the local end of a transfer. The layout does not change.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LocalSlice {
    /// Handle of the region.
    pub region: RegionHandle,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

impl LocalSlice {
    pub(crate) fn read(self) -> Result<Slice, Failure> {
        let end = self.offset.saturating_add(self.length);
        Ok(handles::get::<Region>(self.region)?.slice(self.offset..end))
    }
}

/// Number, key and access rights of a region.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RegionSettings {
    /// sizeof(rackloom_region_options).
    pub size: u32,
    /// Number of the region, unique at its owner.
    pub region: u32,
    /// Key that accesses must bear.
    pub key: u64,
    /// Access rights of peers: a sum of `RACKLOOM_ACCESS_...`. 0 is all of them.
    pub access: u32,
    /// One of `RACKLOOM_DEVICE_...`.
    pub device: u32,
    /// Number of the GPU, or seed of the fake device.
    pub device_number: u64,
}

// SAFETY: needed to copy it by its bytes. It has the layout of C and begins with its size. It consists of numbers, so every bit pattern is a value.
unsafe impl Sized32 for RegionSettings {
    const SIZE_MIN: usize = size_of::<Self>();
}

impl RegionSettings {
    pub(crate) fn read(&self) -> Result<(RegionOptions, Option<DeviceChoice>), Failure> {
        let access = match self.access {
            0 => Access::ALL,
            rights => access(rights)?,
        };
        let options = RegionOptions::new(self.region, self.key).access(access);
        Ok((options, device(self.device, self.device_number)?))
    }
}

/// Reads a sum of access rights.
fn access(rights: u32) -> Result<Access, Failure> {
    let has = |right: u32| rights & right != 0;
    if rights == 0 || has(!RACKLOOM_ACCESS_ALL) {
        return Err(Failure::argument(format!("there are no access rights {rights:#x}")));
    }
    Ok(Access {
        read: has(RACKLOOM_ACCESS_READ),
        write: has(RACKLOOM_ACCESS_WRITE),
        atomic: has(RACKLOOM_ACCESS_ATOMIC),
    })
}

/// Reads the access rights of one node; `None` for those of the region's options.
pub(crate) fn peer_access(rights: u32) -> Result<Option<Access>, Failure> {
    match rights {
        RACKLOOM_ACCESS_OF_OPTIONS => Ok(None),
        RACKLOOM_ACCESS_NONE => Ok(Some(Access::NONE)),
        rights => access(rights).map(Some),
    }
}

/// Returns the number of the access rights of one node; `None` for those of the region's options.
pub(crate) fn peer_access_number(access: Option<Access>) -> u32 {
    let Some(Access { read, write, atomic }) = access else { return RACKLOOM_ACCESS_OF_OPTIONS };
    let sum = u32::from(read) * RACKLOOM_ACCESS_READ
        + u32::from(write) * RACKLOOM_ACCESS_WRITE
        + u32::from(atomic) * RACKLOOM_ACCESS_ATOMIC;
    if sum == 0 { RACKLOOM_ACCESS_NONE } else { sum }
}

/// Returns kind and number of a device; zeros for the host.
pub(crate) const fn device_numbers(device: Option<DeviceChoice>) -> [u64; 2] {
    match device {
        None => [RACKLOOM_DEVICE_HOST as u64, 0],
        Some(DeviceChoice::Cuda(number)) => [RACKLOOM_DEVICE_CUDA as u64, number as u64],
        Some(DeviceChoice::Fake(seed)) => [RACKLOOM_DEVICE_FAKE as u64, seed],
        // The compiler requires this arm. A test compares the others with the variants of the choice.
        Some(_) => [RACKLOOM_DEVICE_OTHER as u64, 0],
    }
}

/// Returns the device; `None` for the host.
pub(crate) fn device(kind: u32, number: u64) -> Result<Option<DeviceChoice>, Failure> {
    match kind {
        RACKLOOM_DEVICE_HOST => Ok(None),
        RACKLOOM_DEVICE_CUDA => {
            let number = u32::try_from(number);
            Ok(Some(DeviceChoice::Cuda(number.map_err(|_| Failure::argument("there is no such GPU"))?)))
        }
        RACKLOOM_DEVICE_FAKE => Ok(Some(DeviceChoice::Fake(number))),
        _ => Err(Failure::argument(format!("there is no kind of device {kind}"))),
    }
}

/// Allocates a region of `length` zeroed bytes, on the host or on a device. Nodes of the same server and tenant may map a region of the host.
///
/// Errors: REGION_EXISTS, REGION_IN_USE, SYSTEM, CLOSED; OVER_QUOTA on the seat of a job; INVALID for a second device of the node.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_region_allocate(
    node: NodeHandle,
    options: *const RegionSettings,
    length: u64,
    region: *mut RegionHandle,
) -> ErrorCode {
    with_pointers!({
        let region = Out::new(region)?;
        let node = handles::get::<Node>(node)?;
        let made = match versioned(options)?.read()? {
            (options, None) => node.allocate(options, length)?,
            (options, Some(device)) => node.allocate_on_device(options, device, length)?,
        };
        region.set(handles::add(made)?);
        Ok(())
    })
}

/// Makes a region of `length` bytes at `base` that the program owns, on the host or on a device. The bytes stay valid until
/// `rackloom_region_deregister` has returned OK. Meanwhile the library and peers read and write them.
///
/// Errors: those of `rackloom_region_allocate`.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_region_register(
    node: NodeHandle,
    options: *const RegionSettings,
    base: *mut c_void,
    length: u64,
    region: *mut RegionHandle,
) -> ErrorCode {
    with_pointers!({
        let region = Out::new(region)?;
        let node = handles::get::<Node>(node)?;
        let (options, device) = versioned(options)?.read()?;
        // The array is checked here and used by nothing in this call.
        let host = |base: *mut c_void| array::<u8>(base.cast_const().cast(), length).map(<[u8]>::len);
        let made = match device {
            None => node.register_raw(options, base.cast(), host(base)?)?,
            Some(device) => node.register_on_device(options, device, base.addr() as u64, length)?,
        };
        region.set(handles::add(made)?);
        Ok(())
    })
}

/// Frees a region. Access of peers ends at once. Memory of the program must stay valid until `rackloom_node_wait_until_free` has returned OK: better
/// use `rackloom_region_deregister`.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_region_free(region: RegionHandle) -> ErrorCode {
    guard::call(|| handles::free::<Region>(region))
}

/// Frees a region and waits until no operation of its node uses its bytes. After OK nothing accesses the bytes.
///
/// Errors: INVALID if another thread, a batch or a collective still uses the region, and REGION_IN_USE if a wait or a receive still uses it after
/// ten seconds. The handle is freed all the same, and `rackloom_node_wait_until_free` waits for the rest.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_region_deregister(region: RegionHandle) -> ErrorCode {
    guard::call(|| {
        handles::remove::<Region>(region)?.deregister::<u8>()?;
        Ok(())
    })
}

/// Returns the length of a region in bytes.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_region_length(region: RegionHandle, length: *mut u64) -> ErrorCode {
    with_pointers!({
        let length = Out::new(length)?;
        length.set(handles::get::<Region>(region)?.len());
        Ok(())
    })
}

/// Returns the address with which peers access the byte at `offset` of a region.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_region_address(
    region: RegionHandle,
    offset: u64,
    address: *mut Address,
) -> ErrorCode {
    with_pointers!({
        let address = Out::new(address)?;
        address.set(handles::get::<Region>(region)?.address(offset).into());
        Ok(())
    })
}

/// Returns the first byte of a region of the host. Peers may change the bytes at any time: read words of 4 and 8 bytes with atomic loads, and other data
/// after its signal. The pointer is valid until the region is freed and its operations have ended.
///
/// Errors: INVALID for a region on a device.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_region_pointer(
    region: RegionHandle,
    pointer: *mut *mut c_void,
) -> ErrorCode {
    with_pointers!({
        let pointer = Out::new(pointer)?;
        let base = handles::get::<Region>(region)?.host_address();
        let none = || Failure::new(ErrorCode::Invalid, "the region is on a device");
        pointer.set(base.ok_or_else(none)?.as_ptr().cast());
        Ok(())
    })
}

/// Returns the address of a region in the memory of its device, for kernels.
///
/// Errors: INVALID for a region of the host.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_region_device_address(
    region: RegionHandle,
    address: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let address = Out::new(address)?;
        let found = handles::get::<Region>(region)?.device_address();
        let none = || Failure::new(ErrorCode::Invalid, "the region has no address on a device");
        address.set(found.ok_or_else(none)?);
        Ok(())
    })
}

/// Copies `length` bytes at `data` into a region, at `offset`. An aligned word of 4 or 8 bytes is written at once.
///
/// Errors: INVALID if they do not fit; FAILED if the device has failed.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_region_write(
    region: RegionHandle,
    offset: u64,
    data: *const c_void,
    length: u64,
) -> ErrorCode {
    with_pointers!({
        let region = handles::get::<Region>(region)?;
        Ok(region.write(offset, array::<u8>(data.cast(), length)?)?)
    })
}

/// Copies `length` bytes of a region, from `offset`, to `data`. An aligned word of 4 or 8 bytes is read at once.
///
/// Errors: INVALID if the region has fewer bytes; FAILED if the device has failed.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_region_read(
    region: RegionHandle,
    offset: u64,
    data: *mut c_void,
    length: u64,
) -> ErrorCode {
    with_pointers!({
        let region = handles::get::<Region>(region)?;
        Ok(region.read(offset, array_mut::<u8>(data.cast(), length)?)?)
    })
}
