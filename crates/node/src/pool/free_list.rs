//! The free parts of a range: first-fit allocation in address order, with adjacent free parts merged at once.
//!
//! First fit keeps the high addresses whole. A pool that has been used for some time can therefore still allocate a large block and release its last
//! regions. The list is kept outside the memory that it describes, because peers may map that memory, and bytes that they can overwrite must not
//! control the allocator.

use std::collections::BTreeMap;

/// The free parts of `0..capacity`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FreeList {
    /// Start and length of each part. Parts are never empty and never adjacent.
    parts: BTreeMap<u64, u64>,
    capacity: u64,
}

impl FreeList {
    /// Returns a list in which all `capacity` bytes are free.
    pub(super) fn new(capacity: u64) -> Self {
        let parts = (capacity > 0).then_some((0, capacity)).into_iter().collect();
        Self { parts, capacity }
    }

    /// Takes the first `length` bytes that begin at a multiple of `align`, and returns their start. Returns `None` if no free part is large enough.
    /// `length` is not 0; `align` is a power of two.
    pub(super) fn take(&mut self, length: u64, align: u64) -> Option<u64> {
        debug_assert!(length > 0 && align.is_power_of_two());
        let fits = |(start, free): (&u64, &u64)| {
            let begin = start.checked_next_multiple_of(align)?;
            let end = begin.checked_add(length)?;
            (end <= start + free).then_some((*start, *free, begin))
        };
        let (start, free, begin) = self.parts.iter().find_map(fits)?;
        self.parts.remove(&start);
        self.insert(start, begin - start);
        self.insert(begin + length, start + free - begin - length);
        Some(begin)
    }

    /// Frees a part that was taken and has not been freed since.
    pub(super) fn give(&mut self, start: u64, length: u64) {
        debug_assert!(start + length <= self.capacity);
        let (mut start, mut end) = (start, start + length);
        if let Some((before, free)) = self.parts.range(..start).next_back().map(|(at, free)| (*at, *free)) {
            debug_assert!(before + free <= start, "given back twice");
            if before + free == start {
                start = before;
            }
        }
        if let Some(free) = self.parts.remove(&end) {
            end += free;
        }
        self.insert(start, end - start);
    }

    /// Returns whether the whole range is free.
    pub(super) fn is_whole(&self) -> bool {
        self.parts.get(&0) == Some(&self.capacity)
    }

    /// Returns the length of the longest free part, in bytes.
    pub(super) fn largest(&self) -> u64 {
        self.parts.values().copied().max().unwrap_or(0)
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    fn insert(&mut self, start: u64, length: u64) {
        if length > 0 {
            self.parts.insert(start, length);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAPACITY: u64 = 4096;

    proptest! {
        /// Compares the list with a row of flags, one per byte: `take` returns the first range that fits whenever one exists.
        #[test]
        fn a_free_list_equals_a_list_of_bytes(
            steps in prop::collection::vec((any::<bool>(), 1_u64..600, 0_u32..9, any::<usize>()), 1..200),
        ) {
            let mut list = FreeList::new(CAPACITY);
            let mut row = vec![false; CAPACITY as usize];
            let mut taken = Vec::new();
            for (is_take, length, align, which) in steps {
                if is_take || taken.is_empty() {
                    let align = 1_u64 << align;
                    let first = (0..CAPACITY).step_by(align as usize).find(|start| {
                        row.get(*start as usize..(start + length) as usize).is_some_and(|part| !part.contains(&true))
                    });
                    prop_assert_eq!(list.take(length, align), first);
                    if let Some(start) = first {
                        row[start as usize..(start + length) as usize].fill(true);
                        taken.push((start, length));
                    }
                } else {
                    let (start, length) = taken.swap_remove(which % taken.len());
                    list.give(start, length);
                    row[start as usize..(start + length) as usize].fill(false);
                }
                let longest = row.split(|is_taken| *is_taken).map(<[bool]>::len).max();
                prop_assert_eq!(Some(list.largest() as usize), longest);
                prop_assert_eq!(list.is_whole(), taken.is_empty());
            }
            for (start, length) in taken {
                list.give(start, length);
            }
            prop_assert_eq!(list, FreeList::new(CAPACITY));
        }
    }

    #[test]
    fn an_empty_list_has_no_space_and_no_sum_overflows() {
        assert_eq!(FreeList::new(0).take(1, 1), None);
        assert_eq!(FreeList::new(64).take(u64::MAX, 64), None);
        assert_eq!(FreeList::new(u64::MAX).take(u64::MAX, 1), Some(0));
    }
}
