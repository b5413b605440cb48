//! Sealed anonymous files and their mappings. Shared pages are requested from the kernel only here.
//!
//! A truncated file would make the next access to its mapping raise SIGBUS, and any process that holds the file could truncate it. So every file is
//! sealed against shrinking and growing before another process receives it. A file that another process created is mapped only if it has these seals.
//!
//! A mapping only yields raw pointers. Its owner decides which code reads and writes through them, and when.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::param::page_size;

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Creates a zeroed anonymous file of `length` bytes whose length cannot change.
pub(crate) fn sealed_memfd(name: &str, length: u64) -> io::Result<OwnedFd> {
    sealed_memfd_with(name, length, MemfdFlags::empty())
}

/// Creates a sealed file as [`sealed_memfd`] does, with additional flags such as a page size.
pub(crate) fn sealed_memfd_with(name: &str, length: u64, flags: MemfdFlags) -> io::Result<OwnedFd> {
    let file = memfd_create(name, flags | MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, length)?;
    fcntl_add_seals(&file, SEALS)?;
    Ok(file)
}

/// Returns the length of a file that another process created, after checking that the length cannot change.
pub(crate) fn sealed_length(file: BorrowedFd<'_>) -> io::Result<u64> {
    let unsealed =
        || io::Error::new(io::ErrorKind::InvalidData, "shared memory file is not sealed against resizing");
    let seals = fcntl_get_seals(file).map_err(|_| unsealed())?;
    if !seals.contains(SealFlags::SHRINK | SealFlags::GROW) {
        return Err(unsealed());
    }
    Ok(u64::try_from(fstat(file)?.st_size).unwrap_or(0))
}

/// Returns `length` rounded up to whole pages, at least one page.
pub(crate) fn whole_pages(length: u64) -> Option<u64> {
    length.max(1).checked_next_multiple_of(page_size() as u64)
}

/// A range of shared pages, readable and usually writable. Dropping it unmaps the pages.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    length: usize,
    /// The pages stay mapped until the process ends.
    is_kept: bool,
}

// SAFETY: sound because a mapping is an address and a length. The pages belong to the process, not to a thread, and every access goes through the
// owner's own `unsafe` code. Needed because devices and memories move to the thread that drives them.
unsafe impl Send for Mapping {}
// SAFETY: sound as above; a shared reference only yields the address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `length` bytes of a sealed file.
    pub(crate) fn new(file: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        Self::with_protection(file, length, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// Maps the first `length` bytes of a sealed file read-only. A write through this mapping raises SIGSEGV, so the holder must refuse writes
    /// itself.
    pub(crate) fn read_only(file: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        Self::with_protection(file, length, ProtFlags::READ)
    }

    fn with_protection(file: BorrowedFd<'_>, length: usize, protection: ProtFlags) -> io::Result<Self> {
        // SAFETY: sound because a null hint lets the kernel choose a free range, so no existing memory is touched. Needed for every mapping.
        let base = unsafe { mmap(ptr::null_mut(), length, protection, MapFlags::SHARED, file, 0)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, length, is_kept: false })
    }

    /// Maps `header` bytes and then `body` bytes *twice in a row*, so that a range that runs past the end of the body continues at its beginning
    /// without a gap. Both lengths are whole pages.
    pub(crate) fn mirrored(file: BorrowedFd<'_>, header: usize, body: usize) -> io::Result<Self> {
        let length = header + 2 * body;
        // SAFETY: sound because a null hint touches no existing memory. Needed to reserve one contiguous address range.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), length, ProtFlags::empty(), MapFlags::PRIVATE)? }
            .cast::<u8>();
        let base = NonNull::new(base).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Self { base, length, is_kept: false };
        mapping.map_at(file, 0, 0, header + body)?;
        mapping.map_at(file, header + body, header, body)?;
        Ok(mapping)
    }

    /// Maps `length` bytes of the file, beginning at `file_offset`, over the reserved range at `offset`.
    fn map_at(
        &self,
        file: BorrowedFd<'_>,
        offset: usize,
        file_offset: usize,
        length: usize,
    ) -> io::Result<()> {
        debug_assert!(offset + length <= self.length);
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let target = self.base.as_ptr().wrapping_add(offset).cast();
        // SAFETY: sound because the call replaces only pages of a range that this mapping owns. Raw pointers into the range stay mapped, and the only
        // Rust references to shared bytes are atomics, whose values may change at any time. Needed because only MAP_FIXED maps at a given address.
        unsafe {
            mmap(target, length, protection, MapFlags::SHARED | MapFlags::FIXED, file, file_offset as u64)?
        };
        Ok(())
    }

    /// Maps another file, at least as long, at the same address. Pointers into the range stay valid and then refer to the other file's bytes.
    pub(crate) fn replace(&mut self, file: BorrowedFd<'_>) -> io::Result<()> {
        self.map_at(file, 0, 0, self.length)
    }

    /// Returns the address of the first byte. It is valid for reads and writes of `length` bytes while `self` exists.
    #[inline]
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Keeps the pages mapped after drop. Used when a device accesses the range by its address, which no later mapping may reuse.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Returns the number of bytes mapped.
    #[inline]
    pub(crate) fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        // SAFETY: sound because this value mapped the range, and every pointer into it is bounded by the lifetime of its owner. Needed to release the
        // pages.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
        debug_assert!(result.is_ok(), "the range was mapped, so it can be unmapped");
    }
}

/// Duplicates a file descriptor. The new descriptor is closed on exec.
pub(crate) fn duplicate(file: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(file, 0)?)
}
