//! Host memory of one member: one sealed anonymous file per region, mapped, zeroed, first touched when used.
//!
//! A region is a file so that a process of the same server can map it later; sealed so that nobody can shrink it
//! under us. Because others may map it, its bytes are never a Rust slice: they are copied in and out through raw
//! pointers, and words that somebody may wait for are touched by CPU atomics only.
//!
//! Who may touch which range is decided by the core before it asks; the bounds are checked here once more, because a
//! wrong range here would be a wild write. This file knows no keys, tenants or permissions.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use rackloom_protocol::{
    Atomic, FrameRange, Memory, MemoryAccess, MemoryDone, MemoryFault, MemoryRequest, RegionId, Width,
};

use crate::mapping::{Mapping, sealed_memfd, whole_pages};

/// Most bytes that one read request may ask for.
const READ_BYTES_MAX: usize = 256;

/// The regions of one member.
#[derive(Debug)]
pub struct HostMemory {
    /// Sorted by region.
    regions: Vec<Region>,
    scratch: Box<[u8; READ_BYTES_MAX]>,
}

#[derive(Debug)]
struct Region {
    region: RegionId,
    file: OwnedFd,
    pages: Mapping,
    length: usize,
}

impl Default for HostMemory {
    fn default() -> Self {
        Self { regions: Vec::new(), scratch: Box::new([0; READ_BYTES_MAX]) }
    }
}

impl HostMemory {
    /// Add a zeroed region. An error if there is one of this name, or no memory for it.
    pub fn allocate(&mut self, region: RegionId, length: u64) -> io::Result<()> {
        let Err(place) = self.position(region) else {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{region} exists already")));
        };
        let too_large =
            || io::Error::new(io::ErrorKind::OutOfMemory, format!("{region}: {length} bytes are too many"));
        let file_length = whole_pages(length).ok_or_else(too_large)?;
        let mapped_length = usize::try_from(file_length).map_err(|_| too_large())?;
        let file = sealed_memfd("rackloom-region", file_length)?;
        let pages = Mapping::new(file.as_fd(), mapped_length)?;
        self.regions.insert(place, Region { region, file, pages, length: length as usize });
        Ok(())
    }

    /// Unmap a region. Returns whether there was one.
    pub fn free(&mut self, region: RegionId) -> bool {
        self.position(region).map(|place| self.regions.remove(place)).is_ok()
    }

    /// Length of a region in bytes.
    #[must_use]
    pub fn length(&self, region: RegionId) -> Option<u64> {
        self.find(region).map(|found| found.length as u64)
    }

    /// The file behind a region, for a process of the same server to map.
    #[must_use]
    pub fn file(&self, region: RegionId) -> Option<BorrowedFd<'_>> {
        self.find(region).map(|found| found.file.as_fd())
    }

    fn position(&self, region: RegionId) -> Result<usize, usize> {
        self.regions.binary_search_by_key(&region, |known| known.region)
    }

    fn find(&self, region: RegionId) -> Option<&Region> {
        self.position(region).ok().map(|place| &self.regions[place])
    }

    fn found(&self, region: RegionId) -> Result<&Region, MemoryFault> {
        self.find(region).ok_or(MemoryFault::NotMapped)
    }

    fn write_ranges(&self, region: RegionId, ranges: &[FrameRange], frame: &[u8]) -> Result<(), MemoryFault> {
        let region = self.found(region)?;
        for range in ranges {
            let from = range.frame_offset as usize;
            let bytes = from.checked_add(range.length as usize).and_then(|to| frame.get(from..to));
            region.write(range.region_offset, bytes.ok_or(MemoryFault::Device)?)?;
        }
        Ok(())
    }
}

impl Memory for HostMemory {
    fn execute<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>> {
        let region = request.region;
        let done = match request.access {
            MemoryAccess::Write { ranges, .. } => {
                self.write_ranges(region, ranges, frame).map(|()| MemoryDone::Written)
            }
            MemoryAccess::Read { offset, length } => {
                let place = self.position(region);
                match (place, self.scratch.get_mut(..length as usize)) {
                    (Ok(place), Some(out)) => self.regions[place].read(offset, out).map(|()| length as usize),
                    (Err(_), _) => Err(MemoryFault::NotMapped),
                    (_, None) => Err(MemoryFault::Device),
                }
                .map(|length| MemoryDone::Bytes(&self.scratch[..length]))
            }
            MemoryAccess::Atomic { offset, atomic } => {
                self.found(region).and_then(|found| found.atomic(offset, &atomic)).map(MemoryDone::Value)
            }
        };
        Some(done.unwrap_or_else(MemoryDone::Failed))
    }

    fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.found(region)?.read(offset, out)
    }

    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.found(region)?.write(offset, bytes)
    }
}

impl Region {
    /// Address of `length` bytes at `offset`, if they lie within the region.
    fn range(&self, offset: u64, length: usize) -> Result<*mut u8, MemoryFault> {
        let start = usize::try_from(offset).map_err(|_| MemoryFault::NotMapped)?;
        match start.checked_add(length) {
            Some(end) if end <= self.length && end <= self.pages.length() => {
                Ok(self.pages.base().wrapping_add(start))
            }
            _ => Err(MemoryFault::NotMapped),
        }
    }

    /// A word that others may touch at the same time.
    fn word_64(&self, offset: u64) -> Option<&AtomicU64> {
        let address = self.range(offset, 8).ok().filter(|address| address.addr() % 8 == 0)?;
        // SAFETY: needed because the word lives in shared pages. `range` has checked that all 8 bytes are mapped, the
        // address is a multiple of 8, and the reference does not outlive the region.
        Some(unsafe { AtomicU64::from_ptr(address.cast()) })
    }

    fn word_32(&self, offset: u64) -> Option<&AtomicU32> {
        let address = self.range(offset, 4).ok().filter(|address| address.addr() % 4 == 0)?;
        // SAFETY: as for `word_64`, with 4 bytes.
        Some(unsafe { AtomicU32::from_ptr(address.cast()) })
    }

    /// Copy bytes in. What was written before is visible to others before what is written by this call: a lone
    /// aligned word is stored whole, so that a waiter sees the old or the new value.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
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

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
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

    /// Carry out an atomic; the old value. What it means is [`Atomic::apply`], the same as in the simulator.
    fn atomic(&self, offset: u64, atomic: &Atomic) -> Result<u64, MemoryFault> {
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
