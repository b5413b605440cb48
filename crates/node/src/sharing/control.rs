//! The control pages of one export: its current generation, and the importers that access it now.
//!
//! Word 0 is the generation. It is followed by one cache line per importer, with two words. The lower half of each word counts accesses
//! in progress, the upper half all accesses ever begun. An importer first announces an access in its line and then reads the generation. An
//! owner that revokes first raises the generation and then reads the lines. With a barrier between each of the two steps, at least one side
//! sees the other: either the owner sees the access, or the importer sees that it must not happen.
//!
//! Accesses are frequent and revocations rare, so the owner runs the barriers of both sides where the kernel supports it (`barrier`). An
//! announcement is then a plain store, if only one thread writes the word: the first word of the line belongs to one thread of the
//! importer. All other threads share the second word, which they change by atomic additions.
//!
//! Every importer can write to the pages, so an owner does not depend on them: a line that never returns to zero costs it a bounded wait, and
//! nothing else.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::barrier::{self, Barrier};
use crate::mapping::{Mapping, sealed_length, sealed_memfd};

const LINE_BYTES: usize = 64;
const CONTROL_BYTES: usize = 64 * 1024;
/// Largest number of importers of one export.
pub(super) const SLOTS_MAX: u32 = (CONTROL_BYTES / LINE_BYTES) as u32 - 1;

/// Bit of a generation whose owner requires frames for a while. It is in the word that every access reads anyway, so the check costs
/// nothing.
pub(super) const WITHHELD: u64 = 1 << 63;

/// Generation after the owner has left.
pub(super) const OWNER_LEFT: u64 = WITHHELD - 1;

/// Offset, in the generation's line, of the word that tells if the owner runs the barriers of both sides.
const HAS_BARRIERS: usize = 8;
/// Offset, in the generation's line, of the word that tells if the owner may wait for a word of the region.
const AWAITED: usize = 16;
/// Offset, in an importer's line, of the word that threads share.
const SHARED: usize = 8;

const BEGUN: u64 = 1 << 32;
const ACCESS: u64 = 1 | BEGUN;
const IN_PROGRESS: u64 = 0xffff_ffff;

/// Mapped control pages of an owner or an importer.
#[derive(Debug)]
pub(super) struct Control {
    pages: Mapping,
    barrier: Barrier,
}

/// Line of one importer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    offset: usize,
}

impl Slot {
    pub(super) const fn new(number: u32) -> Self {
        let number = if number < SLOTS_MAX { number } else { SLOTS_MAX - 1 };
        Self { offset: (1 + number as usize) * LINE_BYTES }
    }
}

impl Control {
    /// Creates control pages and their file.
    pub(super) fn create(generation: u64) -> io::Result<(Self, OwnedFd)> {
        Self::create_with(generation, if barrier::can_be_sent() { Barrier::Sent } else { Barrier::Own })
    }

    /// Creates control pages whose importers run their own barriers, for accesses that cost much more than one. A raise is then always reliable.
    pub(super) fn create_without_barriers(generation: u64) -> io::Result<(Self, OwnedFd)> {
        Self::create_with(generation, Barrier::Own)
    }

    fn create_with(generation: u64, barrier: Barrier) -> io::Result<(Self, OwnedFd)> {
        let file = sealed_memfd("rackloom-control", CONTROL_BYTES as u64)?;
        let control = Self { pages: Mapping::new(file.as_fd(), CONTROL_BYTES)?, barrier };
        control.word(HAS_BARRIERS).store(u64::from(barrier == Barrier::Sent), Ordering::SeqCst);
        control.word(0).store(generation, Ordering::SeqCst);
        control.set_awaited(true);
        Ok((control, file))
    }

    /// Maps the control pages of a peer.
    pub(super) fn open(file: BorrowedFd<'_>) -> io::Result<Self> {
        if sealed_length(file)? < CONTROL_BYTES as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "control pages are too short"));
        }
        let mut control = Self { pages: Mapping::new(file, CONTROL_BYTES)?, barrier: Barrier::Own };
        if control.word(HAS_BARRIERS).load(Ordering::SeqCst) == 1 && barrier::receive() {
            control.barrier = Barrier::Sent;
        }
        Ok(control)
    }

    /// Tells importers if a change of the region must wake the owner.
    pub(super) fn set_awaited(&self, is_awaited: bool) {
        self.word(AWAITED).store(u64::from(is_awaited), Ordering::SeqCst);
    }

    /// Returns `true` if a change of the region must wake the owner. Call it after the change: one side sees the other's store, because the owner
    /// reads the awaited word after [`Self::set_awaited`].
    #[inline]
    pub(super) fn is_awaited(&self) -> bool {
        fence(Ordering::SeqCst);
        self.word(AWAITED).load(Ordering::SeqCst) != 0
    }

    /// Returns `true` if a thread may announce accesses in a word of its own.
    pub(super) fn has_barriers(&self) -> bool {
        self.barrier == Barrier::Sent
    }

    /// Returns the current generation.
    #[inline(always)]
    pub(super) fn generation(&self) -> u64 {
        self.word(0).load(Ordering::SeqCst)
    }

    /// Raises the generation: no access of an earlier generation begins from now on. Returns `false` if announcements are not reliable,
    /// because the barrier of the importers, which the owner runs, was refused.
    pub(super) fn raise(&self, generation: u64) -> bool {
        self.word(0).store(generation, Ordering::SeqCst);
        self.barrier == Barrier::Own || barrier::send()
    }

    /// Raises the generation for an owner that does not read announcements afterwards.
    pub(super) fn raise_without_barrier(&self, generation: u64) {
        self.word(0).store(generation, Ordering::SeqCst);
    }

    /// Begins an access of the thread that owns the first word, with barriers of the owner. Returns the previous value of the word.
    #[inline(always)]
    pub(super) fn begin(&self, slot: Slot) -> u64 {
        debug_assert!(self.has_barriers());
        let word = self.word(slot.offset);
        let before = word.load(Ordering::Relaxed);
        word.store(before.wrapping_add(ACCESS), Ordering::Relaxed);
        barrier::keep_order();
        before
    }

    /// Ends an access of the thread that owns the first word.
    #[inline(always)]
    pub(super) fn end(&self, slot: Slot, before: u64) {
        self.word(slot.offset).store(before.wrapping_add(BEGUN), Ordering::Release);
    }

    /// Begins an access of any thread of an importer. Returns the previous value of the word.
    pub(super) fn enter(&self, slot: Slot) -> u64 {
        self.word(slot.offset + SHARED).fetch_add(ACCESS, Ordering::SeqCst)
    }

    /// Ends an access of any thread of an importer.
    pub(super) fn leave(&self, slot: Slot) {
        self.word(slot.offset + SHARED).fetch_sub(1, Ordering::Release);
    }

    /// Returns the number of accesses in progress, according to the importer.
    pub(super) fn in_progress(&self, slot: Slot) -> u64 {
        let count = |at| self.word(at).load(Ordering::SeqCst) & IN_PROGRESS;
        count(slot.offset) + count(slot.offset + SHARED)
    }

    /// Clears the line of an importer that has ended.
    pub(super) fn clear(&self, slot: Slot) {
        self.word(slot.offset).store(0, Ordering::SeqCst);
        self.word(slot.offset + SHARED).store(0, Ordering::SeqCst);
    }

    #[inline(always)]
    fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at.is_multiple_of(size_of::<u64>()) && at < CONTROL_BYTES);
        // SAFETY: needed because the words live in pages shared with other processes. `at` is a multiple of 8 within the
        // page-aligned mapping, which lives as long as `self`; every process touches the word only as an atomic.
        unsafe { AtomicU64::from_ptr(self.pages.base().add(at).cast()) }
    }
}

/// Returns the number of accesses that had begun when a word of a line had this value.
#[inline(always)]
pub(super) const fn begun(word: u64) -> u64 {
    word / BEGUN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_share_the_generation_and_the_lines() {
        let (owner, file) = Control::create(5).unwrap();
        let importer = Control::open(file.as_fd()).unwrap();
        assert_eq!(importer.generation(), 5);
        for slot in [0, 1, SLOTS_MAX - 1].map(Slot::new) {
            assert_eq!(owner.in_progress(slot), 0);
            assert_eq!(begun(importer.enter(slot)), 0);
            assert_eq!(begun(importer.enter(slot)), 1);
            assert_eq!(owner.in_progress(slot), 2);
            importer.leave(slot);
            importer.leave(slot);
            assert_eq!(owner.in_progress(slot), 0);
            assert_eq!(begun(importer.enter(slot)), 2, "the count of accesses continues");
            if importer.has_barriers() {
                let before = importer.begin(slot);
                assert_eq!((begun(before), owner.in_progress(slot)), (0, 2), "a word of its own");
                importer.end(slot, before);
                assert_eq!(owner.in_progress(slot), 1);
                let before = importer.begin(slot);
                assert_eq!((begun(before), owner.in_progress(slot)), (1, 2));
            } else {
                println!("no barriers here: words of one thread are not tested");
            }
            owner.clear(slot);
            assert_eq!(owner.in_progress(slot), 0);
        }
        assert!(owner.raise(6), "announcements can be relied on");
        assert_eq!(importer.generation(), 6);
    }

    /// Both sides store and then load at the same time. At least one sees the other. Without barriers, neither does in about one of a
    /// hundred rounds. Threads of the importer end meanwhile: the kernel then leaves out some barriers.
    #[test]
    fn the_owner_sees_an_announcement_or_the_importer_sees_the_revocation() {
        const ROUNDS: u64 = 5_000;
        const ROUNDS_PER_THREAD: u64 = 64;
        let (owner, file) = Control::create(1).unwrap();
        let importer = Control::open(file.as_fd()).unwrap();
        if !importer.has_barriers() {
            println!("no barriers here: announcements by plain stores are not tested");
            return;
        }
        let (slot, rounds) = (Slot::new(0), [(); 2].map(|()| AtomicU64::new(0)));
        let saw = AtomicU64::new(0);
        // Marks that a side has reached a round, and waits for the other side, until the deadline.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(1);
        let meet = |side: usize, round: u64| {
            rounds[side].store(round, Ordering::SeqCst);
            while rounds[1 - side].load(Ordering::SeqCst) < round {
                if std::time::Instant::now() > deadline {
                    return false;
                }
            }
            true
        };
        let importing = || {
            for round in 1..ROUNDS {
                if !meet(0, 2 * round) {
                    return;
                }
                let before = importer.begin(slot);
                saw.store(importer.generation(), Ordering::SeqCst);
                if !meet(0, 2 * round + 1) {
                    return;
                }
                importer.end(slot, before);
                if round.is_multiple_of(ROUNDS_PER_THREAD) {
                    std::thread::scope(|scope| drop(scope.spawn(std::thread::yield_now)));
                }
            }
        };
        let played = std::thread::scope(|scope| {
            scope.spawn(importing);
            for round in 1..ROUNDS {
                if !meet(1, 2 * round) {
                    return round;
                }
                assert!(owner.raise(round + 1));
                let seen = owner.in_progress(slot);
                if !meet(1, 2 * round + 1) {
                    return round;
                }
                let sees = saw.load(Ordering::SeqCst) == round + 1;
                assert!(seen == 1 || sees, "round {round}: neither side has seen the other");
            }
            ROUNDS
        });
        println!("{played} rounds");
    }

    #[test]
    fn a_short_control_file_is_refused() {
        let short = sealed_memfd("short", 4096).unwrap();
        assert!(Control::open(short.as_fd()).is_err());
    }
}
