//! A bounds-checked view of bytes that other processes may touch at the same time.
//!
//! Shared pages are never a Rust slice: they are copied in and out through raw pointers, and an aligned word of 4 or
//! 8 bytes is touched by CPU atomics only. Both the memory of this member and the memory of a peer that it has mapped
//! are read and written through this one view, so the same bytes mean the same thing on both sides.
//!
//! A window knows no keys, no permissions and no lifetimes beyond that of the mapping.

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use rackloom_protocol::{Atomic, AtomicKind, MemoryFault, SignalKind, Width};

use crate::fetch::fetch;
use crate::mapping::Mapping;

/// Some bytes of a mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    base: *mut u8,
    length: usize,
    pages: PhantomData<&'a Mapping>,
}

impl<'a> Window<'a> {
    /// The first `length` bytes of a mapping.
    #[inline]
    pub(crate) fn new(pages: &'a Mapping, length: usize) -> Self {
        Self { base: pages.base(), length: length.min(pages.length()), pages: PhantomData }
    }

    /// `length` bytes at `base`.
    ///
    /// # Safety
    /// They are valid for reads and writes for all of `'a`, and nobody holds a Rust reference to them meanwhile, other
    /// than to atomics.
    pub(crate) unsafe fn over(base: *mut u8, length: usize) -> Self {
        Self { base, length, pages: PhantomData }
    }

    /// The same without its first bytes, of which there are so many at least.
    pub(crate) fn after(self, bytes: usize) -> Self {
        let bytes = bytes.min(self.length);
        Self { base: self.base.wrapping_add(bytes), length: self.length - bytes, pages: PhantomData }
    }

    /// Address of `length` bytes at `offset`, if they lie within the region.
    #[inline]
    pub(crate) fn range(self, offset: u64, length: usize) -> Result<*mut u8, MemoryFault> {
        let start = usize::try_from(offset).map_err(|_| MemoryFault::NotMapped)?;
        match start.checked_add(length) {
            Some(end) if end <= self.length => Ok(self.base.wrapping_add(start)),
            _ => Err(MemoryFault::NotMapped),
        }
    }

    /// A word that others may touch at the same time.
    #[inline]
    pub(crate) fn word_64(self, offset: u64) -> Option<&'a AtomicU64> {
        let address = self.range(offset, 8).ok().filter(|address| address.addr() % 8 == 0)?;
        // SAFETY: needed because the word lives in shared pages. `range` has checked that all 8 bytes are mapped, the
        // address is a multiple of 8, and the reference does not outlive the mapping.
        Some(unsafe { AtomicU64::from_ptr(address.cast()) })
    }

    #[inline]
    fn word_32(self, offset: u64) -> Option<&'a AtomicU32> {
        let address = self.range(offset, 4).ok().filter(|address| address.addr() % 4 == 0)?;
        // SAFETY: as for `word_64`, with 4 bytes.
        Some(unsafe { AtomicU32::from_ptr(address.cast()) })
    }

    /// Copy bytes in. What was written before is visible to others before what is written by this call: a lone
    /// aligned word is stored whole, so that a waiter sees the old or the new value.
    #[inline]
    pub(crate) fn write(self, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let target = self.range(offset, bytes.len())?;
        if let (Ok(word), Some(place)) = (bytes.try_into().map(u64::from_ne_bytes), self.word_64(offset)) {
            place.store(word, Ordering::Release);
            return Ok(());
        }
        if let (Ok(word), Some(place)) = (bytes.try_into().map(u32::from_ne_bytes), self.word_32(offset)) {
            place.store(word, Ordering::Release);
            return Ok(());
        }
        fence(Ordering::Release);
        // SAFETY: needed because shared pages are not a slice. `range` has checked that the target is mapped for the
        // whole length; `bytes` is ordinary memory or a frame, neither of which overlaps a region. Another process
        // that touches the same bytes now sees them torn, as it would on real hardware.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
        Ok(())
    }

    /// Have the line at `offset` fetched, if there is one: it is about to be written.
    #[inline]
    pub(crate) fn fetch(self, offset: u64) {
        if let Ok(line) = self.range(offset, 1) {
            fetch(line);
        }
    }

    #[inline]
    pub(crate) fn read(self, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        let source = self.range(offset, out.len())?;
        if let (true, Some(place)) = (out.len() == 8, self.word_64(offset)) {
            out.copy_from_slice(&place.load(Ordering::Acquire).to_ne_bytes());
            return Ok(());
        }
        if let (true, Some(place)) = (out.len() == 4, self.word_32(offset)) {
            out.copy_from_slice(&place.load(Ordering::Acquire).to_ne_bytes());
            return Ok(());
        }
        // SAFETY: needed because shared pages are not a slice. `range` has checked that the source is mapped for the
        // whole length; `out` is the caller's own memory and does not overlap a region.
        unsafe { ptr::copy_nonoverlapping(source, out.as_mut_ptr(), out.len()) };
        fence(Ordering::Acquire);
        Ok(())
    }

    /// Copy `length` bytes of another window to `offset`, with the order of [`Self::write`].
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
        // SAFETY: needed because shared pages are not a slice. Both ranges were checked to be mapped for the whole
        // length; they may overlap if both windows are one, which `copy` allows.
        unsafe { ptr::copy(source, target, length) };
        fence(Ordering::AcqRel);
        Ok(())
    }

    /// Update a signal's word after everything that was written before.
    pub(crate) fn signal(self, offset: u64, kind: SignalKind, value: u64) -> Result<(), MemoryFault> {
        self.range(offset, 8)?;
        let atomic_kind = match kind {
            SignalKind::Set => AtomicKind::Set,
            SignalKind::Add => AtomicKind::FetchAdd,
        };
        let atomic = Atomic { kind: atomic_kind, width: Width::Eight, operand: value, compare: 0 };
        self.atomic(offset, &atomic).map(|_| ())
    }

    /// Carry out an atomic; the old value. What it means is [`Atomic::apply`], the same as in the simulator.
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
