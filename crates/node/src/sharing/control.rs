//! The control pages of one export: which generation of it is alive, and who is inside right now.
//!
//! Word 0 is the generation. Then comes one cache line per importer with two words, each of which counts two things: in
//! its lower half the accesses that are under way, in its upper half all accesses ever begun. An importer first announces
//! itself in its own line and then looks at the generation; an owner that revokes first raises the generation and then
//! looks at the lines. With a barrier between each of the two, one of the two sees the other: an access either is seen by
//! the owner or sees that it must not happen.
//!
//! Accesses are many and revocations few, so where both sides can, the owner pays for both barriers (`barrier`). What is
//! then left of an announcement is a plain store, if only one thread ever writes the word: the first of the line's words
//! belongs to one thread of the importer, and all other threads share the second, which they change by atomic additions.
//!
//! The pages are writable for every importer, so an owner takes them for a courtesy: a line that never comes down costs
//! it a bounded wait, nothing more.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::barrier::{self, Barrier};
use crate::mapping::{Mapping, sealed_length, sealed_memfd};

const LINE_BYTES: usize = 64;
const CONTROL_BYTES: usize = 64 * 1024;
/// Most importers of one export.
pub(super) const SLOTS_MAX: u32 = (CONTROL_BYTES / LINE_BYTES) as u32 - 1;

/// Set in a generation whose owner wants to be asked in frames for a while. It lies in the word that every access looks at anyway, so
/// that asking costs nothing.
pub(super) const WITHHELD: u64 = 1 << 63;

/// Offset of the word that says whether the owner has barriers for both sides; in the generation's line.
const HAS_BARRIERS: usize = 8;
/// Offset of the word that threads share, within an importer's line.
const SHARED: usize = 8;

const BEGUN: u64 = 1 << 32;
const ACCESS: u64 = 1 | BEGUN;
const UNDER_WAY: u64 = 0xffff_ffff;

/// Control pages, as seen from either side.
#[derive(Debug)]
pub(super) struct Control {
    pages: Mapping,
    barrier: Barrier,
}

/// The line of one importer.
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
    /// New control pages and their file.
    pub(super) fn create(generation: u64) -> io::Result<(Self, OwnedFd)> {
        let file = sealed_memfd("rackloom-control", CONTROL_BYTES as u64)?;
        let barrier = if barrier::can_be_sent() { Barrier::Sent } else { Barrier::Own };
        let control = Self { pages: Mapping::new(file.as_fd(), CONTROL_BYTES)?, barrier };
        control.word(HAS_BARRIERS).store(u64::from(barrier == Barrier::Sent), Ordering::SeqCst);
        control.word(0).store(generation, Ordering::SeqCst);
        Ok((control, file))
    }

    /// Map the control pages of a peer.
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

    /// Whether a thread may announce accesses in a word of its own.
    pub(super) fn has_barriers(&self) -> bool {
        self.barrier == Barrier::Sent
    }

    /// The generation that is alive.
    #[inline(always)]
    pub(super) fn generation(&self) -> u64 {
        self.word(0).load(Ordering::SeqCst)
    }

    /// From now on no access of an earlier generation begins. Returns whether announcements can be relied on: without the
    /// barrier that the importers leave to the owner, they cannot.
    pub(super) fn raise(&self, generation: u64) -> bool {
        self.word(0).store(generation, Ordering::SeqCst);
        self.barrier == Barrier::Own || barrier::send()
    }

    /// The thread that has the first word to itself begins an access, where there are barriers. Returns what the word held.
    #[inline(always)]
    pub(super) fn begin(&self, slot: Slot) -> u64 {
        debug_assert!(self.has_barriers());
        let word = self.word(slot.offset);
        let before = word.load(Ordering::Relaxed);
        word.store(before.wrapping_add(ACCESS), Ordering::Relaxed);
        barrier::keep_order();
        before
    }

    /// The same thread ends it.
    #[inline(always)]
    pub(super) fn end(&self, slot: Slot, before: u64) {
        self.word(slot.offset).store(before.wrapping_add(BEGUN), Ordering::Release);
    }

    /// Any thread of an importer begins an access. Returns what the word held.
    pub(super) fn enter(&self, slot: Slot) -> u64 {
        self.word(slot.offset + SHARED).fetch_add(ACCESS, Ordering::SeqCst)
    }

    /// Any thread of an importer ends an access.
    pub(super) fn leave(&self, slot: Slot) {
        self.word(slot.offset + SHARED).fetch_sub(1, Ordering::Release);
    }

    /// Accesses under way, as this importer says.
    pub(super) fn under_way(&self, slot: Slot) -> u64 {
        let count = |at| self.word(at).load(Ordering::SeqCst) & UNDER_WAY;
        count(slot.offset) + count(slot.offset + SHARED)
    }

    /// The importer is gone, and whatever it was doing with it.
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

/// How many accesses had been begun when a word of a line held this.
#[inline(always)]
pub(super) const fn begun(word: u64) -> u64 {
    word / BEGUN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_see_one_generation_and_every_line_of_its_own() {
        let (owner, file) = Control::create(5).unwrap();
        let importer = Control::open(file.as_fd()).unwrap();
        assert_eq!(importer.generation(), 5);
        for slot in [0, 1, SLOTS_MAX - 1].map(Slot::new) {
            assert_eq!(owner.under_way(slot), 0);
            assert_eq!(begun(importer.enter(slot)), 0);
            assert_eq!(begun(importer.enter(slot)), 1);
            assert_eq!(owner.under_way(slot), 2);
            importer.leave(slot);
            importer.leave(slot);
            assert_eq!(owner.under_way(slot), 0);
            assert_eq!(begun(importer.enter(slot)), 2, "the count of accesses goes on");
            if importer.has_barriers() {
                let before = importer.begin(slot);
                assert_eq!((begun(before), owner.under_way(slot)), (0, 2), "a word of its own");
                importer.end(slot, before);
                assert_eq!(owner.under_way(slot), 1);
                let before = importer.begin(slot);
                assert_eq!((begun(before), owner.under_way(slot)), (1, 2));
            } else {
                println!("no barriers here: words of one thread are not tested");
            }
            owner.clear(slot);
            assert_eq!(owner.under_way(slot), 0);
        }
        assert!(owner.raise(6), "announcements can be relied on");
        assert_eq!(importer.generation(), 6);
    }

    /// Both sides speak and then look, at the same moment; at least one sees the other. Without barriers neither does, one
    /// time in some hundred.
    #[test]
    fn an_announcement_is_seen_or_sees() {
        const ROUNDS: u64 = 20_000;
        let (owner, file) = Control::create(1).unwrap();
        let importer = Control::open(file.as_fd()).unwrap();
        if !importer.has_barriers() {
            println!("no barriers here: announcements by plain stores are not tested");
            return;
        }
        let (slot, rounds) = (Slot::new(0), [(); 2].map(|()| AtomicU64::new(0)));
        let saw = AtomicU64::new(0);
        // Says that a side has come to a round, and waits for the other; gives up when time is over.
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
            }
        };
        let played = std::thread::scope(|scope| {
            scope.spawn(importing);
            for round in 1..ROUNDS {
                if !meet(1, 2 * round) {
                    return round;
                }
                assert!(owner.raise(round + 1));
                let seen = owner.under_way(slot);
                if !meet(1, 2 * round + 1) {
                    return round;
                }
                let sees = saw.load(Ordering::SeqCst) == round + 1;
                assert!(seen == 1 || sees, "round {round}: nobody has seen anybody");
            }
            ROUNDS
        });
        println!("{played} rounds");
    }

    #[test]
    fn what_is_no_control_file_is_refused() {
        let short = sealed_memfd("short", 4096).unwrap();
        assert!(Control::open(short.as_fd()).is_err());
    }
}
