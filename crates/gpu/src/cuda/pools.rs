//! Pools of a device: making and importing them, and their operations on streams and other devices.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPoolProps,
};

use super::Cuda;
use super::pool::{DESCRIPTOR, Pool};
use crate::device::{Address, StreamId};
use crate::error::GpuError;

impl Pool {
    /// Allocates on a stream: later operations of the stream may use the memory. It is not zeroed.
    pub fn allocate(&self, cuda: &Cuda, stream: StreamId, bytes: u64) -> Result<Address, GpuError> {
        self.allocate_on(cuda.raw_stream(stream)?, bytes)
    }

    /// Frees on a stream, after everything before it. An importer frees before the exporter does.
    pub fn free(&self, cuda: &Cuda, stream: StreamId, address: Address) -> Result<(), GpuError> {
        self.free_on(cuda.raw_stream(stream)?, address)
    }

    /// Grants another device access to all memory of the pool, or withdraws it.
    pub fn set_access(&self, device: &Cuda, is_allowed: bool) -> Result<(), GpuError> {
        self.context.enter()?;
        let allowed = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        let flags = if is_allowed { allowed } else { CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE };
        let access = CUmemAccessDesc { location: location(device.context.device), flags };
        // SAFETY: needed because the driver is C. One description is read.
        unsafe { self.context.driver.functions().cuMemPoolSetAccess(self.raw, &raw const access, 1) }
    }
}

impl Cuda {
    /// Makes a pool on this device that can be shared with other processes.
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

    /// Imports a pool of another process. This device may use its memory after [`Pool::set_access`].
    pub fn import_pool(&self, descriptor: BorrowedFd<'_>) -> Result<Pool, GpuError> {
        self.context.enter()?;
        let mut raw = ptr::null_mut();
        // The driver takes the number of the descriptor in the form of a pointer.
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
