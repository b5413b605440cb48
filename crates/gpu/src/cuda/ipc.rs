//! Legacy handles: memory and events for another process of the same machine.
//!
//! A handle is 64 bytes that identify the memory to any other process that sees the same device. The importer closes before the
//! exporter frees; the driver does not define the other order. A handle stays valid until the memory is freed. Revocation needs the
//! consent of the importer, so it is cooperative for device memory. The driver may put several allocations into one block, and the
//! importer maps the whole block. Memory that must stay separate is allocated in whole blocks.

use std::ptr;

use cudarc::driver::sys::{CUipcEventHandle, CUipcMemHandle};

use super::{Cuda, WITHOUT_TIMING};
use crate::device::{Address, EventId};
use crate::error::GpuError;

/// Handle of memory.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryHandle(pub [u8; 64]);

/// Handle of an event.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHandle(pub [u8; 64]);

/// Flag: access to peers' memory is enabled when it is needed.
const LAZY_PEER_ACCESS: u32 = 1;
const INTERPROCESS: u32 = 4;

impl Cuda {
    /// Exports memory that was allocated here.
    pub fn export_memory(&self, address: Address) -> Result<MemoryHandle, GpuError> {
        self.context.enter()?;
        let mut handle = CUipcMemHandle { reserved: [0; 64] };
        // SAFETY: needed because the driver is C. 64 bytes are written.
        unsafe { self.context.driver.functions().cuIpcGetMemHandle(&raw mut handle, address.0)? };
        Ok(MemoryHandle(handle.reserved.map(|byte| byte as u8)))
    }

    /// Maps memory of another process.
    ///
    /// # Errors
    /// [`GpuError::OwnHandle`] in the process that made the handle.
    pub fn open_memory(&self, handle: &MemoryHandle) -> Result<Address, GpuError> {
        self.context.enter()?;
        let handle = CUipcMemHandle { reserved: handle.0.map(|byte| byte as _) };
        let mut address = 0;
        // SAFETY: needed because the driver is C. It checks the handle, and writes one address.
        unsafe {
            self.context.driver.functions().cuIpcOpenMemHandle_v2(
                &raw mut address,
                handle,
                LAZY_PEER_ACCESS,
            )?;
        }
        Ok(Address(address))
    }

    /// Unmaps memory of another process. Nothing may use it any more.
    pub fn close_memory(&self, address: Address) -> Result<(), GpuError> {
        self.context.enter()?;
        // SAFETY: needed because the driver is C. It knows what was opened, and refuses anything else.
        unsafe { self.context.driver.functions().cuIpcCloseMemHandle(address.0) }
    }

    /// Makes an event that another process can open.
    pub fn shared_event(&mut self) -> Result<(EventId, EventHandle), GpuError> {
        let event = self.make_event(WITHOUT_TIMING | INTERPROCESS)?;
        let mut handle = CUipcEventHandle { reserved: [0; 64] };
        let raw = self.raw_event(event)?;
        // SAFETY: needed because the driver is C. 64 bytes are written.
        unsafe { self.context.driver.functions().cuIpcGetEventHandle(&raw mut handle, raw)? };
        Ok((event, EventHandle(handle.reserved.map(|byte| byte as u8))))
    }

    /// Opens an event of another process. Both may record it, wait for it and query it.
    pub fn open_event(&mut self, handle: &EventHandle) -> Result<EventId, GpuError> {
        self.context.enter()?;
        let handle = CUipcEventHandle { reserved: handle.0.map(|byte| byte as _) };
        let mut event = ptr::null_mut();
        // SAFETY: needed because the driver is C. It checks the handle, and writes one pointer.
        unsafe { self.context.driver.functions().cuIpcOpenEventHandle(&raw mut event, handle)? };
        Ok(self.keep_event(event))
    }
}
