//! Memory of a pool that other processes open: the pool of this device, made with its first allocation, and what was opened of the
//! pools of others.
//!
//! Allocating and freeing are done on the default stream and waited for, so that memory is usable at once and gone at once, as memory
//! outside of pools is. A pool of another process is imported once for each allocation: the driver gives back what was imported when the
//! last pointer is freed.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::ptr;

use super::{Cuda, PointerHandle, Pool};
use crate::device::{Address, HANDLE_BYTES, PoolStatistics, Shared};
use crate::error::GpuError;

/// No part of a pool is longer: more than a device has.
const PART_BYTES_MAX: u64 = 1 << 40;

/// What a device has of pools, its own and those of others.
#[derive(Debug, Default)]
pub(super) struct SharedPools {
    own: Option<Pool>,
    /// What was allocated here and not freed.
    allocated: BTreeMap<u64, u64>,
    /// Handles made here, which cannot be opened here.
    handles: BTreeSet<[u8; HANDLE_BYTES]>,
    /// What was opened, by its address here.
    opened: BTreeMap<u64, Pool>,
}

impl SharedPools {
    pub(super) fn holds(&self, address: Address) -> bool {
        self.allocated.contains_key(&address.0)
    }

    /// Whether an address may lie in memory of a pool. How long an opened part is, the driver does not say, so it counts as the largest.
    pub(super) fn may_hold(&self, address: Address) -> bool {
        let below = self.allocated.range(..=address.0).next_back();
        let opened = self.opened.range(..=address.0).next_back();
        below.is_some_and(|(start, bytes)| address.0 - start < *bytes)
            || opened.is_some_and(|(start, _)| address.0 - start < PART_BYTES_MAX)
    }

    pub(super) fn statistics(&self) -> Result<Option<PoolStatistics>, GpuError> {
        self.own.as_ref().map(Pool::statistics).transpose()
    }

    pub(super) fn share(&mut self, address: Address) -> Result<Shared, GpuError> {
        let pool = self.own.as_ref().ok_or(GpuError::NotSupported { function: "share" })?;
        // In this order: the driver exports pointers of pools that it has exported.
        let file = pool.export()?;
        let PointerHandle(handle) = pool.export_pointer(address)?;
        self.handles.insert(handle);
        Ok(Shared { handle, file: Some(file) })
    }

    /// Give back what there still is: first what belongs to others, whose owners may wait for that. Errors have nobody to be told to.
    pub(super) fn drop_all(&mut self) {
        for (address, pool) in std::mem::take(&mut self.opened) {
            drop(pool.free_on(ptr::null_mut(), Address(address)));
        }
        for address in std::mem::take(&mut self.allocated).into_keys() {
            drop(self.own.as_ref().map(|pool| pool.free_on(ptr::null_mut(), Address(address))));
        }
    }
}

impl Cuda {
    pub(super) fn take_from_pool(&mut self, bytes: u64) -> Result<Address, GpuError> {
        let pool = match self.shared.own.take() {
            Some(pool) => pool,
            None => self.pool()?,
        };
        let allocated = pool.allocate_on(ptr::null_mut(), bytes);
        self.shared.own = Some(pool);
        let address = allocated?;
        self.shared.allocated.insert(address.0, bytes);
        self.clear(address, bytes)?;
        Ok(address)
    }

    pub(super) fn give_to_pool(&mut self, address: Address) -> Result<(), GpuError> {
        let Some(pool) = &self.shared.own else { return Ok(()) };
        pool.free_on(ptr::null_mut(), address)?;
        self.shared.allocated.remove(&address.0);
        self.settle()
    }

    /// Use an allocation of another process's pool.
    pub(super) fn open_from_pool(
        &mut self,
        handle: &[u8; HANDLE_BYTES],
        file: BorrowedFd<'_>,
    ) -> Result<Address, GpuError> {
        if self.shared.handles.contains(handle) {
            return Err(GpuError::OwnHandle);
        }
        let pool = self.import_pool(file)?;
        // What the exporter has granted to its own devices is not inherited.
        pool.set_access(self, true)?;
        let address = pool.import_pointer(&PointerHandle(*handle))?;
        self.shared.opened.insert(address.0, pool);
        Ok(address)
    }

    /// Let go of it. False: it is not of a pool.
    pub(super) fn close_of_pool(&mut self, address: Address) -> Result<bool, GpuError> {
        let Some(pool) = self.shared.opened.remove(&address.0) else { return Ok(false) };
        pool.free_on(ptr::null_mut(), address)?;
        self.settle()?;
        Ok(true)
    }

    /// Zeros, visible when this returns.
    pub(super) fn clear(&self, address: Address, bytes: u64) -> Result<(), GpuError> {
        let functions = self.context.driver.functions();
        // SAFETY: needed because the driver is C. The range was allocated just now. The default stream is named by null.
        unsafe { functions.cuMemsetD8Async(address.0, 0, bytes as usize, ptr::null_mut())? };
        self.settle()
    }

    /// Wait for the default stream.
    fn settle(&self) -> Result<(), GpuError> {
        // SAFETY: needed because the driver is C. The default stream is named by null.
        unsafe { self.context.driver.functions().cuStreamSynchronize(ptr::null_mut()) }
    }
}
