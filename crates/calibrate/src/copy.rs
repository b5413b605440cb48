//! Copies between two pieces of shared memory: the raw loop for a direct access.

use std::hint::black_box;
use std::io;
use std::ptr;
use std::time::Instant;

use crate::pages::Pages;

/// Source and target of one working set each.
#[derive(Debug)]
pub struct Copies {
    source: Pages,
    target: Pages,
    bytes: usize,
}

impl Copies {
    /// Makes two working sets of this many bytes.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(bytes: usize) -> io::Result<Self> {
        Ok(Self { source: Pages::new(bytes)?, target: Pages::new(bytes)?, bytes })
    }

    /// Returns the rate of copies of `length` bytes, per second, over `count` of them. They step through the working set.
    ///
    /// # Panics
    /// If one copy is longer than the working set, or empty.
    #[must_use]
    pub fn per_s(&mut self, length: usize, count: u64) -> f64 {
        assert!(length > 0 && length <= self.bytes, "{length} bytes of {}", self.bytes);
        let begun = Instant::now();
        let mut at = 0;
        for _ in 0..count {
            let (source, target) = (self.source.bytes(at, length), self.target.bytes(at, length));
            // SAFETY: needed because mapped pages have no slices. Both ranges are within their pages (asserted by `bytes`),
            // belong to different files and so do not overlap, and `self` is borrowed exclusively.
            unsafe { ptr::copy_nonoverlapping(source, black_box(target), length) };
            at = if at + 2 * length <= self.bytes { at + length } else { 0 };
        }
        count as f64 / begun.elapsed().as_secs_f64().max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_copied_to_the_end_of_the_working_set() {
        let mut copies = Copies::new(1024).unwrap();
        for at in (0..1024).step_by(8) {
            copies.source.word(at).store(at as u64 + 1, std::sync::atomic::Ordering::Relaxed);
        }
        assert!(copies.per_s(128, 8) > 0.0);
        let seen = |at: usize| copies.target.word(at).load(std::sync::atomic::Ordering::Relaxed);
        assert!((0..1024).step_by(8).all(|at| seen(at) == at as u64 + 1));
    }
}
