//! Pools of blocks: many small allocations in a few regions of a node.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use rackloom::fabric::{Node, NodePool, RegionId, Tenant};
use rackloom::pool::{Block, BlockRequest};

use crate::codes::{ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles::{self, Shared};
use crate::leaks::{LeakFunction, Listener, json_of};
use crate::library::{TextHandle, add_text};
use crate::node::NodeHandle;
use crate::pointers::{Out, Sized32, put_versioned, text, versioned};
use crate::pool::PoolStatistics;
use crate::region::{Address, RACKLOOM_DEVICE_HOST, RegionHandle, RegionSettings};

/// Handle of a pool of blocks.
pub type BlockPoolHandle = u64;

/// Region and size of a pool of blocks. Fields that are 0 have their defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BlockPoolSettings {
    /// sizeof(rackloom_block_pool_options).
    pub size: u32,
    /// Number of the first region. A pool that grows numbers its regions upwards from it.
    pub region: u32,
    /// Key of all regions.
    pub key: u64,
    /// Access rights of peers to all regions: a sum of `RACKLOOM_ACCESS_...`. 0 is all of them.
    pub access: u32,
    /// 0.
    pub reserved: u32,
    /// Length of the first region, in bytes. It is rounded up to a multiple of 64.
    pub bytes: u64,
    /// Smallest region that the pool adds when it has no free space, in bytes. 0: the pool does not grow.
    pub growth_bytes: u64,
    /// Maximum number of bytes of all regions together. 0: no maximum.
    pub reserved_bytes_max: u64,
}

// SAFETY: needed to copy it by its bytes. It has the layout of C and begins with its size. It consists of numbers, so every bit pattern is a value.
unsafe impl Sized32 for BlockPoolSettings {
    const SIZE_MIN: usize = size_of::<Self>();
}

/// Block of memory that a pool has allocated. Its bytes are those from `offset` of the region. The layout does not
/// change.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BlockRecord {
    /// Number of the region of the block.
    pub region: u32,
    /// 0.
    pub reserved: u32,
    /// Offset of the first byte within the region.
    pub offset: u64,
    /// Requested length, in bytes.
    pub bytes: u64,
    /// Number that distinguishes the block from an earlier one at the same offset.
    pub serial: u64,
}

impl From<Block> for BlockRecord {
    fn from(block: Block) -> Self {
        let Block { region, offset, bytes, .. } = block;
        Self { region: region.0, reserved: 0, offset, bytes, serial: block.serial() }
    }
}

impl BlockRecord {
    fn find(self, pool: &NodePool) -> Result<Block, Failure> {
        let Self { region, offset, serial, .. } = self;
        pool.find(RegionId(region), offset, serial).ok_or_else(|| {
            let text = format!(
                "region {region} has no block of this pool at {offset:#x}; hint: it was freed before"
            );
            Failure::new(ErrorCode::Invalid, text)
        })
    }
}

fn with<R>(
    pool: BlockPoolHandle,
    act: impl FnOnce(&mut NodePool) -> Result<R, Failure>,
) -> Result<R, Failure> {
    handles::get::<Arc<Shared<NodePool>>>(pool)?.with(act)
}

/// Reads the number of a tenant.
fn tenant(number: u32) -> Result<Tenant, Failure> {
    let none = |_| Failure::argument(format!("there is no tenant {number}"));
    u16::try_from(number).map(Tenant).map_err(none)
}

/// Makes a pool of blocks in regions of a node, on the host. The pool keeps the node until it is freed.
///
/// Errors: BAD_ARGUMENT for unknown access rights, or for a maximum below the length of the first region; those of
/// `rackloom_region_allocate`.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_block_pool_create(
    node: NodeHandle,
    options: *const BlockPoolSettings,
    pool: *mut BlockPoolHandle,
) -> ErrorCode {
    with_pointers!({
        let pool = Out::new(pool)?;
        let node = handles::get::<Node>(node)?;
        let BlockPoolSettings { size, region, key, access, bytes, growth_bytes, reserved_bytes_max, .. } =
            versioned(options)?;
        let max = if reserved_bytes_max == 0 { u64::MAX } else { reserved_bytes_max };
        if max < bytes {
            return Err(Failure::argument(
                "the maximum of reserved bytes is below the length of the first region",
            ));
        }
        let first =
            RegionSettings { size, region, key, access, device: RACKLOOM_DEVICE_HOST, device_number: 0 };
        let (first, _) = first.read()?;
        let made = node.pool(first, bytes)?.growing(growth_bytes, max);
        pool.set(handles::add(Shared::new(made))?);
        Ok(())
    })
}

/// Frees a pool of blocks. Its regions end, also those with blocks that were not freed.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_block_pool_free(pool: BlockPoolHandle) -> ErrorCode {
    guard::call(|| handles::free::<Arc<Shared<NodePool>>>(pool))
}

/// Allocates a block of `bytes`, which may be 0. `align` is a power of two up to 4096, or 0; each block is aligned to
/// 64 bytes. `tenant` is the owner whose limit counts, 0 unless the program has several. `tag` is the purpose of the
/// block, which reports of leaks show. The bytes are not zeroed if an earlier block had them.
///
/// Errors: NO_SPACE if no free part is long enough and the pool may not grow that far; OVER_QUOTA; BAD_ARGUMENT; those
/// of `rackloom_region_allocate` if the pool had to grow.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_block_allocate(
    pool: BlockPoolHandle,
    tenant: u32,
    bytes: u64,
    align: u64,
    tag: *const c_char,
    block: *mut BlockRecord,
) -> ErrorCode {
    with_pointers!({
        let block = Out::new(block)?;
        let wanted = BlockRequest::new(self::tenant(tenant)?, bytes, text(tag)?).align(align.max(1));
        block.set(with(pool, |pool| Ok(pool.allocate(wanted)?))?.into());
        Ok(())
    })
}

/// Frees a block. Peers may access its bytes until its region ends, and should no longer do so.
///
/// Errors: INVALID if the block belongs to another pool, or was freed before.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_block_free(pool: BlockPoolHandle, block: BlockRecord) -> ErrorCode {
    guard::call(|| {
        with(pool, |pool| {
            let block = block.find(pool)?;
            Ok(pool.free(block)?)
        })
    })
}

/// Writes the address with which peers access the byte at `offset` of a block.
///
/// Errors: INVALID if the block belongs to another pool, was freed, or ends before the offset.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_block_address(
    pool: BlockPoolHandle,
    block: BlockRecord,
    offset: u64,
    address: *mut Address,
) -> ErrorCode {
    with_pointers!({
        let address = Out::new(address)?;
        let found = with(pool, |pool| {
            let found = block.find(pool)?;
            let outside = || Failure::new(ErrorCode::Invalid, "the offset is not within the block");
            let is_within = offset <= found.bytes;
            is_within.then(|| pool.address(&found, offset)).flatten().ok_or_else(outside)
        })?;
        address.set(found.into());
        Ok(())
    })
}

/// Makes a handle of the region of a block, for slices and pointers: the block is the part `{region, block.offset,
/// block.bytes}`. Blocks with one number of the region share one handle. While the handle exists,
/// `rackloom_block_pool_trim` and the end of the pool do not end the region for this node.
///
/// Errors: INVALID if the block belongs to another pool, or was freed.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_block_region(
    pool: BlockPoolHandle,
    block: BlockRecord,
    region: *mut RegionHandle,
) -> ErrorCode {
    with_pointers!({
        let region = Out::new(region)?;
        let found = with(pool, |pool| {
            let block = block.find(pool)?;
            let none = || Failure::new(ErrorCode::Invalid, "the region of the block has ended");
            pool.region(&block).cloned().ok_or_else(none)
        })?;
        region.set(handles::add(found)?);
        Ok(())
    })
}

/// Ends regions of a pool without a block, the latest first, until at most `keep_bytes` stay reserved. `released`,
/// which may be null, gets the number of bytes released.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_block_pool_trim(
    pool: BlockPoolHandle,
    keep_bytes: u64,
    released: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let released = Out::optional(released)?;
        let bytes = with(pool, |pool| Ok(pool.trim(keep_bytes)))?;
        if let Some(released) = released {
            released.set(bytes);
        }
        Ok(())
    })
}

/// Sets the limit of a tenant in bytes, in whole units of 64 bytes for each block. UINT64_MAX removes the limit. Blocks
/// that the tenant has stay.
///
/// Errors: BAD_ARGUMENT.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_block_pool_set_quota(
    pool: BlockPoolHandle,
    tenant: u32,
    limit_bytes: u64,
) -> ErrorCode {
    guard::call(|| {
        let (tenant, limit) = (self::tenant(tenant)?, Some(limit_bytes).filter(|limit| *limit != u64::MAX));
        with(pool, |pool| {
            pool.set_quota(tenant, limit);
            Ok(())
        })
    })
}

/// Writes the bytes that the blocks of a tenant take, and their maximum since the last reset. Each of the two pointers
/// may be null.
///
/// Errors: BAD_ARGUMENT.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_block_pool_usage(
    pool: BlockPoolHandle,
    tenant: u32,
    bytes: *mut u64,
    bytes_high: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let places = [Out::optional(bytes)?, Out::optional(bytes_high)?];
        let tenant = self::tenant(tenant)?;
        let usage = with(pool, |pool| Ok(pool.usage(tenant)))?;
        for (place, bytes) in places.into_iter().zip([usage.current, usage.high]) {
            if let Some(place) = place {
                place.set(bytes);
            }
        }
        Ok(())
    })
}

/// Writes the counters of a pool of blocks. Used bytes are those of blocks, in whole units of 64 bytes, and `regions`
/// is the number of blocks.
///
/// Errors: BAD_SIZE.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_block_pool_counters(
    pool: BlockPoolHandle,
    statistics: *mut PoolStatistics,
) -> ErrorCode {
    with_pointers!({
        let found = with(pool, |pool| Ok(pool.statistics()))?;
        put_versioned(statistics, |size| PoolStatistics::of(size, found))
    })
}

/// Resets the maximum values of a pool of blocks and of its tenants to the current ones.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_block_pool_reset_high(pool: BlockPoolHandle) -> ErrorCode {
    guard::call(|| {
        with(pool, |pool| {
            pool.reset_high();
            Ok(())
        })
    })
}

/// Makes a text of the blocks that are allocated now: a JSON array of objects with `region`, `offset`, `bytes`,
/// `tenant` and `tag`.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_block_pool_leaks(
    pool: BlockPoolHandle,
    leaks: *mut TextHandle,
) -> ErrorCode {
    with_pointers!({
        let leaks = Out::new(leaks)?;
        let report = with(pool, |pool| Ok(pool.leaks()))?;
        leaks.set(add_text(json_of(&report))?);
        Ok(())
    })
}

/// Sets the function that is called when a pool of blocks ends and blocks are still allocated. It replaces one that was
/// set before. `context`, which may be null, stays valid until the pool has ended.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_block_pool_on_leak(
    pool: BlockPoolHandle,
    function: LeakFunction,
    context: *mut c_void,
) -> ErrorCode {
    with_pointers!({
        let listener = Listener::new(function, context)?;
        with(pool, |pool| {
            pool.on_leak(move |report| listener.report(report));
            Ok(())
        })
    })
}
