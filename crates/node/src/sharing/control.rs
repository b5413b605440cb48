//! The control pages of one export: which generation of it is alive, and who is inside right now.
//!
//! Word 0 is the generation. Then comes one cache line per importer, of which word 0 counts two things: in its lower
//! half the accesses that are under way, in its upper half all accesses ever begun. An importer first announces
//! itself in its own line and then looks at the generation; an owner that revokes first raises the generation and then
//! looks at the lines. All four are sequentially consistent, so one of the two sees the other: an access either is
//! seen by the owner or sees that it must not happen.
//!
//! The pages are writable for every importer, so an owner takes them for a courtesy: a line that never comes down costs
//! it a bounded wait, nothing more.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::mapping::{Mapping, sealed_length, sealed_memfd};

const LINE_BYTES: usize = 64;
const CONTROL_BYTES: usize = 64 * 1024;
/// Most importers of one export.
pub(super) const SLOTS_MAX: u32 = (CONTROL_BYTES / LINE_BYTES) as u32 - 1;

const ACCESS: u64 = 1 | 1 << 32;
const UNDER_WAY: u64 = 0xffff_ffff;

/// Control pages, as seen from either side.
#[derive(Debug)]
pub(super) struct Control {
    pages: Mapping,
}

impl Control {
    /// New control pages and their file.
    pub(super) fn create(generation: u64) -> io::Result<(Self, OwnedFd)> {
        let file = sealed_memfd("rackloom-control", CONTROL_BYTES as u64)?;
        let control = Self::open(file.as_fd())?;
        control.word(0).store(generation, Ordering::SeqCst);
        Ok((control, file))
    }

    /// Map the control pages of a peer.
    pub(super) fn open(file: BorrowedFd<'_>) -> io::Result<Self> {
        if sealed_length(file)? < CONTROL_BYTES as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "control pages are too short"));
        }
        Ok(Self { pages: Mapping::new(file, CONTROL_BYTES)? })
    }

    /// The generation that is alive.
    pub(super) fn generation(&self) -> u64 {
        self.word(0).load(Ordering::SeqCst)
    }

    /// From now on no access of an earlier generation begins.
    pub(super) fn raise(&self, generation: u64) {
        self.word(0).store(generation, Ordering::SeqCst);
    }

    /// An importer begins an access. Returns how many it has begun before.
    pub(super) fn enter(&self, slot: u32) -> u64 {
        self.line(slot).fetch_add(ACCESS, Ordering::SeqCst) >> 32
    }

    /// An importer ends an access.
    pub(super) fn leave(&self, slot: u32) {
        self.line(slot).fetch_sub(1, Ordering::Release);
    }

    /// Accesses under way, as this importer says.
    pub(super) fn under_way(&self, slot: u32) -> u32 {
        (self.line(slot).load(Ordering::SeqCst) & UNDER_WAY) as u32
    }

    /// The importer is gone, and whatever it was doing with it.
    pub(super) fn clear(&self, slot: u32) {
        self.line(slot).store(0, Ordering::SeqCst);
    }

    fn line(&self, slot: u32) -> &AtomicU64 {
        self.word((1 + slot.min(SLOTS_MAX - 1) as usize) * LINE_BYTES)
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at.is_multiple_of(LINE_BYTES) && at < CONTROL_BYTES);
        // SAFETY: needed because the words live in pages shared with other processes. `at` is a multiple of 64 within
        // the page-aligned mapping, which lives as long as `self`; every process touches the word only as an atomic.
        unsafe { AtomicU64::from_ptr(self.pages.base().add(at).cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_see_one_generation_and_every_line_of_its_own() {
        let (owner, file) = Control::create(5).unwrap();
        let importer = Control::open(file.as_fd()).unwrap();
        assert_eq!(importer.generation(), 5);
        for slot in [0, 1, SLOTS_MAX - 1] {
            assert_eq!(owner.under_way(slot), 0);
            assert_eq!(importer.enter(slot), 0);
            assert_eq!(importer.enter(slot), 1);
            assert_eq!(owner.under_way(slot), 2);
            importer.leave(slot);
            importer.leave(slot);
            assert_eq!(owner.under_way(slot), 0);
            assert_eq!(importer.enter(slot), 2, "the count of accesses goes on");
            owner.clear(slot);
            assert_eq!(owner.under_way(slot), 0);
        }
        owner.raise(6);
        assert_eq!(importer.generation(), 6);
    }

    #[test]
    fn what_is_no_control_file_is_refused() {
        let short = sealed_memfd("short", 4096).unwrap();
        assert!(Control::open(short.as_fd()).is_err());
    }
}
