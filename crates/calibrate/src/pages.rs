//! Shared pages of an anonymous file, as the fabric's own wires use them.
//!
//! Words in them are atomics; bytes are moved by copies between raw pointers, for whose order the caller stands.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Zeroed pages of a file that has no name.
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
    /// `bytes` of them, at least.
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

    /// The word at a multiple of 8.
    ///
    /// # Panics
    /// If there is no such word: a mistake of the loop.
    pub(crate) fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.bytes, "no word at {at}");
        // SAFETY: needed because the word lives in mapped pages. It is within them and aligned (asserted), they stay as
        // long as `self`, and every loop touches its words only as atomics.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// The half word at a multiple of 4, as a futex wants it.
    ///
    /// # Panics
    /// If there is no such half word: a mistake of the loop.
    pub(crate) fn half_word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.bytes, "no half word at {at}");
        // SAFETY: as for `word`.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// Address of `length` bytes from `at` on.
    ///
    /// # Panics
    /// If there are no such bytes: a mistake of the loop.
    #[inline]
    pub(crate) fn bytes(&self, at: usize, length: usize) -> *mut u8 {
        assert!(at <= self.bytes && length <= self.bytes - at, "no {length} bytes at {at}");
        self.base.as_ptr().wrapping_add(at)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: needed to give the pages back. They were mapped by this value, and every reference and pointer into them is
        // bounded by its life.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(result.is_ok(), "what was mapped can be unmapped");
    }
}
