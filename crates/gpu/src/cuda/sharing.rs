//! Pool memory that other processes open: the pool of this device, made with its first allocation, and allocations opened from the
//! pools of others.
//!
//! Allocating and freeing use the default stream and wait for it, so that memory is usable at once and freed at once, as outside of
//! pools. A pool of another process is imported once for each allocation: the driver releases an imported pool when its last pointer is
//! freed.

use std::os::fd::BorrowedFd;
use std::ptr;

use super::Cuda;
use super::pool::PointerHandle;
use crate::device::{Address, HANDLE_BYTES};
use crate::error::GpuError;

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
