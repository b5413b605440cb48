//! Sequence lock of a status page: the order in which one writer and its readers access the words.
//!
//! The sequence is odd while the writer writes. A reader that finds one even sequence before and after its reads has the words of one write. The
//! writer never waits. A reader tries a few times and then has nothing, so a writer that died in the middle costs it no time. `crates/models` checks
//! this file.

use crate::sync::{AtomicU64, Ordering, fence, spin_loop};

/// Maximum number of times that a reader reads the words.
const TRIES: usize = 4;

/// Writes the words. There is one writer at a time.
pub(crate) fn write<'a>(sequence: &AtomicU64, words: impl Iterator<Item = (&'a AtomicU64, u64)>) {
    // A writer that follows one that died in the middle begins with an odd sequence.
    let odd = sequence.load(Ordering::Relaxed) | 1;
    sequence.store(odd, Ordering::Relaxed);
    fence(Ordering::Release);
    words.for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    sequence.store(odd.wrapping_add(1), Ordering::Release);
}

/// Reads the words into `values`. Returns false, with any values, if a writer was in the middle each time.
#[must_use]
pub(crate) fn read<'a, I: Iterator<Item = &'a AtomicU64>>(
    sequence: &AtomicU64,
    words: impl Fn() -> I,
    values: &mut Vec<u64>,
) -> bool {
    for _ in 0..TRIES {
        let before = sequence.load(Ordering::Acquire);
        if before & 1 == 0 {
            values.clear();
            values.extend(words().map(|word| word.load(Ordering::Relaxed)));
            fence(Ordering::Acquire);
            if sequence.load(Ordering::Relaxed) == before {
                return true;
            }
        }
        spin_loop();
    }
    false
}
