//! One allocation of a fake device: ordinary memory, or pages of an anonymous file that other devices can map.
//!
//! Other devices may access shared pages, so bytes are never a Rust slice, and aligned words are atomics.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Alignment of allocations in bytes, as on a real device.
pub(super) const GRANULE: u64 = 256;

#[derive(Debug)]
pub(super) struct Block {
    base: NonNull<u8>,
    length: usize,
    backing: Backing,
}

#[derive(Debug)]
enum Backing {
    Heap(Layout),
    /// Shared pages. The file is kept for later exports.
    Pages(Option<OwnedFd>),
}

// SAFETY: needed because a device moves between threads. The memory belongs to the process.
unsafe impl Send for Block {}

impl Block {
    /// Allocates zeroed private memory.
    pub(super) fn allocate(length: usize) -> Option<Self> {
        let layout = Layout::from_size_align(length.max(1), GRANULE as usize).ok()?;
        // SAFETY: needed because a block may be shared later and is no Rust value. The layout is not empty.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { base, length, backing: Backing::Heap(layout) })
    }

    /// Maps memory of another device or of a pool: a part of a file from a whole page on.
    pub(super) fn map(file: BorrowedFd<'_>, offset: u64, length: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: needed to map at all. A null hint lets the kernel choose a free range, so no existing memory is touched.
        let base =
            unsafe { mmap(ptr::null_mut(), length.max(1), protection, MapFlags::SHARED, file, offset)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, length, backing: Backing::Pages(None) })
    }

    /// Moves the bytes to a file, if they are not in one, and returns the file. No other device has the block at this time.
    pub(super) fn share(&mut self) -> io::Result<OwnedFd> {
        if let Backing::Pages(Some(file)) = &self.backing {
            return file.as_fd().try_clone_to_owned();
        }
        let file = memfd_create("fake-device", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, self.length.max(1) as u64)?;
        let mut shared = Self::map(file.as_fd(), 0, self.length)?;
        // SAFETY: needed because blocks are no slices. Both have this length, and no other device has the new one yet.
        unsafe { ptr::copy_nonoverlapping(self.base.as_ptr(), shared.base.as_ptr(), self.length) };
        shared.backing = Backing::Pages(Some(file.as_fd().try_clone_to_owned()?));
        *self = shared;
        Ok(file)
    }

    pub(super) const fn length(&self) -> usize {
        self.length
    }

    /// Copies bytes out. The range must be within the block.
    pub(super) fn read(&self, from: usize, out: &mut [u8]) {
        assert!(from + out.len() <= self.length, "a read within its block");
        if let (Ok(word), Some(atomic)) = (<&mut [u8; 8]>::try_from(&mut *out), self.word_64(from)) {
            *word = atomic.load(Ordering::Acquire).to_ne_bytes();
            return;
        }
        // SAFETY: needed because others may touch the bytes at the same time. The range lies within the block.
        unsafe { ptr::copy_nonoverlapping(self.base.as_ptr().add(from), out.as_mut_ptr(), out.len()) };
    }

    /// Copies bytes in. An aligned word of 8 bytes by itself is written whole, after everything before.
    pub(super) fn write(&self, from: usize, bytes: &[u8]) {
        assert!(from + bytes.len() <= self.length, "a write within its block");
        if let (Ok(word), Some(atomic)) = (bytes.try_into(), self.word_64(from)) {
            atomic.store(u64::from_ne_bytes(word), Ordering::Release);
            return;
        }
        // SAFETY: as for `read`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.as_ptr().add(from), bytes.len()) };
    }

    /// Changes a word atomically and returns the old value, or `None` if the word is not aligned.
    pub(super) fn change(&self, from: usize, width: u32, new: impl Fn(u64) -> u64) -> Option<u64> {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        Some(match width {
            4 => {
                let next = |old: u32| Some((new(u64::from(u32::from_le(old))) as u32).to_le());
                let old = self.word_32(from)?.fetch_update(success, failure, next);
                u64::from(u32::from_le(old.unwrap_or_else(|old| old)))
            }
            _ => {
                let next = |old: u64| Some(new(u64::from_le(old)).to_le());
                u64::from_le(
                    self.word_64(from)?.fetch_update(success, failure, next).unwrap_or_else(|old| old),
                )
            }
        })
    }

    fn word_64(&self, from: usize) -> Option<&AtomicU64> {
        let is_word = from.is_multiple_of(8) && from + 8 <= self.length;
        // SAFETY: needed because others may change it. It lies within, blocks begin at multiples of 256, and the reference does not
        // outlive the block.
        is_word.then(|| unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(from).cast()) })
    }

    fn word_32(&self, from: usize) -> Option<&AtomicU32> {
        let is_word = from.is_multiple_of(4) && from + 4 <= self.length;
        // SAFETY: as for `word_64`.
        is_word.then(|| unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(from).cast()) })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        match self.backing {
            // SAFETY: needed to give it back. It came from `alloc_zeroed` with this layout, and is given back once.
            Backing::Heap(layout) => unsafe { dealloc(self.base.as_ptr(), layout) },
            // SAFETY: needed to unmap it. The mapping has this length and is unmapped once. After a failure it stays mapped, which is harmless.
            Backing::Pages(_) => drop(unsafe { munmap(self.base.as_ptr().cast(), self.length.max(1)) }),
        }
    }
}
