//! Pool memory that other processes open: the pool of this device, made with its first allocation, and allocations opened from the
//! pools of others.
//!
//! Allocating and freeing use the default stream and wait for it, so that memory is usable at once and freed at once, as outside of
//! pools. A pool of another process is imported once for each allocation: the driver releases an imported pool when its last pointer is
//! freed.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::ptr;

use super::{Cuda, PointerHandle, Pool};
use crate::device::{Address, HANDLE_BYTES, PoolStatistics, Shared};
use crate::error::GpuError;

/// Upper limit for the length of an opened allocation, in bytes: more than a device has.
const PART_BYTES_MAX: u64 = 1 << 40;

/// Pools of a device: its own and those of other processes.
#[derive(Debug, Default)]
pub(super) struct SharedPools {
    own: Option<Pool>,
    /// Length of each allocation that was not freed, by its address.
    allocated: BTreeMap<u64, u64>,
    /// Handles made here. They cannot be opened here.
    handles: BTreeSet<[u8; HANDLE_BYTES]>,
    /// Opened pools by the address of the allocation here.
    opened: BTreeMap<u64, Pool>,
}

impl SharedPools {
    pub(super) fn holds(&self, address: Address) -> bool {
        self.allocated.contains_key(&address.0)
    }

    /// Returns true if an address may be in memory of a pool. The driver does not report the length of an opened part, so it counts as
    /// the largest.
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
        // The order matters: the driver exports pointers only of pools that it has exported.
        let file = pool.export()?;
        let PointerHandle(handle) = pool.export_pointer(address)?;
        self.handles.insert(handle);
        Ok(Shared { handle, file: Some(file) })
    }

    /// Gives everything back. Memory of others goes first, because their owners may wait for it. Errors cannot be reported.
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

    /// Opens an allocation of another process's pool.
    pub(super) fn open_from_pool(
        &mut self,
        handle: &[u8; HANDLE_BYTES],
        file: BorrowedFd<'_>,
    ) -> Result<Address, GpuError> {
        if self.shared.handles.contains(handle) {
            return Err(GpuError::OwnHandle);
        }
        let pool = self.import_pool(file)?;
        // Access that the exporter has granted to its own devices is not inherited.
        pool.set_access(self, true)?;
        let address = pool.import_pointer(&PointerHandle(*handle))?;
        self.shared.opened.insert(address.0, pool);
        Ok(address)
    }

    /// Closes an allocation of another process's pool. Returns false if the address is not of a pool.
    pub(super) fn close_of_pool(&mut self, address: Address) -> Result<bool, GpuError> {
        let Some(pool) = self.shared.opened.remove(&address.0) else { return Ok(false) };
        pool.free_on(ptr::null_mut(), address)?;
        self.settle()?;
        Ok(true)
    }

    /// Fills a range with zeros, which are visible when this returns.
    pub(super) fn clear(&self, address: Address, bytes: u64) -> Result<(), GpuError> {
        let functions = self.context.driver.functions();
        // SAFETY: needed because the driver is C. The range was allocated just now. The default stream is named by null.
        unsafe { functions.cuMemsetD8Async(address.0, 0, bytes as usize, ptr::null_mut())? };
        self.settle()
    }

    /// Waits for the default stream.
    fn settle(&self) -> Result<(), GpuError> {
        // SAFETY: needed because the driver is C. The default stream is named by null.
        unsafe { self.context.driver.functions().cuStreamSynchronize(ptr::null_mut()) }
    }
}
