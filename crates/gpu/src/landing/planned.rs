//! Ranges that will be moved, and who moves them: the engines of the device, or a kernel.
//!
//! Kernels take many ranges at a time; engines take long ones. Few ranges go to the engines as well, because kernels of several processes
//! take turns on a device where engines do not. A word that somebody may poll is written by neither, if it can be helped, but as a word.

use crate::device::{Address, Move};

/// Neighbours that are shorter stay apart, so that a word that somebody polls is written whole.
const MERGE_BYTES_MIN: u64 = 64;
/// So few ranges are copied by the engines: kernels of several processes take turns on a device, and a turn costs some hundred
/// microseconds.
const COPIES_MAX: usize = 8;
/// So much of them may lie otherwise than its target modulo 16: the engines take five microseconds for a frame of such bytes.
const CROOKED_BYTES_MAX: u64 = 8 << 10;
/// A range that will be moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) range: Move,
    /// What it writes, if that is one aligned word, which somebody may poll.
    pub(super) word: Option<u64>,
}

/// Whether the engines are better at these ranges than a kernel.
pub(super) fn are_few(ranges: impl Iterator<Item = Move>) -> bool {
    let (mut count, mut crooked_bytes) = (0, 0);
    for Move { target, source, bytes } in ranges {
        count += 1;
        crooked_bytes += if (target ^ source).is_multiple_of(16) { 0 } else { bytes };
    }
    count <= COPIES_MAX && crooked_bytes <= CROOKED_BYTES_MAX
}

/// The word that these bytes are, if they go to one that somebody may poll.
pub(super) fn word(target: Address, bytes: &[u8]) -> Option<u64> {
    let is_word = matches!(bytes.len(), 4 | 8) && target.0.is_multiple_of(bytes.len() as u64);
    let mut wide = [0; 8];
    wide.get_mut(..bytes.len()).filter(|_| is_word)?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(wide))
}

/// Whether a range goes on where another ends, on both sides.
pub(super) fn is_continued(last: &Move, next: &Move) -> bool {
    let is_long = last.bytes >= MERGE_BYTES_MIN && next.bytes >= MERGE_BYTES_MIN;
    is_long && last.target + last.bytes == next.target && last.source + last.bytes == next.source
}
