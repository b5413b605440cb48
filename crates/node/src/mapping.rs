//! Sealed anonymous files and their mappings: the only place that asks the kernel for shared pages.
//!
//! A file that another process also holds could be truncated under us, and the next touch would be a SIGBUS. So every
//! file is sealed against shrinking and growing before anybody else sees it, and a file that comes from elsewhere is
//! mapped only if it carries these seals.
//!
//! A mapping hands out raw pointers only. Who reads and writes through them, and when, is up to its owner.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::param::page_size;

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A zeroed anonymous file of `length` bytes whose length can never change again.
pub(crate) fn sealed_memfd(name: &str, length: u64) -> io::Result<OwnedFd> {
    sealed_memfd_with(name, length, MemfdFlags::empty())
}

/// The same with more flags, such as a page size.
pub(crate) fn sealed_memfd_with(name: &str, length: u64, flags: MemfdFlags) -> io::Result<OwnedFd> {
    let file = memfd_create(name, flags | MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, length)?;
    fcntl_add_seals(&file, SEALS)?;
    Ok(file)
}

/// The length of a file that came from elsewhere, once it is certain that the length cannot change.
pub(crate) fn sealed_length(file: BorrowedFd<'_>) -> io::Result<u64> {
    let unsealed =
        || io::Error::new(io::ErrorKind::InvalidData, "shared memory file is not sealed against resizing");
    let seals = fcntl_get_seals(file).map_err(|_| unsealed())?;
    if !seals.contains(SealFlags::SHRINK | SealFlags::GROW) {
        return Err(unsealed());
    }
    Ok(u64::try_from(fstat(file)?.st_size).unwrap_or(0))
}

/// `length` rounded up to whole pages, at least one.
pub(crate) fn whole_pages(length: u64) -> Option<u64> {
    length.max(1).checked_next_multiple_of(page_size() as u64)
}

/// Shared pages, readable and mostly writable; unmapped on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    length: usize,
    /// Somebody relies on the pages until the process ends.
    is_kept: bool,
}

// SAFETY: needed because a device or a memory moves to the thread that drives it. A mapping is an address and a
// length; the pages belong to the process, not to a thread, and every access goes through the owner's own `unsafe`.
unsafe impl Send for Mapping {}
// SAFETY: as above; a shared reference only yields the address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Map the first `length` bytes of a sealed file.
    pub(crate) fn new(file: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        Self::with_protection(file, length, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// Map the first `length` bytes of a sealed file for reading. A write through this mapping is a fault of the
    /// process, so whoever holds it must refuse writes itself.
    pub(crate) fn read_only(file: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        Self::with_protection(file, length, ProtFlags::READ)
    }

    fn with_protection(file: BorrowedFd<'_>, length: usize, protection: ProtFlags) -> io::Result<Self> {
        // SAFETY: needed to map at all. A null hint lets the kernel choose a free range, so no existing memory is
        // touched.
        let base = unsafe { mmap(ptr::null_mut(), length, protection, MapFlags::SHARED, file, 0)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, length, is_kept: false })
    }

    /// Map `header` bytes and then `body` bytes *twice in a row*, so that a range that runs over the end of the body
    /// continues at its beginning without a seam. Both lengths are whole pages.
    pub(crate) fn mirrored(file: BorrowedFd<'_>, header: usize, body: usize) -> io::Result<Self> {
        let length = header + 2 * body;
        // SAFETY: needed to reserve one unbroken address range; a null hint touches no existing memory.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), length, ProtFlags::empty(), MapFlags::PRIVATE)? }
            .cast::<u8>();
        let base = NonNull::new(base).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Self { base, length, is_kept: false };
        mapping.place(file, 0, 0, header + body)?;
        mapping.place(file, header + body, header, body)?;
        Ok(mapping)
    }

    /// Put `length` bytes of the file from `offset` over the reserved range at `at`.
    fn place(&self, file: BorrowedFd<'_>, at: usize, offset: usize, length: usize) -> io::Result<()> {
        debug_assert!(at + length <= self.length);
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let target = self.base.as_ptr().wrapping_add(at).cast();
        // SAFETY: needed because only MAP_FIXED puts a view at a given place. It replaces pages of a range that this
        // very mapping holds; raw pointers into it stay mapped, and there are no Rust references to shared bytes
        // other than atomics, which may change at any time anyway.
        unsafe { mmap(target, length, protection, MapFlags::SHARED | MapFlags::FIXED, file, offset as u64)? };
        Ok(())
    }

    /// Show another file, at least as long, at the same address. Pointers into the range stay valid and see the other
    /// file's bytes from now on.
    pub(crate) fn replace(&mut self, file: BorrowedFd<'_>) -> io::Result<()> {
        self.place(file, 0, 0, self.length)
    }

    /// Address of the first byte; valid for reads and writes of `length` bytes as long as `self` lives.
    #[inline]
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Never unmap it: a device reads it by its address, and another mapping must not be mistaken for this one.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Number of bytes mapped.
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
        // SAFETY: needed to give the pages back. The range was mapped by this value, and every pointer into it is
        // bounded by the lifetime of its owner.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
        debug_assert!(result.is_ok(), "a range that was mapped can be unmapped");
    }
}

/// A second descriptor of the same file.
pub(crate) fn duplicate(file: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(file, 0)?)
}
