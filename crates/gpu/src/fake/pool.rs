//! Pool of a fake device: one anonymous file that grows. Parts of it are handed out and mapped by their users.
//!
//! Free memory goes back to the system at once, as in a pool of a real device with a release threshold of 0.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, ftruncate, memfd_create};

use crate::device::PoolStatistics;

/// Alignment of parts, in bytes.
const PAGE: u64 = 4096;
/// Granularity of the pool's size, in bytes.
const GROWTH: u64 = 64 << 10;

#[derive(Debug)]
pub(super) struct FilePool {
    file: OwnedFd,
    /// Length of each part that is in use, in whole pages, by its offset.
    taken: BTreeMap<u64, u64>,
    file_length: u64,
    counted: PoolStatistics,
}

impl FilePool {
    pub(super) fn new() -> io::Result<Self> {
        let file = memfd_create("fake-pool", MemfdFlags::CLOEXEC)?;
        Ok(Self { file, taken: BTreeMap::new(), file_length: 0, counted: PoolStatistics::default() })
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(super) const fn statistics(&self) -> PoolStatistics {
        self.counted
    }

    /// Takes the first free part of zeroed bytes that fits, and returns its offset in the file.
    pub(super) fn take(&mut self, bytes: u64) -> io::Result<u64> {
        let length = bytes.max(1).checked_next_multiple_of(PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut start = 0_u64;
        for (taken, taken_length) in &self.taken {
            if taken - start >= length {
                break;
            }
            start = taken + taken_length;
        }
        let end = start.checked_add(length).ok_or(io::ErrorKind::OutOfMemory)?;
        if end > self.file_length {
            let grown = end.checked_next_multiple_of(GROWTH).ok_or(io::ErrorKind::OutOfMemory)?;
            ftruncate(&self.file, grown)?;
            self.file_length = grown;
        }
        self.taken.insert(start, length);
        self.count();
        Ok(start)
    }

    /// Gives a part back. A process that still maps it reads zeros and does no harm.
    pub(super) fn give(&mut self, start: u64) {
        let Some(length) = self.taken.remove(&start) else { return };
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // A system without holes keeps the bytes, so the part is not handed out again.
        if fallocate(&self.file, hole, start, length).is_err() {
            self.taken.insert(start, length);
        }
        self.count();
    }

    fn count(&mut self) {
        let end = self.taken.last_key_value().map_or(0, |(start, length)| start + length);
        let counted = &mut self.counted;
        counted.reserved_current = end.next_multiple_of(GROWTH);
        counted.used_current = self.taken.values().sum();
        counted.reserved_high = counted.reserved_high.max(counted.reserved_current);
        counted.used_high = counted.used_high.max(counted.used_current);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_reused_and_counted() {
        let mut pool = FilePool::new().unwrap();
        let (first, second) = (pool.take(100).unwrap(), pool.take(3 * PAGE).unwrap());
        assert_eq!((first, second), (0, PAGE));
        let counted = pool.statistics();
        assert_eq!((counted.used_current, counted.reserved_current), (4 * PAGE, GROWTH));
        pool.give(first);
        assert_eq!(pool.take(2 * PAGE).unwrap(), 4 * PAGE, "the hole is too small");
        assert_eq!(pool.take(1).unwrap(), first);
        for start in [first, second, 4 * PAGE] {
            pool.give(start);
        }
        let counted = pool.statistics();
        assert_eq!((counted.used_current, counted.reserved_current), (0, 0));
        assert_eq!((counted.used_high, counted.reserved_high), (6 * PAGE, GROWTH));
        assert!(pool.take(u64::MAX).is_err());
    }
}
