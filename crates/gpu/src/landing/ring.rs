//! A ring of pinned memory: handed out in order, given back in order, each piece in one piece.
//!
//! Positions count up for ever; their place in the memory is what remains after division by its length. A piece that would run over the
//! end begins at the beginning instead, and what is left over there is given back with it.

use crate::device::Address;
use crate::error::GpuError;
use crate::pinned::Pinned;

#[derive(Debug)]
pub(super) struct Ring {
    memory: Pinned,
    /// What was handed out ends here.
    head: u64,
    /// What was given back ends here.
    tail: u64,
}

/// Vector accesses of kernels are this wide; both sides of a move should agree modulo this.
const ALIGN: u64 = 16;

impl Ring {
    pub(super) fn new(memory: Pinned) -> Self {
        Self { memory, head: 0, tail: 0 }
    }

    /// Room for `bytes` at a place that equals `like` modulo 16. `None` until more is given back.
    pub(super) fn take(&mut self, bytes: usize, like: u64) -> Option<usize> {
        let length = self.memory.length() as u64;
        let skip = |place: u64| like.wrapping_sub(place) % ALIGN;
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

    /// Where what has been handed out so far ends.
    pub(super) fn mark(&self) -> u64 {
        self.head
    }

    /// Everything before a mark is free again.
    pub(super) fn give_back(&mut self, mark: u64) {
        debug_assert!(mark >= self.tail && mark <= self.head);
        self.tail = mark;
    }

    /// The longest piece that is sure to fit once everything is given back.
    pub(super) fn piece_max(&self) -> usize {
        self.memory.length() / 4
    }

    pub(super) fn address(&self, place: usize) -> Address {
        self.memory.address(place)
    }

    pub(super) fn write(&mut self, place: usize, bytes: &[u8]) -> Result<(), GpuError> {
        self.memory.write(place, bytes)
    }

    /// Plain values one after another.
    pub(super) fn put_all<T: Copy>(&mut self, place: usize, values: &[T]) -> Result<(), GpuError> {
        for (at, value) in values.iter().enumerate() {
            self.memory.put(place + at * size_of::<T>(), value)?;
        }
        Ok(())
    }

    pub(super) fn read(&self, place: usize, out: &mut [u8]) -> Result<(), GpuError> {
        self.memory.read(place, out)
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
        /// Pieces that are out never share a byte, lie where they should, and everything fits again in the end.
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
                let Some(place) = ring.take(bytes, like) else {
                    prop_assert!(!out.is_empty(), "an empty ring has room");
                    continue;
                };
                prop_assert_eq!(place as u64 % 16, like % 16);
                prop_assert!(place + bytes <= 1000);
                for (other, length, _) in &out {
                    prop_assert!(place + bytes <= *other || other + length <= place);
                }
                out.push_back((place, bytes, ring.mark()));
            }
        }
    }
}
