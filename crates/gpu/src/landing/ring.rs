//! Ring of pinned memory: contiguous pieces, taken and given back in order.
//!
//! Positions grow for ever. The offset in the memory is the position modulo its length. A piece that would cross the
//! end begins at offset 0 instead. The rest at the end is given back with it.

use crate::device::Address;
use crate::error::GpuError;
use crate::pinned::Pinned;

#[derive(Debug)]
pub(super) struct Ring {
    memory: Pinned,
    /// Position behind the last piece that was taken.
    head: u64,
    /// Position behind the last piece that was given back.
    tail: u64,
}

/// Width of the kernels' vector accesses, in bytes. Both sides of a move should agree modulo this.
const ALIGN: u64 = 16;

impl Ring {
    pub(super) fn new(memory: Pinned) -> Self {
        Self { memory, head: 0, tail: 0 }
    }

    /// Takes `bytes` at an offset that equals `like` modulo 16. Returns `None` until more is given back.
    pub(super) fn take(&mut self, bytes: usize, like: u64) -> Option<usize> {
        let length = self.memory.length() as u64;
        let skip = |offset: u64| like.wrapping_sub(offset) % ALIGN;
        let mut start = self.head + skip(self.head % length);
        if start % length + bytes as u64 > length || start % length < self.head % length {
            start = self.head.next_multiple_of(length);
            start += skip(0);
        }
        let end = start + bytes as u64;
        if end - self.tail > length || start % length + bytes as u64 > length {
            return None;
        }
        self.head = end;
        Some((start % length) as usize)
    }

    /// Returns the position behind everything that was taken so far.
    pub(super) fn mark(&self) -> u64 {
        self.head
    }

    /// Gives back everything before a mark.
    pub(super) fn give_back(&mut self, mark: u64) {
        debug_assert!(mark >= self.tail && mark <= self.head);
        self.tail = mark;
    }

    /// Returns the length of the longest piece that always fits into an empty ring.
    pub(super) fn piece_max(&self) -> usize {
        self.memory.length() / 4
    }

    pub(super) fn address(&self, offset: usize) -> Address {
        self.memory.address(offset)
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), GpuError> {
        self.memory.write(offset, bytes)
    }

    /// Writes plain values one after another.
    pub(super) fn put_all<T: Copy>(&mut self, offset: usize, values: &[T]) -> Result<(), GpuError> {
        for (at, value) in values.iter().enumerate() {
            self.memory.put(offset + at * size_of::<T>(), value)?;
        }
        Ok(())
    }

    pub(super) fn read(&self, offset: usize, out: &mut [u8]) -> Result<(), GpuError> {
        self.memory.read(offset, out)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::device::Device;
    use crate::fake::{Fake, FakePlan};

    proptest! {
        /// Pieces in use never share a byte and are aligned as requested. An empty ring always has space.
        #[test]
        fn pieces_never_overlap(steps in prop::collection::vec((1_usize..300, 0_u64..64, any::<bool>()), 1..200)) {
            let mut fake = Fake::new(FakePlan::new(0));
            let mut ring = Ring::new(fake.pin(1000).unwrap());
            let mut out: VecDeque<(usize, usize, u64)> = VecDeque::new();
            for (bytes, like, gives_back) in steps {
                let bytes = bytes.min(ring.piece_max());
                if gives_back && let Some((.., mark)) = out.pop_front() {
                    ring.give_back(mark);
                }
                let Some(offset) = ring.take(bytes, like) else {
                    prop_assert!(!out.is_empty(), "an empty ring has space");
                    continue;
                };
                prop_assert_eq!(offset as u64 % 16, like % 16);
                prop_assert!(offset + bytes <= 1000);
                for (other, length, _) in &out {
                    prop_assert!(offset + bytes <= *other || other + length <= offset);
                }
                out.push_back((offset, bytes, ring.mark()));
            }
        }
    }
}
