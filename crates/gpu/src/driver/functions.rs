//! The functions of the driver that we call, found by name when the library is opened.
//!
//! The table has a gap for each function that the library lacks; a call of it returns [`GpuError::SymbolMissing`]. Codes
//! are plain numbers, because a newer driver may return one that an enumeration of today cannot hold.
//!
//! The driver's documentation describes the functions. The callers state why their calls are sound.

#![allow(
    non_snake_case,
    reason = "the driver's own names, so that its documentation can be searched for them"
)]

use std::ffi::{c_char, c_int, c_uint, c_void};

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_P2PAttribute, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction,
    CUipcEventHandle, CUipcMemHandle, CUmemAccessDesc, CUmemAllocationHandleType, CUmemPool_attribute,
    CUmemPoolProps, CUmemPoolPtrExportData, CUmemcpyAttributes, CUmemoryPool, CUmodule, CUstream, CUuuid,
};

use super::code::check;
use crate::error::GpuError;

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        /// Functions that were found in the library.
        #[derive(Debug, Default)]
        pub(crate) struct Functions {
            $(pub(super) $name: Option<unsafe extern "C" fn($($type),*) -> c_int>,)*
        }

        impl Functions {
            /// Finds every function that the library has.
            ///
            /// # Safety
            /// The library is the CUDA driver, and stays open as long as the table is used.
            pub(super) unsafe fn find(library: &libloading::Library) -> Self {
                Self {
                    // SAFETY: needed to call a function that is known by name only. The library is the driver, whose
                    // headers declare each of them as the table does.
                    $($name: unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }.ok().map(|found| *found),)*
                }
            }

            /// Returns the names of the functions that the library lacks.
            pub(crate) fn missing(&self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$name.is_none() { names.push(stringify!($name)); })*
                names
            }

            $(
                /// Calls the driver's function of this name.
                ///
                /// # Safety
                /// The conditions of the driver's documentation hold; pointers are valid for the reads and writes through them.
                #[allow(clippy::too_many_arguments, reason = "the driver decides how many")]
                pub(crate) unsafe fn $name(&self, $($argument: $type),*) -> Result<(), GpuError> {
                    let name = stringify!($name);
                    let function = self.$name.ok_or(GpuError::SymbolMissing { symbol: name, library: "libcuda" })?;
                    // SAFETY: needed because the driver is C. The caller keeps the conditions of the documentation.
                    check(name, unsafe { function($($argument),*) })
                }
            )*
        }
    };
}

functions! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice);
    cuDeviceGetUuid_v2(uuid: *mut CUuuid, device: CUdevice);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice);
    cuDeviceGetPCIBusId(name: *mut c_char, length: c_int, device: CUdevice);
    cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
    cuDeviceGetP2PAttribute(value: *mut c_int, attribute: CUdevice_P2PAttribute, source: CUdevice, target: CUdevice);
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    cuCtxSetCurrent(context: CUcontext);
    cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint);
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
    cuMemFree_v2(address: CUdeviceptr);
    cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemFreeHost(address: *mut c_void);
    cuMemHostRegister_v2(address: *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostUnregister(address: *mut c_void);
    cuMemHostGetDevicePointer_v2(address: *mut CUdeviceptr, host: *mut c_void, flags: c_uint);
    cuMemsetD8Async(address: CUdeviceptr, byte: u8, bytes: usize, stream: CUstream);
    cuMemcpyAsync(target: CUdeviceptr, source: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyBatchAsync(
        targets: *mut CUdeviceptr, sources: *mut CUdeviceptr, bytes: *mut usize, count: usize, attributes: *mut CUmemcpyAttributes,
        first_of: *mut usize, attribute_count: usize, failed: *mut usize, stream: CUstream,
    );
    cuStreamWriteValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32, flags: c_uint);
    cuStreamWriteValue64_v2(stream: CUstream, address: CUdeviceptr, value: u64, flags: c_uint);
    cuStreamWaitValue64_v2(stream: CUstream, address: CUdeviceptr, value: u64, flags: c_uint);
    cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
    cuStreamDestroy_v2(stream: CUstream);
    cuStreamSynchronize(stream: CUstream);
    cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
    cuEventCreate(event: *mut CUevent, flags: c_uint);
    cuEventDestroy_v2(event: CUevent);
    cuEventRecord(event: CUevent, stream: CUstream);
    cuEventQuery(event: CUevent);
    cuEventElapsedTime(milliseconds: *mut f32, from: CUevent, to: CUevent);
    cuIpcGetMemHandle(handle: *mut CUipcMemHandle, address: CUdeviceptr);
    cuIpcOpenMemHandle_v2(address: *mut CUdeviceptr, handle: CUipcMemHandle, flags: c_uint);
    cuIpcCloseMemHandle(address: CUdeviceptr);
    cuIpcGetEventHandle(handle: *mut CUipcEventHandle, event: CUevent);
    cuIpcOpenEventHandle(event: *mut CUevent, handle: CUipcEventHandle);
    cuMemPoolCreate(pool: *mut CUmemoryPool, properties: *const CUmemPoolProps);
    cuMemPoolDestroy(pool: CUmemoryPool);
    cuMemPoolSetAttribute(pool: CUmemoryPool, attribute: CUmemPool_attribute, value: *mut c_void);
    cuMemPoolGetAttribute(pool: CUmemoryPool, attribute: CUmemPool_attribute, value: *mut c_void);
    cuMemPoolSetAccess(pool: CUmemoryPool, map: *const CUmemAccessDesc, count: usize);
    cuMemPoolTrimTo(pool: CUmemoryPool, keep_bytes: usize);
    cuMemAllocFromPoolAsync(address: *mut CUdeviceptr, bytes: usize, pool: CUmemoryPool, stream: CUstream);
    cuMemFreeAsync(address: CUdeviceptr, stream: CUstream);
    cuMemPoolExportToShareableHandle(handle: *mut c_void, pool: CUmemoryPool, kind: CUmemAllocationHandleType, flags: u64);
    cuMemPoolImportFromShareableHandle(pool: *mut CUmemoryPool, handle: *mut c_void, kind: CUmemAllocationHandleType, flags: u64);
    cuMemPoolExportPointer(data: *mut CUmemPoolPtrExportData, address: CUdeviceptr);
    cuMemPoolImportPointer(address: *mut CUdeviceptr, pool: CUmemoryPool, data: *mut CUmemPoolPtrExportData);
    cuModuleLoadData(module: *mut CUmodule, image: *const c_void);
    cuModuleUnload(module: CUmodule);
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    cuLaunchKernel(
        function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
        block_z: c_uint, shared_bytes: c_uint, stream: CUstream, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    );
}
