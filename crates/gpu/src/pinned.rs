//! Host memory that a device reads and writes at the same address, while the host does.
//!
//! Host and device access it, so it is never a Rust slice: bytes are copied in and out through a raw pointer. Events decide who may
//! access a part at a time, not this module.

use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use crate::address::Address;
use crate::error::GpuError;

/// Pages of pinned host memory. They are freed on drop.
///
/// `Send`, not `Sync`.
pub struct Pinned {
    base: NonNull<u8>,
    length: usize,
    release: Option<Box<dyn FnOnce(NonNull<u8>) + Send>>,
}

// SAFETY: needed because a device and its staging move between threads. The address belongs to the process, and `release` is
// `Send` itself.
unsafe impl Send for Pinned {}

impl Pinned {
    /// Wraps memory at `base`. `release` frees it.
    ///
    /// # Safety
    /// `length` bytes at `base` are valid for reads and writes until `release` is called, and no Rust reference exists to
    /// them.
    pub(crate) unsafe fn new(
        base: NonNull<u8>,
        length: usize,
        release: impl FnOnce(NonNull<u8>) + Send + 'static,
    ) -> Self {
        Self { base, length, release: Some(Box::new(release)) }
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the device's address of the byte at `offset`.
    #[must_use]
    pub fn address(&self, offset: usize) -> Address {
        Address(self.base.as_ptr().wrapping_add(offset).addr() as u64)
    }

    /// Copies `bytes` to `offset`.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), GpuError> {
        let target = self.range(offset, bytes.len())?;
        // SAFETY: needed because the device may touch other parts at the same time, so this is no slice. `range` has checked
        // that the target lies within; `bytes` is ordinary memory.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
        Ok(())
    }

    /// Copies bytes at `offset` to `out`.
    pub fn read(&self, offset: usize, out: &mut [u8]) -> Result<(), GpuError> {
        let source = self.range(offset, out.len())?;
        // SAFETY: as for `write`, in the other direction.
        unsafe { ptr::copy_nonoverlapping(source, out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    /// Returns the word of 8 bytes at `offset`, which host and device may access at the same time.
    ///
    /// # Panics
    /// If the offset is not a multiple of 8, or lies outside.
    #[must_use]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.length, "a word outside of pinned memory");
        // SAFETY: needed because the device may change it. It lies within, pinned memory begins at a page, and the reference does not
        // outlive the memory; no other kind of reference to it exists.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// Copies the bytes of a plain value to `offset`.
    pub(crate) fn put<T: Copy>(&mut self, offset: usize, value: &T) -> Result<(), GpuError> {
        let target = self.range(offset, size_of::<T>())?;
        // SAFETY: as for `write`. `write_unaligned` takes any address.
        unsafe { ptr::write_unaligned(target.cast::<T>(), *value) };
        Ok(())
    }

    fn range(&self, offset: usize, bytes: usize) -> Result<*mut u8, GpuError> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.length => Ok(self.base.as_ptr().wrapping_add(offset)),
            _ => Err(GpuError::OutOfRange {
                offset: offset as u64,
                bytes: bytes as u64,
                length: self.length as u64,
            }),
        }
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pinned").field("length", &self.length).finish_non_exhaustive()
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release(self.base);
        }
    }
}
