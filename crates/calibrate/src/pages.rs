//! Shared pages of an anonymous file, as the fabric's own wires use them.
//!
//! Words in them are atomics. Bytes are copied through raw pointers; the caller is responsible for the order.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Zeroed pages of an anonymous file.
#[derive(Debug)]
pub(crate) struct Pages {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: needed because threads may use the same pages. A mapping is an address and a length; every access
// goes through the methods below, which are atomic or ask their caller for exclusion.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps at least `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(4096);
        let file = memfd_create("rackloom-calibrate", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, bytes as u64)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: needed to map at all. A null hint lets the kernel choose a free range, so nothing is replaced. The file
        // is this process's alone and keeps its length.
        let base = unsafe { mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, &file, 0)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, bytes })
    }

    /// Returns the word of 8 bytes at `at`, a multiple of 8.
    ///
    /// # Panics
    /// If there is no such word: a bug of the loop.
    pub(crate) fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.bytes, "no word at {at}");
        // SAFETY: needed because the word is in mapped pages. It is within them and aligned (asserted), they stay mapped as
        // long as `self`, and every loop touches its words only as atomics.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// Returns the word of 4 bytes at `at`, a multiple of 4, for a futex.
    ///
    /// # Panics
    /// If there is no such word: a bug of the loop.
    pub(crate) fn half_word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.bytes, "no half word at {at}");
        // SAFETY: as for `word`.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// Returns the address of `length` bytes from `at` on.
    ///
    /// # Panics
    /// If there are no such bytes: a bug of the loop.
    #[inline]
    pub(crate) fn bytes(&self, at: usize, length: usize) -> *mut u8 {
        assert!(at <= self.bytes && length <= self.bytes - at, "no {length} bytes at {at}");
        self.base.as_ptr().wrapping_add(at)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: needed to give the pages back. They were mapped by this value, and no reference or pointer into them
        // outlives it.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(result.is_ok(), "mapped pages can be unmapped");
    }
}
