//! Stream-ordered pools: allocating and freeing are operations on a stream, and a pool can be shared with another process.
//!
//! Memory freed on a stream can be allocated again at once on that stream, and on others as the three reuse policies allow. The
//! pool returns memory above its release threshold to the system when a stream, event or context is synchronised. An imported pool shows
//! the exporter's allocations. It neither allocates nor trims, and the exporter frees after the importer. These limits are the driver's;
//! here they are typed errors.

use std::ffi::c_void;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

use cudarc::driver::sys::{
    CUmemAllocationHandleType, CUmemPool_attribute, CUmemPoolPtrExportData, CUmemoryPool, CUstream,
};

use super::context::Context;
use crate::device::{Address, PoolStatistics};
use crate::error::GpuError;

/// Pool of device memory. It is destroyed on drop; memory that is in use stays until it is freed.
///
/// `Send`, not `Sync`.
#[derive(Debug)]
pub struct Pool {
    pub(super) context: Arc<Context>,
    pub(super) raw: CUmemoryPool,
    pub(super) is_imported: bool,
}

// SAFETY: needed because a pool moves with its device. The driver's pools may be used by any thread.
unsafe impl Send for Pool {}

/// Policies for the reuse of memory that was freed on another stream. By default all three hold.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    /// Reuse where events guarantee that the free comes first.
    pub follow_event_dependencies: bool,
    /// Reuse where the free has already completed.
    pub opportunistic: bool,
    /// Reuse by making the new stream wait for the free.
    pub internal_dependencies: bool,
}

/// Location of an allocation in an exported pool, for a process that has imported the pool.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerHandle(pub [u8; 64]);

use CUmemPool_attribute as Attribute;

pub(super) const DESCRIPTOR: CUmemAllocationHandleType =
    CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

impl Pool {
    pub(super) fn allocate_on(&self, stream: CUstream, bytes: u64) -> Result<Address, GpuError> {
        self.own("allocating")?;
        let mut address = 0;
        let functions = self.context.driver.functions();
        // SAFETY: needed because the driver is C. Pool and stream are valid, and one address is written.
        unsafe {
            functions.cuMemAllocFromPoolAsync(&raw mut address, bytes.max(1) as usize, self.raw, stream)?
        };
        Ok(Address(address))
    }

    pub(super) fn free_on(&self, stream: CUstream, address: Address) -> Result<(), GpuError> {
        self.context.enter()?;
        // SAFETY: needed because the driver is C. It refuses what is no allocation of a pool.
        unsafe { self.context.driver.functions().cuMemFreeAsync(address.0, stream) }
    }

    /// Returns the statistics.
    pub fn statistics(&self) -> Result<PoolStatistics, GpuError> {
        Ok(PoolStatistics {
            reserved_current: self.number(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
            reserved_high: self.number(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)?,
            used_current: self.number(Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?,
            used_high: self.number(Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH)?,
        })
    }

    /// Resets the highest values to the present ones.
    pub fn reset_high(&self) -> Result<(), GpuError> {
        self.set_number(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0)?;
        self.set_number(Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0)
    }

    /// Sets the bytes that the pool keeps when something is synchronised. The default is 0.
    pub fn set_release_threshold(&self, bytes: u64) -> Result<(), GpuError> {
        self.own("a release threshold")?;
        self.set_number(Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, bytes)
    }

    /// Sets the policies for reuse.
    pub fn set_reuse(&self, reuse: Reuse) -> Result<(), GpuError> {
        self.own("a reuse policy")?;
        let Reuse { follow_event_dependencies, opportunistic, internal_dependencies } = reuse;
        for (attribute, is_allowed) in [
            (Attribute::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, follow_event_dependencies),
            (Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, opportunistic),
            (Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, internal_dependencies),
        ] {
            let mut value = i32::from(is_allowed);
            // SAFETY: needed because the driver is C. For these attributes the value is an int, which is read.
            unsafe { self.set(attribute, (&raw mut value).cast())? };
        }
        Ok(())
    }

    /// Returns unused memory to the system, except for `keep_bytes`.
    pub fn trim(&self, keep_bytes: u64) -> Result<(), GpuError> {
        self.own("trimming")?;
        // SAFETY: needed because the driver is C. The pool is valid.
        unsafe { self.context.driver.functions().cuMemPoolTrimTo(self.raw, keep_bytes as usize) }
    }

    /// Exports the pool as a descriptor for another process: see `Cuda::import_pool`.
    pub fn export(&self) -> Result<OwnedFd, GpuError> {
        self.own("exporting")?;
        let mut descriptor = -1_i32;
        let functions = self.context.driver.functions();
        // SAFETY: needed because the driver is C. For this kind of handle an int is written; the only flag is 0.
        unsafe {
            functions.cuMemPoolExportToShareableHandle(
                (&raw mut descriptor).cast(),
                self.raw,
                DESCRIPTOR,
                0,
            )?;
        }
        // SAFETY: the driver made the descriptor for us, and it has no other owner.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    /// Exports the location of an allocation for a process that has imported the pool.
    pub fn export_pointer(&self, address: Address) -> Result<PointerHandle, GpuError> {
        self.own("exporting")?;
        let mut data = CUmemPoolPtrExportData { reserved: [0; 64] };
        // SAFETY: needed because the driver is C. 64 bytes are written.
        unsafe { self.context.driver.functions().cuMemPoolExportPointer(&raw mut data, address.0)? };
        Ok(PointerHandle(data.reserved))
    }

    /// Returns the address of an exporter's allocation in this process.
    pub fn import_pointer(&self, pointer: &PointerHandle) -> Result<Address, GpuError> {
        self.context.enter()?;
        let mut data = CUmemPoolPtrExportData { reserved: pointer.0 };
        let mut address = 0;
        // SAFETY: needed because the driver is C. It checks the data, and writes one address.
        unsafe {
            self.context.driver.functions().cuMemPoolImportPointer(
                &raw mut address,
                self.raw,
                &raw mut data,
            )?;
        }
        Ok(Address(address))
    }

    /// Returns true if another process made the pool.
    #[must_use]
    pub const fn is_imported(&self) -> bool {
        self.is_imported
    }

    /// Refuses an operation on an imported pool.
    fn own(&self, what: &'static str) -> Result<(), GpuError> {
        if self.is_imported { Err(GpuError::Imported { what }) } else { self.context.enter() }
    }

    fn number(&self, attribute: Attribute) -> Result<u64, GpuError> {
        self.context.enter()?;
        let mut value = 0_u64;
        let functions = self.context.driver.functions();
        // SAFETY: needed because the driver is C. For these attributes the value is a 64-bit number, which is written.
        unsafe { functions.cuMemPoolGetAttribute(self.raw, attribute, (&raw mut value).cast())? };
        Ok(value)
    }

    fn set_number(&self, attribute: Attribute, mut value: u64) -> Result<(), GpuError> {
        self.context.enter()?;
        // SAFETY: as for `number`; the value is read.
        unsafe { self.set(attribute, (&raw mut value).cast()) }
    }

    /// # Safety
    /// `value` points to what the attribute is.
    unsafe fn set(&self, attribute: Attribute, value: *mut c_void) -> Result<(), GpuError> {
        // SAFETY: the caller keeps the driver's conditions.
        unsafe { self.context.driver.functions().cuMemPoolSetAttribute(self.raw, attribute, value) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: needed because the driver is C. The pool was made or imported by this value. An error at this point
            // cannot be reported.
            drop(unsafe { self.context.driver.functions().cuMemPoolDestroy(self.raw) });
        }
    }
}
