//! Pools: memory of a node that is kept for later regions.

use std::ffi::c_char;

use rackloom::fabric::{DeviceChoice, Error, MemoryPool, Node};
use rackloom::pool::{ReusePolicies, Statistics};

use crate::codes::{ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles;
use crate::node::NodeHandle;
use crate::pointers::{self, Out, Sized32, put_versioned, text, versioned};
use crate::region::{
    RACKLOOM_DEVICE_HOST, RegionHandle, RegionSettings, device, peer_access, peer_access_number,
};

/// Handle of a pool.
pub type PoolHandle = u64;

/// Reuse memory that other nodes still have mapped when none of them is in an access.
pub const RACKLOOM_REUSE_FOLLOW_EVENT_DEPENDENCIES: u32 = 1;
/// Reuse memory that other nodes had mapped when all of them have closed it.
pub const RACKLOOM_REUSE_OPPORTUNISTIC: u32 = 2;
/// Wait for memory that other nodes use, at most 100 ms, instead of reserving more.
pub const RACKLOOM_REUSE_INTERNAL_DEPENDENCIES: u32 = 4;
/// All policies.
pub const RACKLOOM_REUSE_ALL: u32 = 7;
/// No policy: memory that other nodes had mapped waits for `rackloom_pool_trim`.
pub const RACKLOOM_REUSE_NONE: u32 = 8;

/// Options of a pool. Fields that are 0 have their defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PoolSettings {
    /// sizeof(rackloom_pool_options).
    pub size: u32,
    /// One of `RACKLOOM_DEVICE_...`.
    pub device: u32,
    /// Number of the GPU, or seed of the fake device.
    pub device_number: u64,
    /// Number of bytes above which unused memory is released to the system, whenever a region gives memory back. 0: nothing unused is kept. UINT64_MAX: everything.
    pub release_threshold: u64,
    /// Policies for memory that other nodes still have mapped: a sum of `RACKLOOM_REUSE_...`. 0 is all of them.
    pub reuse: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: needed to copy it by its bytes. It has the layout of C and begins with its size. It consists of numbers, so every bit pattern is a value.
unsafe impl Sized32 for PoolSettings {
    const SIZE_MIN: usize = size_of::<Self>();
}

/// Counters of a pool. `size` is set by the program. Reserved is the memory that the pool holds; used is the part that regions hold, in whole pages, or
/// in whole blocks of 2 MiB on a GPU.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PoolStatistics {
    /// sizeof(rackloom_pool_statistics).
    pub size: u32,
    /// 0.
    pub reserved: u32,
    /// Reserved bytes.
    pub reserved_bytes: u64,
    /// Maximum of the reserved bytes since the last reset.
    pub reserved_bytes_high: u64,
    /// Used bytes.
    pub used_bytes: u64,
    /// Maximum of the used bytes since the last reset.
    pub used_bytes_high: u64,
    /// Number of regions that hold memory of the pool.
    pub regions: u64,
    /// Number of regions allocated so far.
    pub allocations: u64,
    /// Number of regions that have given their memory back so far.
    pub frees: u64,
}

// SAFETY: needed to copy it by its bytes. It has the layout of C and begins with its size. It consists of numbers, so every bit pattern is a value.
unsafe impl Sized32 for PoolStatistics {
    const SIZE_MIN: usize = size_of::<Self>();
}

impl PoolStatistics {
    pub(crate) const fn of(size: u32, statistics: Statistics) -> Self {
        let Statistics { reserved, used, blocks, allocations, frees, .. } = statistics;
        Self {
            size,
            reserved: 0,
            reserved_bytes: reserved.current,
            reserved_bytes_high: reserved.high,
            used_bytes: used.current,
            used_bytes_high: used.high,
            regions: blocks as u64,
            allocations,
            frees,
        }
    }
}

fn policies(number: u32) -> Result<ReusePolicies, Failure> {
    let has = |policy: u32| number & policy != 0;
    match number {
        0 => Ok(ReusePolicies::ALL),
        RACKLOOM_REUSE_NONE => Ok(ReusePolicies::NONE),
        1..=RACKLOOM_REUSE_ALL => Ok(ReusePolicies::NONE
            .follow_event_dependencies(has(RACKLOOM_REUSE_FOLLOW_EVENT_DEPENDENCIES))
            .opportunistic(has(RACKLOOM_REUSE_OPPORTUNISTIC))
            .internal_dependencies(has(RACKLOOM_REUSE_INTERNAL_DEPENDENCIES))),
        _ => Err(Failure::argument(format!("there are no reuse policies {number:#x}"))),
    }
}

fn number_of(policies: ReusePolicies) -> u32 {
    let sum = u32::from(policies.follow_event_dependencies) * RACKLOOM_REUSE_FOLLOW_EVENT_DEPENDENCIES
        + u32::from(policies.opportunistic) * RACKLOOM_REUSE_OPPORTUNISTIC
        + u32::from(policies.internal_dependencies) * RACKLOOM_REUSE_INTERNAL_DEPENDENCIES;
    if sum == 0 { RACKLOOM_REUSE_NONE } else { sum }
}

fn get(pool: PoolHandle) -> Result<MemoryPool, Failure> {
    handles::get::<MemoryPool>(pool)
}

/// Makes a pool that is independent of all other pools of the node.
///
/// Errors: BAD_ARGUMENT for unknown constants; SYSTEM with a hint if there is no such device; INVALID for a second device of the node; CLOSED.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_pool_create(
    node: NodeHandle,
    options: *const PoolSettings,
    pool: *mut PoolHandle,
) -> ErrorCode {
    with_pointers!({
        let pool = Out::new(pool)?;
        let node = handles::get::<Node>(node)?;
        let options = versioned(options)?;
        let reuse = policies(options.reuse)?;
        let made = node.new_pool(device(options.device, options.device_number)?)?;
        made.set_release_threshold(options.release_threshold);
        made.set_reuse_policies(reuse);
        pool.set(handles::add(made)?);
        Ok(())
    })
}

/// Function that returns a pool of a node on a device, or on the host.
type PoolOf = fn(&Node, Option<DeviceChoice>) -> Result<MemoryPool, Error>;

/// Makes a handle of a pool that the node has.
///
/// # Safety
/// `pool` is null or valid for a write.
unsafe fn add_pool_of(
    node: NodeHandle,
    (device_kind, device_number): (u32, u64),
    pool: *mut PoolHandle,
    pool_of: PoolOf,
) -> Result<(), Failure> {
    let pool = Out::new(pool)?;
    let node = handles::get::<Node>(node)?;
    let handle = handles::add(pool_of(&node, device(device_kind, device_number)?)?)?;
    // SAFETY: needed because the place is memory of C. The caller promises that it is valid.
    unsafe { pool.set(handle) };
    Ok(())
}

/// Makes a handle of the node's default pool on a device, one of `RACKLOOM_DEVICE_...`, or on the host. The rack file sets its threshold and its policies.
///
/// Errors: those of `rackloom_pool_create`.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_pool_default(
    node: NodeHandle,
    device_kind: u32,
    device_number: u64,
    pool: *mut PoolHandle,
) -> ErrorCode {
    with_pointers!({ add_pool_of(node, (device_kind, device_number), pool, Node::default_pool) })
}

/// Makes a handle of the node's current pool on a device or on the host: that of `rackloom_pool_set_current`, or else the default pool.
///
/// Errors: those of `rackloom_pool_create`.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_pool_current(
    node: NodeHandle,
    device_kind: u32,
    device_number: u64,
    pool: *mut PoolHandle,
) -> ErrorCode {
    with_pointers!({ add_pool_of(node, (device_kind, device_number), pool, Node::current_pool) })
}

/// Makes a pool the current one of its node, on its device or on the host. The node keeps it until another pool is current.
///
/// Errors: INVALID if the pool belongs to another node.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_pool_set_current(node: NodeHandle, pool: PoolHandle) -> ErrorCode {
    guard::call(|| Ok(handles::get::<Node>(node)?.set_current_pool(&get(pool)?)?))
}

/// Frees the handle of a pool. The pool ends with its last handle and its last region.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_pool_free(pool: PoolHandle) -> ErrorCode {
    guard::call(|| handles::free::<MemoryPool>(pool))
}

/// Allocates a region of `length` bytes from a pool. `tag` is its purpose, which `rackloom_node_allocations` shows. The bytes are zero only if the system has
/// just provided them. `rackloom_region_free` gives the memory back to the pool, once no operation of the node uses it. The pool has the device, so that of
/// the options is 0.
///
/// Errors: those of `rackloom_region_allocate`; BAD_ARGUMENT if the options name a device; SYSTEM with a hint if the device has no memory.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_pool_allocate(
    pool: PoolHandle,
    options: *const RegionSettings,
    length: u64,
    tag: *const c_char,
    region: *mut RegionHandle,
) -> ErrorCode {
    with_pointers!({
        let region = Out::new(region)?;
        let pool = get(pool)?;
        let settings = versioned(options)?;
        if settings.device != RACKLOOM_DEVICE_HOST || settings.device_number != 0 {
            return Err(Failure::argument("the options name a device; hint: the pool has it"));
        }
        let (options, _) = settings.read()?;
        region.set(handles::add(pool.allocate(options, length, text(tag)?)?)?);
        Ok(())
    })
}

/// Sets the access rights of one node to all regions of a pool, those that exist and later ones, in place of those of each region's options. `access` is a
/// sum of `RACKLOOM_ACCESS_...`, or `RACKLOOM_ACCESS_NONE`, or `RACKLOOM_ACCESS_OF_OPTIONS`, which removes the rights that were set. All mappings of the
/// regions end, also those of other nodes.
///
/// Errors: BAD_ARGUMENT for unknown rights; NO_SUCH_NODE; CLOSED.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_pool_set_access(pool: PoolHandle, peer: u32, access: u32) -> ErrorCode {
    guard::call(|| Ok(get(pool)?.set_access(pointers::node(peer)?, peer_access(access)?)?))
}

/// Writes the access rights that were set for a node, or `RACKLOOM_ACCESS_OF_OPTIONS`.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_pool_access(pool: PoolHandle, peer: u32, access: *mut u32) -> ErrorCode {
    with_pointers!({
        let access = Out::new(access)?;
        access.set(peer_access_number(get(pool)?.access(pointers::node(peer)?)));
        Ok(())
    })
}

/// Sets the number of bytes above which a pool releases unused memory to the system.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_pool_set_release_threshold(pool: PoolHandle, bytes: u64) -> ErrorCode {
    guard::call(|| {
        get(pool)?.set_release_threshold(bytes);
        Ok(())
    })
}

/// Sets the policies for memory that other nodes still have mapped: a sum of `RACKLOOM_REUSE_...`, or `RACKLOOM_REUSE_NONE`. 0 is all of them.
///
/// Errors: BAD_ARGUMENT.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_pool_set_reuse(pool: PoolHandle, reuse: u32) -> ErrorCode {
    guard::call(|| {
        get(pool)?.set_reuse_policies(policies(reuse)?);
        Ok(())
    })
}

/// Writes the device of a pool, its release threshold and its policies to the options that the program gives. Set `size` before.
///
/// Errors: BAD_SIZE.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_pool_settings(pool: PoolHandle, options: *mut PoolSettings) -> ErrorCode {
    with_pointers!({
        let pool = get(pool)?;
        let [device, device_number] = crate::region::device_numbers(pool.device());
        put_versioned(options, |size| PoolSettings {
            size,
            device: device as u32,
            device_number,
            release_threshold: pool.release_threshold(),
            reuse: number_of(pool.reuse_policies()),
            reserved: 0,
        })
    })
}

/// Releases unused memory of a pool to the system, the oldest first, until at most `keep_bytes` stay reserved. Memory in use, and memory that other nodes
/// have mapped, stays. `released`, which may be null, gets the number of bytes released.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_pool_trim(
    pool: PoolHandle,
    keep_bytes: u64,
    released: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let released = Out::optional(released)?;
        let bytes = get(pool)?.trim(keep_bytes);
        if let Some(released) = released {
            released.set(bytes);
        }
        Ok(())
    })
}

/// Writes the counters of a pool.
///
/// Errors: BAD_SIZE.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_pool_counters(
    pool: PoolHandle,
    statistics: *mut PoolStatistics,
) -> ErrorCode {
    with_pointers!({
        let found = get(pool)?.statistics();
        put_versioned(statistics, |size| PoolStatistics::of(size, found))
    })
}

/// Resets the maximum values of a pool to the current ones.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_pool_reset_high(pool: PoolHandle) -> ErrorCode {
    guard::call(|| {
        get(pool)?.reset_high();
        Ok(())
    })
}
