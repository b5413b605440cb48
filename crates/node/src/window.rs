//! A bounds-checked view of bytes that other processes may access at the same time.
//!
//! Shared pages are never a Rust slice. Bytes are copied in and out through raw pointers, and aligned words of 4 or 8 bytes are accessed with CPU
//! atomics only. A member uses this view for its own memory and for the mapped memory of a peer, so both sides interpret the same bytes identically.
//!
//! A window checks no keys and no permissions, and no lifetimes beyond that of the mapping.

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use rackloom_protocol::{Atomic, MemoryFault, SignalKind, Width};

use crate::copying;
use crate::fetch::fetch;
use crate::mapping::Mapping;

/// A range of bytes of a mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    base: *mut u8,
    length: usize,
    pages: PhantomData<&'a Mapping>,
}

impl<'a> Window<'a> {
    /// Returns a window of the first `length` bytes of a mapping.
    #[inline]
    pub(crate) fn new(pages: &'a Mapping, length: usize) -> Self {
        Self { base: pages.base(), length: length.min(pages.length()), pages: PhantomData }
    }

    /// Returns a window of `length` bytes at `base`.
    ///
    /// # Safety
    /// The bytes are valid for reads and writes for all of `'a`, and no Rust reference to them exists meanwhile, other than to atomics.
    pub(crate) unsafe fn over(base: *mut u8, length: usize) -> Self {
        Self { base, length, pages: PhantomData }
    }

    /// Returns the window without its first `bytes` bytes, or an empty window if it has fewer.
    pub(crate) fn after(self, bytes: usize) -> Self {
        let bytes = bytes.min(self.length);
        Self { base: self.base.wrapping_add(bytes), length: self.length - bytes, pages: PhantomData }
    }

    /// Returns the address of `length` bytes at `offset`, if they lie within the window.
    #[inline]
    pub(crate) fn range(self, offset: u64, length: usize) -> Result<*mut u8, MemoryFault> {
        let start = usize::try_from(offset).map_err(|_| MemoryFault::NotMapped)?;
        match start.checked_add(length) {
            Some(end) if end <= self.length => Ok(self.base.wrapping_add(start)),
            _ => Err(MemoryFault::NotMapped),
        }
    }

    /// Returns the aligned 8-byte word at `offset`, which other processes may access at the same time.
    #[inline]
    pub(crate) fn word_64(self, offset: u64) -> Option<&'a AtomicU64> {
        let address = self.range(offset, 8).ok().filter(|address| address.addr() % 8 == 0)?;
        // SAFETY: sound because `range` has checked that all 8 bytes are mapped, the address is a multiple of 8, and the reference does not outlive
        // the mapping. Needed because the word lies in shared pages.
        Some(unsafe { AtomicU64::from_ptr(address.cast()) })
    }

    #[inline]
    fn word_32(self, offset: u64) -> Option<&'a AtomicU32> {
        let address = self.range(offset, 4).ok().filter(|address| address.addr() % 4 == 0)?;
        // SAFETY: sound as in `word_64`, with 4 bytes.
        Some(unsafe { AtomicU32::from_ptr(address.cast()) })
    }

    /// Copies bytes into the window. Earlier writes become visible to others before this one. A single aligned word is stored atomically, so that a
    /// reader sees either the old or the new value.
    #[inline]
    pub(crate) fn write(self, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let target = self.range(offset, bytes.len())?;
        if let (Ok(word), Some(target)) = (bytes.try_into().map(u64::from_ne_bytes), self.word_64(offset)) {
            target.store(word, Ordering::Release);
            return Ok(());
        }
        if let (Ok(word), Some(target)) = (bytes.try_into().map(u32::from_ne_bytes), self.word_32(offset)) {
            target.store(word, Ordering::Release);
            return Ok(());
        }
        fence(Ordering::Release);
        // SAFETY: sound because `range` has checked that the whole target is mapped. `bytes` is ordinary memory or a frame, and neither overlaps a
        // region. Another process that accesses the same bytes now may see a mixture of old and new bytes, as on real hardware. Needed because shared
        // pages are not a slice.
        unsafe { copying::copy(bytes.as_ptr(), target, bytes.len()) };
        Ok(())
    }

    /// Prefetches the line at `offset`, if the offset is valid. Call it before a write.
    #[inline]
    pub(crate) fn fetch(self, offset: u64) {
        if let Ok(line) = self.range(offset, 1) {
            fetch(line);
        }
    }

    #[inline]
    pub(crate) fn read(self, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        let source = self.range(offset, out.len())?;
        if let (true, Some(word)) = (out.len() == 8, self.word_64(offset)) {
            out.copy_from_slice(&word.load(Ordering::Acquire).to_ne_bytes());
            return Ok(());
        }
        if let (true, Some(word)) = (out.len() == 4, self.word_32(offset)) {
            out.copy_from_slice(&word.load(Ordering::Acquire).to_ne_bytes());
            return Ok(());
        }
        // SAFETY: sound because `range` has checked that the whole source is mapped. `out` is the caller's own memory and does not overlap a region.
        // Needed because shared pages are not a slice.
        unsafe { copying::copy(source, out.as_mut_ptr(), out.len()) };
        fence(Ordering::Acquire);
        Ok(())
    }

    /// Copies `length` bytes of another window to `offset`, with the ordering of [`Self::write`].
    pub(crate) fn copy_from(
        self,
        offset: u64,
        source: Window<'_>,
        source_offset: u64,
        length: usize,
    ) -> Result<(), MemoryFault> {
        let target = self.range(offset, length)?;
        let source = source.range(source_offset, length)?;
        fence(Ordering::AcqRel);
        let are_apart = source.addr().abs_diff(target.addr()) >= length;
        // SAFETY: sound because both ranges were checked to be mapped for the whole length. They may overlap if both windows are the same, which
        // `ptr::copy` allows. Needed because shared pages are not a slice.
        unsafe {
            if are_apart { copying::copy(source, target, length) } else { ptr::copy(source, target, length) }
        };
        fence(Ordering::AcqRel);
        Ok(())
    }

    /// Updates a signal's word after all earlier writes.
    pub(crate) fn signal(self, offset: u64, kind: SignalKind, value: u64) -> Result<(), MemoryFault> {
        self.range(offset, 8)?;
        self.atomic(offset, &kind.atomic(value)).map(|_| ())
    }

    /// Carries out an atomic operation and returns the old value. [`Atomic::apply`] defines the operation, here as in the simulator.
    pub(crate) fn atomic(self, offset: u64, atomic: &Atomic) -> Result<u64, MemoryFault> {
        self.range(offset, atomic.width.bytes() as usize)?;
        match atomic.width {
            Width::Eight => {
                let word = self.word_64(offset).ok_or(MemoryFault::Device)?;
                let next = |old: u64| Some(atomic.apply(u64::from_le(old)).to_le());
                let old = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
                Ok(u64::from_le(old.unwrap_or_else(|old| old)))
            }
            Width::Four => {
                let word = self.word_32(offset).ok_or(MemoryFault::Device)?;
                let next = |old: u32| Some((atomic.apply(u64::from(u32::from_le(old))) as u32).to_le());
                let old = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
                Ok(u64::from(u32::from_le(old.unwrap_or_else(|old| old))))
            }
        }
    }
}
