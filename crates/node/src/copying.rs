//! Copies of bytes that the C library would make slowly.
//!
//! From 4 KiB or so to about 1 MiB the C library copies with a string instruction. That takes 25 times as long on processors of AMD and Intel if the
//! target begins 1 to 31 bytes after the source, as seen from the beginnings of their pages: 64 KiB in 39 us, and not in 1.6 us. Memory that
//! a program allocates often begins 16 bytes after a page, and a region begins at a page.

use std::ptr;

const PAGE_BYTES: usize = 4096;
/// Distances within a page that are slow, with a margin.
const SLOW_DISTANCE_MAX: usize = 64;
/// Length of a piece. The C library uses no string instruction for it.
const PIECE_BYTES: usize = 2048;

/// Copies bytes.
///
/// # Safety
/// Both ranges of `length` bytes are mapped and do not overlap.
#[inline]
pub(crate) unsafe fn copy(source: *const u8, target: *mut u8, length: usize) {
    if length <= PIECE_BYTES || !is_slow(source.addr(), target.addr()) {
        // SAFETY: the caller's promise.
        unsafe { ptr::copy_nonoverlapping(source, target, length) };
        return;
    }
    for start in (0..length).step_by(PIECE_BYTES) {
        let piece = PIECE_BYTES.min(length - start);
        // SAFETY: the caller's promise, for a part of the ranges.
        unsafe { ptr::copy_nonoverlapping(source.add(start), target.add(start), piece) };
    }
}

/// Copies a slice to another one of the same length.
///
/// # Panics
/// If the lengths differ.
pub(crate) fn copy_slice(source: &[u8], target: &mut [u8]) {
    assert_eq!(source.len(), target.len(), "a copy has one length");
    // SAFETY: needed for pieces without checks of bounds. Both are slices of this length, and one is exclusive.
    unsafe { copy(source.as_ptr(), target.as_mut_ptr(), source.len()) };
}

const fn is_slow(source: usize, target: usize) -> bool {
    let distance = target.wrapping_sub(source) % PAGE_BYTES;
    distance != 0 && distance < SLOW_DISTANCE_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_complete_at_any_distance() {
        let source: Vec<u8> = (0..40_000_u32).map(|place| (place % 251) as u8).collect();
        for (from, to) in [(0, 0), (0, 1), (0, 16), (16, 0), (16, 32), (5, 68), (0, 4080), (0, 4096 + 31)] {
            for length in [0, 1, 2047, 2048, 2049, 4096, 30_001] {
                let mut target = vec![0xff; 40_000];
                copy_slice(&source[from..from + length], &mut target[to..to + length]);
                assert_eq!(target[to..to + length], source[from..from + length], "{from}, {to}, {length}");
                assert!(target[..to].iter().chain(&target[to + length..]).all(|byte| *byte == 0xff));
            }
        }
    }

    #[test]
    fn a_target_shortly_after_its_source_within_a_page_is_slow() {
        assert!(is_slow(0x1000, 0x9010) && is_slow(0x1ff8, 0x7000) && is_slow(0x9010, 0x1020));
        assert!(!is_slow(0x1000, 0x9000) && !is_slow(0x9010, 0x1000) && !is_slow(0x1000, 0x9040));
    }
}
