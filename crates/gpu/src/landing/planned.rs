//! Ranges that will be moved, and the choice between the engines of the device and a kernel.
//!
//! Kernels take many ranges at a time; engines take long ones. Few ranges go to the engines as well, because kernels of several processes
//! share a device by time slices where engines do not. A word that may be polled is written as a word, by neither of them.

use crate::device::{Address, Move};

/// Lowest length of adjacent ranges that are merged, in bytes. Shorter ones stay apart, so that a word that is polled is written whole.
const MERGE_BYTES_MIN: u64 = 64;
/// Most ranges of a batch that the engines copy. Kernels of several processes share a device by time slices of some hundred
/// microseconds, so a few copies are faster.
const COPIES_MAX: usize = 8;
/// Most bytes of such a batch whose source and target differ modulo 16. The engines need five microseconds for a frame of such bytes.
const MISALIGNED_BYTES_MAX: u64 = 8 << 10;
/// Range that will be moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) range: Move,
    /// Value of the range, if it is one aligned word, which may be polled.
    pub(super) word: Option<u64>,
}

/// Returns true if the engines are faster at these ranges than a kernel.
pub(super) fn are_few(ranges: impl Iterator<Item = Move>) -> bool {
    let (mut count, mut misaligned_bytes) = (0, 0);
    for Move { target, source, bytes } in ranges {
        count += 1;
        misaligned_bytes += if (target ^ source).is_multiple_of(16) { 0 } else { bytes };
    }
    count <= COPIES_MAX && misaligned_bytes <= MISALIGNED_BYTES_MAX
}

/// Returns the bytes as a word, if their target is one aligned word, which may be polled.
pub(super) fn word(target: Address, bytes: &[u8]) -> Option<u64> {
    let is_word = matches!(bytes.len(), 4 | 8) && target.0.is_multiple_of(bytes.len() as u64);
    let mut wide = [0; 8];
    wide.get_mut(..bytes.len()).filter(|_| is_word)?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(wide))
}

/// Returns true if `next` follows `last` on both sides, so that one move serves both.
pub(super) fn is_continued(last: &Move, next: &Move) -> bool {
    let is_long = last.bytes >= MERGE_BYTES_MIN && next.bytes >= MERGE_BYTES_MIN;
    is_long && last.target + last.bytes == next.target && last.source + last.bytes == next.source
}
