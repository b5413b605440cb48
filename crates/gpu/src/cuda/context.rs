//! Primary context of a device. Everything on the device belongs to it. The driver has one per device and process, so two
//! users of a device within a process share it, and with it their memory.

use std::sync::Arc;

use cudarc::driver::sys::{CUcontext, CUdevice};

use crate::driver::Driver;
use crate::error::GpuError;

/// Primary context. It is released when the last user drops it.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) driver: Arc<Driver>,
    pub(super) device: CUdevice,
    pub(super) raw: CUcontext,
}

// SAFETY: needed because a device moves between threads. The driver's contexts may be used by any thread that has made them
// current, and `enter` does so before each use.
unsafe impl Send for Context {}
// SAFETY: as above; the driver locks for itself.
unsafe impl Sync for Context {}

impl Context {
    pub(super) fn retain(driver: &Arc<Driver>, index: u32) -> Result<Arc<Self>, GpuError> {
        let device = driver.device(index)?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: needed because the driver is C. The device exists, and one pointer is written.
        unsafe { driver.functions().cuDevicePrimaryCtxRetain(&raw mut raw, device)? };
        let context = Arc::new(Self { driver: Arc::clone(driver), device, raw });
        context.enter()?;
        Ok(context)
    }

    /// Makes it the current context of this thread.
    pub(super) fn enter(&self) -> Result<(), GpuError> {
        // SAFETY: needed because the driver is C. The context is retained until `self` is dropped.
        unsafe { self.driver.functions().cuCtxSetCurrent(self.raw) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: needed to give it back. It was retained once by this value, and each user holds this value.
        let result = unsafe { self.driver.functions().cuDevicePrimaryCtxRelease_v2(self.device) };
        // A device that has failed cannot be cleaned up; the end of the process does it.
        drop(result);
    }
}
