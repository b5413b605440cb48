//! Pools of memory, and the reports and settings that all kinds of pools share.
//!
//! A [`Pool`] allocates blocks. It reserves regions and allocates blocks from them. Its regions belong to a node of a program
//! ([`crate::fabric::NodePool`]) or to the memory of a member that runs without that API ([`HostMemory`]). A [`crate::fabric::MemoryPool`] allocates
//! whole regions of a node, on the host or on a device.
//!
//! *Reserved* is the memory that the pool holds; *used* is the memory that its callers hold. The current and the maximum value of each are counted. A
//! pool that may grow reserves another region when no region has enough free space. Trimming a pool releases its unused regions. Each tenant may have
//! a limit. Blocks that are never freed are listed with size and tag.
//!
//! A region is the unit of export, registration and revocation. Blocks of tenants that must be isolated from each other therefore belong in separate
//! pools. The pool does not handle keys or peers. It does not zero memory that is allocated again.

mod accounts;
pub(crate) mod cache;
mod free_list;
mod leaks;

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use rackloom_protocol::{RegionId, Tenant};

use crate::memory::{AllocateError, HostMemory};

use accounts::Accounts;
use free_list::FreeList;

pub use crate::memory::{QuotaExceeded, Statistics, Usage};
pub use cache::{REUSE_WAIT_MS, ReusePolicies};
pub use leaks::{Leak, LeakReport};

/// Granularity of blocks, in bytes. Blocks begin and end at multiples of it: a cache line, so that two blocks never share one.
pub const GRANULE_BYTES: u64 = 64;
/// Largest alignment, in bytes: a region begins at a page boundary.
pub const ALIGN_BYTES_MAX: u64 = 4096;

/// Sizes with which a pool reserves memory.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolOptions {
    /// Number of the first region. Later regions are numbered upwards from it.
    pub first_region: RegionId,
    /// Smallest region, in bytes, that the pool adds when it has no free space. 0: the pool does not grow.
    pub growth_bytes: u64,
    /// Maximum number of bytes that the pool reserves.
    pub reserved_bytes_max: u64,
}

impl PoolOptions {
    /// Returns the options of a pool that keeps its initial size.
    #[must_use]
    pub const fn fixed(first_region: RegionId) -> Self {
        Self { first_region, growth_bytes: 0, reserved_bytes_max: u64::MAX }
    }

    /// Sets the pool to add regions of at least `growth_bytes` when it has no free space, up to a total of `reserved_bytes_max`.
    #[must_use]
    pub const fn growing(self, growth_bytes: u64, reserved_bytes_max: u64) -> Self {
        Self { growth_bytes, reserved_bytes_max, ..self }
    }
}

/// Size, alignment and owner of a block to allocate.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockRequest<'a> {
    /// Tenant that the block is charged to.
    pub tenant: Tenant,
    /// Size in bytes. 0 is allowed, and still allocates a block.
    pub bytes: u64,
    /// Alignment in bytes: a power of two, at most [`ALIGN_BYTES_MAX`]. Every block is aligned to at least [`GRANULE_BYTES`].
    pub align: u64,
    /// Purpose of the block. The leak report shows it.
    pub tag: &'a str,
}

impl<'a> BlockRequest<'a> {
    /// Returns a request for `bytes` at any address. `tag` is the purpose of the block.
    #[must_use]
    pub const fn new(tenant: Tenant, bytes: u64, tag: &'a str) -> Self {
        Self { tenant, bytes, align: 1, tag }
    }

    /// Sets the alignment of the block, in bytes.
    #[must_use]
    pub const fn align(self, align: u64) -> Self {
        Self { align, ..self }
    }
}

/// A block of memory that a pool allocated.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Region of the block.
    pub region: RegionId,
    /// Offset of the first byte within the region.
    pub offset: u64,
    /// Requested size, in bytes.
    pub bytes: u64,
    /// Number that distinguishes this block from an earlier one at the same offset.
    serial: u64,
}

impl Block {
    /// Returns the number that distinguishes this block from an earlier one at the same offset. [`Pool::find`] finds the block by it.
    #[must_use]
    pub const fn serial(&self) -> u64 {
        self.serial
    }
}

/// Error of a pool. The pool is unchanged after an error.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The block would exceed the tenant's limit.
    #[error(transparent)]
    Quota(#[from] QuotaExceeded),
    /// No free part is large enough, and the pool may not grow that far.
    #[error(
        "no space for {requested} bytes: largest free part {largest}, reserved {reserved} of at most {max}"
    )]
    NoSpace {
        /// Requested bytes, rounded up.
        requested: u64,
        /// Length of the longest free part, in bytes.
        largest: u64,
        /// Bytes reserved now.
        reserved: u64,
        /// Bytes that the pool may reserve.
        max: u64,
    },
    /// The alignment is not a power of two, or too large.
    #[error("alignment {0} is not a power of two up to {ALIGN_BYTES_MAX}")]
    BadAlignment(u64),
    /// The block is not allocated: it belongs to another pool, or was freed before.
    #[error("{region} + {offset:#x} is not an allocated block (freed twice?)")]
    NotAllocated {
        /// Region of the block.
        region: RegionId,
        /// Offset of the block within the region.
        offset: u64,
    },
    /// The system has no memory for another region.
    #[error("cannot reserve memory: {0}")]
    Memory(#[from] AllocateError),
    /// No region can be that large.
    #[error("cannot reserve memory: {0}")]
    System(#[from] io::Error),
}

/// Memory that a pool takes its regions from.
///
/// `Send`, not `Sync`: one thread uses it at a time, and it may move to another thread.
pub trait PoolMemory: Send {
    /// Adds a region of `bytes` under this number.
    ///
    /// # Errors
    /// [`PoolError`] if there is no memory, or the number is taken. Nothing is added then.
    fn reserve(&mut self, region: RegionId, bytes: u64) -> Result<(), PoolError>;

    /// Removes a region. Returns `false` if it must stay, for example because it is exported.
    fn release(&mut self, region: RegionId) -> bool;
}

impl PoolMemory for HostMemory {
    fn reserve(&mut self, region: RegionId, bytes: u64) -> Result<(), PoolError> {
        self.allocate(region, bytes)?;
        Ok(())
    }

    fn release(&mut self, region: RegionId) -> bool {
        self.free(region).is_ok()
    }
}

/// A pool of blocks. Its regions belong to the [`PoolMemory`] that is passed to each call, which must always be the same one.
///
/// `Send`, not `Sync`: one thread uses it at a time, and it may move to another thread.
pub struct Pool {
    options: PoolOptions,
    arenas: Vec<PoolRegion>,
    region_next: u32,
    live: BTreeMap<(RegionId, u64), Live>,
    serial_next: u64,
    accounts: Accounts,
    statistics: Statistics,
    on_leak: Option<LeakListener>,
}

type LeakListener = Box<dyn FnMut(&LeakReport) + Send>;

#[derive(Debug)]
struct PoolRegion {
    region: RegionId,
    free: FreeList,
}

#[derive(Debug)]
struct Live {
    serial: u64,
    bytes: u64,
    taken: u64,
    tenant: Tenant,
    tag: String,
}

impl Pool {
    /// Creates a pool that reserves `bytes`, rounded up to [`GRANULE_BYTES`], and more when needed, if the options allow it.
    ///
    /// # Errors
    /// [`PoolError::Memory`] if the system cannot provide the region, [`PoolError::System`] if `bytes` exceeds the address space.
    pub fn new(memory: &mut impl PoolMemory, bytes: u64, options: PoolOptions) -> Result<Self, PoolError> {
        let mut pool = Self {
            options,
            arenas: Vec::new(),
            region_next: options.first_region.0,
            live: BTreeMap::new(),
            serial_next: 0,
            accounts: Accounts::default(),
            statistics: Statistics::default(),
            on_leak: None,
        };
        let bytes = round(bytes).ok_or(io::ErrorKind::OutOfMemory).map_err(io::Error::from)?;
        pool.reserve(memory, bytes)?;
        Ok(pool)
    }

    /// Sets the limit of a tenant, in bytes; `None` removes the limit. Blocks that the tenant already has remain allocated.
    pub fn set_quota(&mut self, tenant: Tenant, limit: Option<u64>) {
        self.accounts.set_limit(tenant, limit);
    }

    /// Lets the pool add regions of at least `growth_bytes` when it has no free space, up to `reserved_bytes_max` in all.
    pub fn set_growth(&mut self, growth_bytes: u64, reserved_bytes_max: u64) {
        self.options = self.options.growing(growth_bytes, reserved_bytes_max);
    }

    /// Sets the function that is called with the leak report if blocks are still allocated when the pool is dropped.
    pub fn on_leak(&mut self, listener: impl FnMut(&LeakReport) + Send + 'static) {
        self.on_leak = Some(Box::new(listener));
    }

    /// Allocates a block.
    ///
    /// # Errors
    /// [`PoolError::BadAlignment`], [`PoolError::Quota`], [`PoolError::NoSpace`], and [`PoolError::Memory`] if the pool had to grow. No block is
    /// allocated then.
    pub fn allocate(
        &mut self,
        memory: &mut impl PoolMemory,
        wanted: BlockRequest<'_>,
    ) -> Result<Block, PoolError> {
        if !wanted.align.is_power_of_two() || wanted.align > ALIGN_BYTES_MAX {
            return Err(PoolError::BadAlignment(wanted.align));
        }
        let taken = round(wanted.bytes).unwrap_or(u64::MAX);
        self.accounts.check(wanted.tenant, taken)?;
        let align = wanted.align.max(GRANULE_BYTES);
        let (region, offset) = match self.take(taken, align) {
            Some(index) => index,
            None => {
                self.grow(memory, taken)?;
                self.take(taken, align).ok_or_else(|| self.no_space(taken))?
            }
        };
        let serial = self.serial_next;
        self.serial_next += 1;
        let BlockRequest { tenant, bytes, tag, .. } = wanted;
        self.live.insert((region, offset), Live { serial, bytes, taken, tenant, tag: tag.to_owned() });
        self.accounts.add(tenant, taken);
        self.statistics.hand_out(taken);
        Ok(Block { region, offset, bytes, serial })
    }

    /// Returns the allocated block that begins at `offset` of a region and has this serial number. `None` if there is none, or if it was freed.
    #[must_use]
    pub fn find(&self, region: RegionId, offset: u64, serial: u64) -> Option<Block> {
        let live = self.live.get(&(region, offset)).filter(|live| live.serial == serial)?;
        Some(Block { region, offset, bytes: live.bytes, serial })
    }

    /// Frees a block.
    ///
    /// # Errors
    /// [`PoolError::NotAllocated`] if the block belongs to another pool, or was freed before.
    pub fn free(&mut self, block: Block) -> Result<(), PoolError> {
        let Block { region, offset, serial, .. } = block;
        let not_allocated = PoolError::NotAllocated { region, offset };
        if self.live.get(&(region, offset)).is_none_or(|live| live.serial != serial) {
            return Err(not_allocated);
        }
        let (Some(live), Some(arena)) = (
            self.live.remove(&(region, offset)),
            self.arenas.iter_mut().find(|arena| arena.region == region),
        ) else {
            return Err(not_allocated);
        };
        arena.free.give(offset, live.taken);
        self.accounts.remove(live.tenant, live.taken);
        self.statistics.take_back(live.taken);
        Ok(())
    }

    /// Releases regions without a block to the system, the latest first, as long as more than `keep_bytes` stay reserved. A region that is exported
    /// stays. Returns the number of bytes released.
    pub fn trim(&mut self, memory: &mut impl PoolMemory, keep_bytes: u64) -> u64 {
        let before = self.statistics.reserved.current;
        for index in (0..self.arenas.len()).rev() {
            let arena = &self.arenas[index];
            let bytes = arena.free.capacity();
            let is_needed = self.statistics.reserved.current - bytes < keep_bytes;
            if is_needed || !arena.free.is_whole() || !memory.release(arena.region) {
                continue;
            }
            self.arenas.remove(index);
            self.statistics.reserved.remove(bytes);
        }
        before - self.statistics.reserved.current
    }

    /// Returns the pool's counters.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Returns the memory usage of a tenant.
    #[must_use]
    pub fn usage(&self, tenant: Tenant) -> Usage {
        self.accounts.usage(tenant)
    }

    /// Resets the recorded maximum values to the current ones.
    pub fn reset_high(&mut self) {
        self.statistics.reserved.reset_high();
        self.statistics.used.reset_high();
        self.accounts.reset_high();
    }

    /// Returns the regions that the pool holds now, for registration and export.
    pub fn regions(&self) -> impl Iterator<Item = RegionId> {
        self.arenas.iter().map(|arena| arena.region)
    }

    /// Returns a report of the blocks that are still allocated.
    #[must_use]
    pub fn leaks(&self) -> LeakReport {
        let leak = |(&(region, offset), live): (&(RegionId, u64), &Live)| Leak {
            region,
            offset,
            bytes: live.bytes,
            tenant: live.tenant,
            tag: live.tag.clone(),
        };
        LeakReport { leaks: self.live.iter().map(leak).collect() }
    }

    fn take(&mut self, bytes: u64, align: u64) -> Option<(RegionId, u64)> {
        self.arenas.iter_mut().find_map(|arena| Some((arena.region, arena.free.take(bytes, align)?)))
    }

    /// Reserves a region with at least `bytes` free at its start, where every alignment is met.
    fn grow(&mut self, memory: &mut impl PoolMemory, bytes: u64) -> Result<(), PoolError> {
        if self.options.growth_bytes == 0 {
            return Err(self.no_space(bytes));
        }
        let left = self.options.reserved_bytes_max.saturating_sub(self.statistics.reserved.current);
        let preferred = round(self.options.growth_bytes).unwrap_or(bytes).max(bytes);
        if bytes > left {
            return Err(self.no_space(bytes));
        }
        self.reserve(memory, preferred.min(left - left % GRANULE_BYTES))
    }

    fn reserve(&mut self, memory: &mut impl PoolMemory, bytes: u64) -> Result<(), PoolError> {
        let max = self.options.reserved_bytes_max;
        if self.statistics.reserved.current.checked_add(bytes).is_none_or(|sum| sum > max) {
            return Err(self.no_space(bytes));
        }
        let region = RegionId(self.region_next);
        memory.reserve(region, bytes)?;
        self.region_next += 1;
        self.arenas.push(PoolRegion { region, free: FreeList::new(bytes) });
        self.statistics.reserved.add(bytes);
        Ok(())
    }

    fn no_space(&self, requested: u64) -> PoolError {
        let largest = self.arenas.iter().map(|arena| arena.free.largest()).max().unwrap_or(0);
        let (reserved, max) = (self.statistics.reserved.current, self.options.reserved_bytes_max);
        PoolError::NoSpace { requested, largest, reserved, max }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Pool")
            .field("options", &self.options)
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}

impl Drop for Pool {
    /// Calls the leak listener if blocks are still allocated. The regions stay in the memory that holds them.
    fn drop(&mut self) {
        let report = self.leaks();
        if let Some(listener) = self.on_leak.as_mut().filter(|_| !report.is_clean()) {
            listener(&report);
        }
    }
}

/// Returns `bytes` rounded up to whole granules, at least one granule.
fn round(bytes: u64) -> Option<u64> {
    bytes.max(1).checked_next_multiple_of(GRANULE_BYTES)
}
