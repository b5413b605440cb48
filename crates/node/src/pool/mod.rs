//! A pool of host memory: regions are reserved from the system, blocks are handed out of them.
//!
//! *Reserved* is what the pool holds, *used* is what its callers hold; each is counted now and at most. A pool that may
//! grow reserves another region when none has room, and gives whole regions back when trimmed. Tenants may have a limit
//! each. Whatever is still alive at the end is listed with its size and tag.
//!
//! Because a region is what can be exported, registered and revoked, blocks of tenants that must be apart belong into
//! pools of their own. The pool knows no keys and no peers. It does not zero what is handed out again.

mod accounts;
mod free_list;
mod leaks;

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use rackloom_protocol::{RegionId, Tenant};

use crate::memory::{AllocateError, HostMemory, MemoryOptions};

use accounts::Accounts;
use free_list::FreeList;

pub use crate::memory::{QuotaExceeded, Statistics, Usage};
pub use leaks::{Leak, LeakReport};

/// Blocks begin and end at multiples of this: a cache line, so that two blocks never share one.
pub const GRANULE_BYTES: u64 = 64;
/// Largest alignment: a region begins at a page.
pub const ALIGN_BYTES_MAX: u64 = 4096;

/// How a pool reserves memory.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolOptions {
    /// Name of the first region; later ones count up from here.
    pub first_region: RegionId,
    /// Smallest region that the pool adds when it has no room; 0: it does not grow.
    pub growth_bytes: u64,
    /// Most bytes that the pool ever reserves.
    pub reserved_bytes_max: u64,
    /// Pages of the regions.
    pub memory: MemoryOptions,
}

impl PoolOptions {
    /// A pool that keeps its first size.
    #[must_use]
    pub fn fixed(first_region: RegionId) -> Self {
        let memory = MemoryOptions::default();
        Self { first_region, growth_bytes: 0, reserved_bytes_max: u64::MAX, memory }
    }

    /// The same, but it adds regions of at least `growth_bytes` when it has no room, up to `reserved_bytes_max` in all.
    #[must_use]
    pub const fn growing(self, growth_bytes: u64, reserved_bytes_max: u64) -> Self {
        Self { growth_bytes, reserved_bytes_max, ..self }
    }

    /// The same with these pages.
    #[must_use]
    pub const fn memory(self, memory: MemoryOptions) -> Self {
        Self { memory, ..self }
    }
}

/// What a caller wants.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wanted<'a> {
    /// On whose account.
    pub tenant: Tenant,
    /// Bytes; 0 is a block all the same.
    pub bytes: u64,
    /// A power of two, at most [`ALIGN_BYTES_MAX`]. Smaller ones than [`GRANULE_BYTES`] are met anyway.
    pub align: u64,
    /// What for; shown if it leaks.
    pub tag: &'a str,
}

impl<'a> Wanted<'a> {
    /// Bytes at any address. `tag`: what for.
    #[must_use]
    pub const fn new(tenant: Tenant, bytes: u64, tag: &'a str) -> Self {
        Self { tenant, bytes, align: 1, tag }
    }

    /// The same at a multiple of `align`.
    #[must_use]
    pub const fn align(self, align: u64) -> Self {
        Self { align, ..self }
    }
}

/// Bytes handed out by a pool.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Which region.
    pub region: RegionId,
    /// First byte.
    pub offset: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Tells this block from an earlier one at the same place.
    serial: u64,
}

/// Why a pool did not do what was asked. It is as it was before.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The tenant has no more.
    #[error(transparent)]
    Quota(#[from] QuotaExceeded),
    /// No free part is large enough, and the pool may not grow that far.
    #[error("no room for {asked} bytes: largest free part {largest}, reserved {reserved} of at most {max}")]
    NoRoom {
        /// Bytes asked for, rounded.
        asked: u64,
        /// Longest free part.
        largest: u64,
        /// Bytes reserved now.
        reserved: u64,
        /// Bytes that may be reserved.
        max: u64,
    },
    /// The alignment is not a power of two, or too large.
    #[error("alignment {0} is not a power of two up to {ALIGN_BYTES_MAX}")]
    BadAlignment(u64),
    /// This block is not alive: never allocated here, or freed before.
    #[error("{region} + {offset:#x} is not an allocated block (freed twice?)")]
    NotAllocated {
        /// Region of the block.
        region: RegionId,
        /// Its offset.
        offset: u64,
    },
    /// There is no memory for another region.
    #[error("cannot reserve memory: {0}")]
    Memory(#[from] AllocateError),
    /// No region can be that large.
    #[error("cannot reserve memory: {0}")]
    System(#[from] io::Error),
}

/// A pool. Its regions live in the [`HostMemory`] that every call is given, which must be the same one each time.
///
/// `Send`, not `Sync`: one thread drives it at a time, and it may move to another.
pub struct Pool {
    options: PoolOptions,
    arenas: Vec<Arena>,
    region_next: u32,
    live: BTreeMap<(RegionId, u64), Live>,
    serial_next: u64,
    accounts: Accounts,
    statistics: Statistics,
    on_leak: Option<LeakListener>,
}

type LeakListener = Box<dyn FnMut(&LeakReport) + Send>;

#[derive(Debug)]
struct Arena {
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
    /// Reserve `bytes`, rounded up to [`GRANULE_BYTES`], and more when needed, if the options allow it.
    ///
    /// # Errors
    /// [`PoolError::Memory`] if the region cannot be had, [`PoolError::System`] for more bytes than there are addresses.
    pub fn new(memory: &mut HostMemory, bytes: u64, options: PoolOptions) -> Result<Self, PoolError> {
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

    /// Limit what a tenant may have; `None` lifts the limit. What it has already it keeps.
    pub fn set_quota(&mut self, tenant: Tenant, limit: Option<u64>) {
        self.accounts.set_limit(tenant, limit);
    }

    /// Whom to tell if blocks are alive when the pool is dropped.
    pub fn on_leak(&mut self, listener: impl FnMut(&LeakReport) + Send + 'static) {
        self.on_leak = Some(Box::new(listener));
    }

    /// Hand out a block.
    ///
    /// # Errors
    /// [`PoolError::BadAlignment`], [`PoolError::Quota`], [`PoolError::NoRoom`], and [`PoolError::Memory`] where the pool had to grow.
    /// Nothing is handed out then.
    pub fn allocate(&mut self, memory: &mut HostMemory, wanted: Wanted<'_>) -> Result<Block, PoolError> {
        if !wanted.align.is_power_of_two() || wanted.align > ALIGN_BYTES_MAX {
            return Err(PoolError::BadAlignment(wanted.align));
        }
        let taken = round(wanted.bytes).unwrap_or(u64::MAX);
        self.accounts.check(wanted.tenant, taken)?;
        let align = wanted.align.max(GRANULE_BYTES);
        let (region, offset) = match self.take(taken, align) {
            Some(place) => place,
            None => {
                self.grow(memory, taken)?;
                self.take(taken, align).ok_or_else(|| self.no_room(taken))?
            }
        };
        let serial = self.serial_next;
        self.serial_next += 1;
        let Wanted { tenant, bytes, tag, .. } = wanted;
        self.live.insert((region, offset), Live { serial, bytes, taken, tenant, tag: tag.to_owned() });
        self.accounts.add(tenant, taken);
        self.statistics.hand_out(taken);
        Ok(Block { region, offset, bytes, serial })
    }

    /// Take a block back.
    ///
    /// # Errors
    /// [`PoolError::NotAllocated`] if the block is not of this pool, or was given back before.
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

    /// Give regions without a block back to the system, the latest first, as long as more than `keep_bytes` stay
    /// reserved. A region that is exported stays. Returns the bytes given back.
    pub fn trim(&mut self, memory: &mut HostMemory, keep_bytes: u64) -> u64 {
        let before = self.statistics.reserved.current;
        for place in (0..self.arenas.len()).rev() {
            let arena = &self.arenas[place];
            let bytes = arena.free.capacity();
            let is_needed = self.statistics.reserved.current - bytes < keep_bytes;
            if is_needed || !arena.free.is_whole() || memory.free(arena.region).is_err() {
                continue;
            }
            self.arenas.remove(place);
            self.statistics.reserved.remove(bytes);
        }
        before - self.statistics.reserved.current
    }

    /// Numbers.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// What a tenant holds.
    #[must_use]
    pub fn usage(&self, tenant: Tenant) -> Usage {
        self.accounts.usage(tenant)
    }

    /// From now on "at most" means: since now.
    pub fn reset_high(&mut self) {
        self.statistics.reserved.reset_high();
        self.statistics.used.reset_high();
        self.accounts.reset_high();
    }

    /// The regions that the pool holds now, to be registered and exported.
    pub fn regions(&self) -> impl Iterator<Item = RegionId> {
        self.arenas.iter().map(|arena| arena.region)
    }

    /// The blocks that are alive.
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

    /// Room for at least `bytes` at the beginning of a new region, where every alignment is met.
    fn grow(&mut self, memory: &mut HostMemory, bytes: u64) -> Result<(), PoolError> {
        if self.options.growth_bytes == 0 {
            return Err(self.no_room(bytes));
        }
        let left = self.options.reserved_bytes_max - self.statistics.reserved.current;
        let preferred = round(self.options.growth_bytes).unwrap_or(bytes).max(bytes);
        if bytes > left {
            return Err(self.no_room(bytes));
        }
        self.reserve(memory, preferred.min(left - left % GRANULE_BYTES))
    }

    fn reserve(&mut self, memory: &mut HostMemory, bytes: u64) -> Result<(), PoolError> {
        let max = self.options.reserved_bytes_max;
        if self.statistics.reserved.current.checked_add(bytes).is_none_or(|sum| sum > max) {
            return Err(self.no_room(bytes));
        }
        let region = RegionId(self.region_next);
        memory.allocate_with(region, bytes, self.options.memory)?;
        self.region_next += 1;
        self.arenas.push(Arena { region, free: FreeList::new(bytes) });
        self.statistics.reserved.add(bytes);
        Ok(())
    }

    fn no_room(&self, asked: u64) -> PoolError {
        let largest = self.arenas.iter().map(|arena| arena.free.largest()).max().unwrap_or(0);
        let (reserved, max) = (self.statistics.reserved.current, self.options.reserved_bytes_max);
        PoolError::NoRoom { asked, largest, reserved, max }
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
    /// The regions stay with the memory that holds them; only the leak report is due.
    fn drop(&mut self) {
        let report = self.leaks();
        if let Some(listener) = self.on_leak.as_mut().filter(|_| !report.is_clean()) {
            listener(&report);
        }
    }
}

/// Rounded up to whole granules, at least one.
fn round(bytes: u64) -> Option<u64> {
    bytes.max(1).checked_next_multiple_of(GRANULE_BYTES)
}
