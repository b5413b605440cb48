//! Stores of a cache line each, packed into records of a few KiB and applied at random offsets of a memory larger than any cache.
//!
//! This loop is the measure for packed stores of small data, whose targets are unrelated. A loop with adjacent
//! targets would measure the prefetcher. The offsets come from a seed ([`offset`]), so that the code under
//! comparison can store to the same ones.
//!
//! The producer writes offset and line of each store into a record and publishes the record. The consumer prefetches the targets of a
//! whole record, copies each line to its target, and frees the slot. The consumer's memory is the limit:
//! a line, and an entry of the page table, for every store.

use std::io;
use std::ptr;
use std::time::Instant;

use crate::pages::Pages;
use crate::processors::Pair;
use crate::ring::{Flow, Ring};

/// Length of the target memory, in bytes.
pub const MEMORY_BYTES: u64 = 64 << 20;
/// Length of a store, in bytes.
pub const LINE_BYTES: usize = 64;
/// Stores of a record: as many as frames carry by default.
const STORES: usize = 64;
const ENTRY_BYTES: usize = 8 + LINE_BYTES;
const RECORD_BYTES: usize = STORES * ENTRY_BYTES;
/// Length of the source, in bytes.
const SOURCE_BYTES: usize = 4096;

/// Returns the target offset of a store: a multiple of [`LINE_BYTES`] below [`MEMORY_BYTES`], the same in every run.
#[inline]
#[must_use]
pub const fn offset(number: u64) -> u64 {
    // Two rounds of a mixer (Steele et al., SplitMix64): consecutive numbers have unrelated results.
    let mixed = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 32)) % (MEMORY_BYTES / LINE_BYTES as u64) * LINE_BYTES as u64
}

/// Ring of such records, and the target memory.
#[derive(Debug)]
pub struct Scatter {
    ring: Ring<RECORD_BYTES>,
    source: Pages,
    memory: Pages,
}

impl Scatter {
    /// Makes an empty ring, and memory whose pages are resident.
    ///
    /// # Errors
    /// The system's error.
    pub fn new() -> io::Result<Self> {
        let memory = Pages::new(MEMORY_BYTES as usize)?;
        (0..MEMORY_BYTES as usize).step_by(4096).for_each(|at| {
            memory.word(at).store(1, std::sync::atomic::Ordering::Relaxed);
        });
        Ok(Self { ring: Ring::new(Flow::deep(1))?, source: Pages::new(SOURCE_BYTES)?, memory })
    }

    /// Returns stores per second, over at least `stores` of them (whole records), until the last one is applied.
    ///
    /// # Errors
    /// A side that did not answer, or a wrong record.
    pub fn stores_per_s(&mut self, pair: Pair, stores: u64) -> io::Result<f64> {
        let records = stores.div_ceil(STORES as u64);
        let initiator = || {
            self.ring.await_ready()?;
            let mut producer = self.ring.producer();
            let begun = Instant::now();
            for record in 0..records {
                self.pack(producer.free_slot()?, record * STORES as u64);
                producer.commit();
                producer.publish();
            }
            producer.await_all()?;
            Ok((records * STORES as u64) as f64 / begun.elapsed().as_secs_f64().max(1e-9))
        };
        let target = || {
            self.ring.set_ready();
            let mut consumer = self.ring.consumer();
            for _ in 0..records {
                self.apply(consumer.record()?)?;
                consumer.give_back();
            }
            consumer.publish();
            Ok(())
        };
        pair.run_processes(initiator, target)
    }

    /// Writes the stores from `first` on into a record.
    #[inline]
    fn pack(&self, record: *mut u8, first: u64) {
        for index in 0..STORES {
            let number = first + index as u64;
            let line =
                self.source.bytes(number as usize % (SOURCE_BYTES / LINE_BYTES) * LINE_BYTES, LINE_BYTES);
            // SAFETY: needed because the record is in mapped pages. It has `RECORD_BYTES` bytes at a multiple of 8 that are this
            // side's now, and the entry is within them, at a multiple of 8; the line is in another file, which is never written.
            unsafe {
                let entry = record.add(index * ENTRY_BYTES);
                entry.cast::<u64>().write(offset(number));
                ptr::copy_nonoverlapping(line, entry.add(8), LINE_BYTES);
            }
        }
    }

    /// Applies the stores of a record.
    #[inline]
    fn apply(&self, record: *const u8) -> io::Result<()> {
        for index in 0..STORES {
            // SAFETY: needed because the record is in mapped pages. It has `RECORD_BYTES` bytes at a multiple of 8 that are not
            // written now, and the entry is within them.
            let offset = unsafe { record.add(index * ENTRY_BYTES).cast::<u64>().read() };
            if offset > MEMORY_BYTES - LINE_BYTES as u64 {
                return Err(io::Error::other("a store outside of the memory"));
            }
            fetch(self.memory.bytes(offset as usize, LINE_BYTES));
        }
        for index in 0..STORES {
            // SAFETY: as above, for the offset and the line behind it. The target has a line's bytes (`bytes` asserts it) of another
            // file, which only this side touches.
            unsafe {
                let entry = record.add(index * ENTRY_BYTES);
                let target = self.memory.bytes(entry.cast::<u64>().read() as usize, LINE_BYTES);
                ptr::copy_nonoverlapping(entry.add(8), target, LINE_BYTES);
            }
        }
        Ok(())
    }
}

/// Prefetches a line that is about to be written.
#[inline]
fn fetch(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: needed because it is an intrinsic. A prefetch reads nothing that the program sees and faults on no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn offsets_are_lines_all_over_the_memory() {
        let mut halves = [0_u32; 2];
        let mut steps_to_the_next_line = 0;
        for number in 0..10_000 {
            let at = offset(number);
            assert!(at.is_multiple_of(LINE_BYTES as u64) && at < MEMORY_BYTES);
            halves[usize::from(at >= MEMORY_BYTES / 2)] += 1;
            steps_to_the_next_line += u32::from(offset(number + 1) == at + LINE_BYTES as u64);
        }
        assert!(halves.into_iter().all(|count| (4500..=5500).contains(&count)), "{halves:?}");
        assert!(steps_to_the_next_line < 10, "{steps_to_the_next_line}");
    }

    #[test]
    fn every_store_is_applied() {
        let Some(pair) = Pair::choose().unwrap() else {
            crate::processors::no_pair();
            return;
        };
        const STORES_MIN: u64 = 1000;
        let mut scatter = Scatter::new().unwrap();
        let value = |at: usize| at as u64 | 1 << 40;
        (0..SOURCE_BYTES)
            .step_by(8)
            .for_each(|at| scatter.source.word(at).store(value(at), Ordering::Relaxed));
        assert!(scatter.stores_per_s(pair, STORES_MIN).unwrap() > 0.0);
        let done = STORES_MIN.next_multiple_of(STORES as u64);
        let mut last: std::collections::BTreeMap<u64, u64> =
            (0..done).map(|number| (offset(number), number)).collect();
        while let Some((at, number)) = last.pop_first() {
            let line = number as usize % (SOURCE_BYTES / LINE_BYTES) * LINE_BYTES;
            for word in (0..LINE_BYTES).step_by(8) {
                assert_eq!(
                    scatter.memory.word(at as usize + word).load(Ordering::Relaxed),
                    value(line + word)
                );
            }
        }
        let lines = (0..MEMORY_BYTES as usize).step_by(LINE_BYTES);
        let changed = lines.filter(|at| scatter.memory.word(at + 8).load(Ordering::Relaxed) != 0).count();
        assert!(changed as u64 <= done, "{changed} lines for {done} stores");
    }
}
