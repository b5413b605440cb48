//! Raw all-reduce of two: copy, flag, add, copy, flag.
//!
//! Each side owns an array and an inbox. It copies the half that the other side sums into the other's inbox and raises a
//! flag. It adds its own half to the received one. It copies the sum into the other's array and raises the flag again. The
//! number of bytes is the minimum for an all-reduce of two.

use std::io;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::pages::Pages;
use crate::processors::Pair;
use crate::wait::wait_until;

const LINE_BYTES: usize = 1024;

/// Two arrays of f32 numbers, their inboxes and their flags.
#[derive(Debug)]
pub struct Exchange {
    arrays: [Pages; 2],
    inboxes: [Pages; 2],
    flags: Pages,
    elements: usize,
    steps: u64,
}

impl Exchange {
    /// Makes arrays of this many bytes, a multiple of 8.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let pages = || Pages::new(bytes);
        let (arrays, inboxes) = ([pages()?, pages()?], [pages()?, pages()?]);
        Ok(Self { arrays, inboxes, flags: Pages::new(2 * LINE_BYTES)?, elements: bytes / 8 * 2, steps: 0 })
    }

    /// Returns the time of one all-reduce, in nanoseconds, over `count` of them.
    ///
    /// # Errors
    /// A side that did not answer.
    pub fn all_reduce_ns(&mut self, pair: Pair, count: u64) -> io::Result<f64> {
        let first = self.steps;
        let this = &*self;
        let all =
            move |rank: usize| (0..count).try_for_each(|number| this.reduce(rank, first + 1 + 2 * number));
        let initiator = || {
            // The other side runs once it has met.
            this.meet(0, first + 1)?;
            let begun = Instant::now();
            all(0)?;
            Ok(begun.elapsed().as_nanos() as f64)
        };
        let target = || this.meet(1, first + 1).and_then(|()| all(1));
        let initiator_ns = pair.run_processes(initiator, target)?;
        self.steps += 1 + 2 * count;
        Ok(initiator_ns / count.max(1) as f64)
    }

    fn flag(&self, rank: usize) -> &AtomicU64 {
        self.flags.word(rank * LINE_BYTES)
    }

    fn half(pages: &Pages, which: usize, elements: usize) -> *mut u8 {
        pages.bytes(which * elements / 2 * size_of::<f32>(), elements / 2 * size_of::<f32>())
    }

    /// Performs one all-reduce of the side `rank`; `done` steps are complete.
    fn reduce(&self, rank: usize, done: u64) -> io::Result<()> {
        let (other, bytes) = (1 - rank, self.elements / 2 * size_of::<f32>());
        let half = |pages: &Pages, which| Self::half(pages, which, self.elements);
        let (theirs, inbox) = (half(&self.arrays[rank], other), half(&self.inboxes[other], 0));
        // SAFETY: needed because mapped pages have no slices. Ranges are within their pages (asserted by `bytes`) and in
        // different files. The other's inbox is free: the other has raised its second flag of the step before, after it had
        // added it up. The other writes into this half only after the flag below.
        unsafe { ptr::copy_nonoverlapping(theirs, inbox, bytes) };
        self.meet(rank, done + 1)?;
        let (sum, came) = (half(&self.arrays[rank], rank), half(&self.inboxes[rank], 0));
        // SAFETY: needed as above. Pages are aligned and halves a multiple of 4 bytes; any bits are an f32; the other has
        // filled this inbox (met) and touches neither it nor this half before the next meeting.
        let (sum, came) = unsafe {
            let length = self.elements / 2;
            (
                slice::from_raw_parts_mut(sum.cast::<f32>(), length),
                slice::from_raw_parts(came.cast::<f32>(), length),
            )
        };
        sum.iter_mut().zip(came).for_each(|(sum, came)| *sum += came);
        let sum = sum.as_ptr().cast();
        // SAFETY: needed as above. The other has met, so it no longer reads this half of its array, and it reads it again only
        // after the flag below.
        unsafe { ptr::copy_nonoverlapping(sum, half(&self.arrays[other], rank), bytes) };
        self.meet(rank, done + 2)
    }

    fn meet(&self, rank: usize, step: u64) -> io::Result<()> {
        self.flag(rank).store(step, Ordering::Release);
        let flag = self.flag(1 - rank);
        wait_until("side of an all-reduce", || flag.load(Ordering::Acquire) >= step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_hold_the_sum() {
        let Some(pair) = Pair::choose().unwrap() else {
            crate::processors::no_pair();
            return;
        };
        let mut exchange = Exchange::new(64).unwrap();
        let two = |value: f32| u64::from(value.to_bits()) << 32 | u64::from(value.to_bits());
        for (array, value) in exchange.arrays.iter().zip([1.0, 2.0]) {
            (0..64).step_by(8).for_each(|at| array.word(at).store(two(value), Ordering::Relaxed));
        }
        // 1 + 2, and then 3 + 3.
        assert!(exchange.all_reduce_ns(pair, 1).unwrap() > 0.0);
        exchange.all_reduce_ns(pair, 1).unwrap();
        for array in &exchange.arrays {
            assert!((0..64).step_by(8).all(|at| array.word(at).load(Ordering::Relaxed) == two(6.0)));
        }
    }
}
