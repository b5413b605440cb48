//! Legacy handles: memory and events for another process of the same machine.
//!
//! A handle is 64 bytes that mean something to any other process that sees the same device. The importer closes before the exporter
//! frees; the other order is undefined by the driver. A handle stays valid until the memory is freed: taking it back is a
//! matter between the two, which is why revocation of device memory is cooperative. The driver may have put several
//! allocations into one block, all of which the importer then maps; what must be apart is allocated in whole blocks.

use std::ptr;

use cudarc::driver::sys::{CUipcEventHandle, CUipcMemHandle};

use super::{Cuda, WITHOUT_TIMING};
use crate::device::{Address, EventId};
use crate::error::GpuError;

/// Of memory.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryHandle(pub [u8; 64]);

/// Of an event.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHandle(pub [u8; 64]);

/// The importer may use peers' memory too, which is then enabled by itself.
const LAZY_PEER_ACCESS: u32 = 1;
const INTERPROCESS: u32 = 4;

impl Cuda {
    /// A handle of memory that was allocated here.
    pub fn export_memory(&self, address: Address) -> Result<MemoryHandle, GpuError> {
        self.context.enter()?;
        let mut handle = CUipcMemHandle { reserved: [0; 64] };
        // SAFETY: needed because the driver is C. 64 bytes are written.
        unsafe { self.context.driver.functions().cuIpcGetMemHandle(&raw mut handle, address.0)? };
        Ok(MemoryHandle(handle.reserved.map(|byte| byte as u8)))
    }

    /// Map memory of another process.
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

    /// Unmap it again, once nothing uses it.
    pub fn close_memory(&self, address: Address) -> Result<(), GpuError> {
        self.context.enter()?;
        // SAFETY: needed because the driver is C. It knows what was opened, and refuses anything else.
        unsafe { self.context.driver.functions().cuIpcCloseMemHandle(address.0) }
    }

    /// A new event that can be handed to another process.
    pub fn shared_event(&mut self) -> Result<(EventId, EventHandle), GpuError> {
        let event = self.make_event(WITHOUT_TIMING | INTERPROCESS)?;
        let mut handle = CUipcEventHandle { reserved: [0; 64] };
        let raw = self.raw_event(event)?;
        // SAFETY: needed because the driver is C. 64 bytes are written.
        unsafe { self.context.driver.functions().cuIpcGetEventHandle(&raw mut handle, raw)? };
        Ok((event, EventHandle(handle.reserved.map(|byte| byte as u8))))
    }

    /// An event of another process. Both may record it, wait for it and ask it.
    pub fn open_event(&mut self, handle: &EventHandle) -> Result<EventId, GpuError> {
        self.context.enter()?;
        let handle = CUipcEventHandle { reserved: handle.0.map(|byte| byte as _) };
        let mut event = ptr::null_mut();
        // SAFETY: needed because the driver is C. It checks the handle, and writes one pointer.
        unsafe { self.context.driver.functions().cuIpcOpenEventHandle(&raw mut event, handle)? };
        Ok(self.keep_event(event))
    }
}
