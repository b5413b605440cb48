//! Stream-ordered pools: allocating and freeing are operations on a stream, and a pool can be handed to another process.
//!
//! What is freed on a stream can be handed out again at once on the same stream, and on others as the three reuse policies say. The
//! pool gives memory back to the system when a stream, event or context is synchronised, as far as it holds more than its
//! release threshold. A pool of another process shows the memory that the exporter allocated; it neither allocates nor
//! trims, and its exporter frees after the importer. Those limits are the driver's, and typed here.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationHandleType, CUmemAllocationType, CUmemLocation,
    CUmemLocationType, CUmemPool_attribute, CUmemPoolProps, CUmemPoolPtrExportData, CUmemoryPool, CUstream,
};

use super::Cuda;
use super::context::Context;
use crate::device::{Address, PoolStatistics, StreamId};
use crate::error::GpuError;

/// A pool. Destroyed on drop; memory of it that is in use stays until it is freed.
///
/// `Send`, not `Sync`.
#[derive(Debug)]
pub struct Pool {
    context: Arc<Context>,
    raw: CUmemoryPool,
    is_imported: bool,
}

// SAFETY: needed because a pool moves with its device. The driver's pools may be used by any thread.
unsafe impl Send for Pool {}

/// How a pool may hand out again what was freed on another stream. All three by default.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    /// Where events make sure that the free comes first.
    pub follow_event_dependencies: bool,
    /// Where the free happens to be over.
    pub opportunistic: bool,
    /// By making the new stream wait for the free.
    pub internal_dependencies: bool,
}

/// Where an allocation of an exported pool lies, for a process that has imported the pool.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerHandle(pub [u8; 64]);

use CUmemPool_attribute as Attribute;

const DESCRIPTOR: CUmemAllocationHandleType =
    CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

impl Pool {
    /// Allocate on a stream: the memory is there for what follows on it, not zeroed.
    pub fn allocate(&self, cuda: &Cuda, stream: StreamId, bytes: u64) -> Result<Address, GpuError> {
        self.allocate_on(cuda.raw_stream(stream)?, bytes)
    }

    pub(super) fn allocate_on(&self, stream: CUstream, bytes: u64) -> Result<Address, GpuError> {
        self.own("allocating")?;
        let mut address = 0;
        let functions = self.context.driver.functions();
        // SAFETY: needed because the driver is C. Pool and stream live, and one address is written.
        unsafe {
            functions.cuMemAllocFromPoolAsync(&raw mut address, bytes.max(1) as usize, self.raw, stream)?
        };
        Ok(Address(address))
    }

    /// Free on a stream: after everything that was put on it before. An importer frees this way too, before the exporter does.
    pub fn free(&self, cuda: &Cuda, stream: StreamId, address: Address) -> Result<(), GpuError> {
        self.free_on(cuda.raw_stream(stream)?, address)
    }

    pub(super) fn free_on(&self, stream: CUstream, address: Address) -> Result<(), GpuError> {
        self.context.enter()?;
        // SAFETY: needed because the driver is C. It refuses what is no allocation of a pool.
        unsafe { self.context.driver.functions().cuMemFreeAsync(address.0, stream) }
    }

    /// Numbers.
    pub fn statistics(&self) -> Result<PoolStatistics, GpuError> {
        Ok(PoolStatistics {
            reserved_current: self.number(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
            reserved_high: self.number(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)?,
            used_current: self.number(Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?,
            used_high: self.number(Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH)?,
        })
    }

    /// From now on "at most" means: since now.
    pub fn reset_high(&self) -> Result<(), GpuError> {
        self.set_number(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0)?;
        self.set_number(Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0)
    }

    /// Bytes that the pool keeps when something is synchronised; 0 by default.
    pub fn set_release_threshold(&self, bytes: u64) -> Result<(), GpuError> {
        self.own("a release threshold")?;
        self.set_number(Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, bytes)
    }

    /// Which reuse is allowed.
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

    /// Give back to the system what nobody uses, as long as `keep_bytes` stay.
    pub fn trim(&self, keep_bytes: u64) -> Result<(), GpuError> {
        self.own("trimming")?;
        // SAFETY: needed because the driver is C. The pool lives.
        unsafe { self.context.driver.functions().cuMemPoolTrimTo(self.raw, keep_bytes as usize) }
    }

    /// Let another device use all memory of the pool, or no longer.
    pub fn set_access(&self, device: &Cuda, is_allowed: bool) -> Result<(), GpuError> {
        self.context.enter()?;
        let allowed = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        let flags = if is_allowed { allowed } else { CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE };
        let access = CUmemAccessDesc { location: location(device.context.device), flags };
        // SAFETY: needed because the driver is C. One description is read.
        unsafe { self.context.driver.functions().cuMemPoolSetAccess(self.raw, &raw const access, 1) }
    }

    /// The pool as a descriptor, for another process: see [`Cuda::import_pool`].
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
        // SAFETY: the driver made the descriptor for us, and nobody else has it.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    /// Where an allocation of this pool lies, for a process that has imported it.
    pub fn export_pointer(&self, address: Address) -> Result<PointerHandle, GpuError> {
        self.own("exporting")?;
        let mut data = CUmemPoolPtrExportData { reserved: [0; 64] };
        // SAFETY: needed because the driver is C. 64 bytes are written.
        unsafe { self.context.driver.functions().cuMemPoolExportPointer(&raw mut data, address.0)? };
        Ok(PointerHandle(data.reserved))
    }

    /// Where an allocation of the exporter lies in this process.
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

    /// Whether another process made it.
    #[must_use]
    pub const fn is_imported(&self) -> bool {
        self.is_imported
    }

    /// Only for pools of this process.
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
        // SAFETY: the caller keeps what the driver demands.
        unsafe { self.context.driver.functions().cuMemPoolSetAttribute(self.raw, attribute, value) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: needed because the driver is C. The pool was made or imported by this value. An error has nobody to
            // be told to.
            drop(unsafe { self.context.driver.functions().cuMemPoolDestroy(self.raw) });
        }
    }
}

impl Cuda {
    /// A new pool on this device that can be handed to other processes.
    pub fn pool(&self) -> Result<Pool, GpuError> {
        self.context.enter()?;
        let properties = CUmemPoolProps {
            allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: DESCRIPTOR,
            location: location(self.context.device),
            win32SecurityAttributes: ptr::null_mut(),
            maxSize: 0,
            usage: 0,
            reserved: [0; 54],
        };
        let mut raw = ptr::null_mut();
        // SAFETY: needed because the driver is C. The properties are read, and one pointer is written.
        unsafe { self.context.driver.functions().cuMemPoolCreate(&raw mut raw, &raw const properties)? };
        Ok(Pool { context: Arc::clone(&self.context), raw, is_imported: false })
    }

    /// A pool of another process. Its memory is for this device once [`Pool::set_access`] says so.
    pub fn import_pool(&self, descriptor: BorrowedFd<'_>) -> Result<Pool, GpuError> {
        self.context.enter()?;
        let mut raw = ptr::null_mut();
        // The driver wants the number of the descriptor in the place of a pointer.
        let number = ptr::without_provenance_mut::<c_void>(descriptor.as_raw_fd() as usize);
        let functions = self.context.driver.functions();
        // SAFETY: needed because the driver is C. The descriptor is open, and one pointer is written; the only flag is 0.
        unsafe { functions.cuMemPoolImportFromShareableHandle(&raw mut raw, number, DESCRIPTOR, 0)? };
        Ok(Pool { context: Arc::clone(&self.context), raw, is_imported: true })
    }
}

const fn location(device: i32) -> CUmemLocation {
    CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: device }
}
