//! Bytes of a node's memory to which frames in flight refer.
//!
//! A frame of the simulator need not carry bytes that its sender's memory holds: it names their region and offset,
//! and the receiver's memory copies them from there, once. The sender might write there in between. Then the bytes as
//! they were are copied aside first, for the frames that still refer to them. That is rare, so it may be slow. The
//! check whether it is needed must be fast. So each region with references stores the range in which they are.
//!
//! This file does not contain the sender and the receiver.

use rackloom_protocol::RegionId;
use rackloom_protocol::memory::vector::VectorMemory;

use crate::memory::pending_copies::RegionOffset;
use crate::memory::spans::Spans;

/// Bytes to which frames refer.
#[derive(Debug)]
struct ReferencedRange {
    region: RegionId,
    offset: u64,
    length: usize,
    /// Number of frames that refer to them; 0 if the slot is free.
    holders: u32,
    /// The bytes as they were when the owner wrote over them.
    kept: Option<Box<[u8]>>,
}

/// All references of one node.
#[derive(Debug, Default)]
pub(crate) struct References {
    entries: Vec<ReferencedRange>,
    free: Vec<u32>,
    spans: Spans,
}

impl References {
    /// Adds a reference to a range of the owner's memory. One frame holds it.
    pub(crate) fn add(&mut self, region: RegionId, offset: u64, length: usize) -> u32 {
        let end = offset + length as u64;
        self.spans.add(region, offset, end);
        let entry = ReferencedRange { region, offset, length, holders: 1, kept: None };
        match self.free.pop() {
            Some(number) => {
                self.entries[number as usize] = entry;
                number
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        }
    }

    /// Adds a reference to a copy of bytes of a memory of another part. One frame holds it.
    pub(crate) fn add_copy(&mut self, bytes: &[u8]) -> u32 {
        // An empty range: no write of the owner concerns the copy.
        let number = self.add(RegionId(0), 0, 0);
        self.keep_one(number, bytes);
        number
    }

    /// Copies the bytes of a reference aside now, independent of later writes of the owner.
    pub(crate) fn keep_one(&mut self, number: u32, bytes: &[u8]) {
        if let Some(entry) = self.entries.get_mut(number as usize) {
            entry.kept = Some(Box::from(bytes));
        }
    }

    /// Adds a frame that holds the reference.
    pub(crate) fn share(&mut self, number: u32) {
        if let Some(entry) = self.entries.get_mut(number as usize).filter(|entry| entry.holders > 0) {
            entry.holders += 1;
        }
    }

    /// Removes a frame that held the reference.
    pub(crate) fn release(&mut self, number: u32) {
        let Some(entry) = self.entries.get_mut(number as usize).filter(|entry| entry.holders > 0) else {
            return;
        };
        entry.holders -= 1;
        if entry.holders > 0 {
            return;
        }
        entry.kept = None;
        let region = entry.region;
        self.free.push(number);
        self.spans.remove(region);
    }

    /// Must be called before the owner writes `length` bytes at `offset`.
    #[inline]
    pub(crate) fn before_write(&mut self, memory: &VectorMemory, region: RegionId, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        if self.spans.reaches(region, offset, end) {
            self.keep(memory, |entry| {
                entry.region == region && offset < entry.offset + entry.length as u64 && entry.offset < end
            });
        }
    }

    /// Copies all references aside, before writes at unspecified offsets of the owner's memory.
    pub(crate) fn keep_all(&mut self, memory: &VectorMemory) {
        self.keep(memory, |_| true);
    }

    #[cold]
    fn keep(&mut self, memory: &VectorMemory, is_concerned: impl Fn(&ReferencedRange) -> bool) {
        let open = self.entries.iter_mut().filter(|entry| entry.holders > 0 && entry.kept.is_none());
        for entry in open.filter(|entry| is_concerned(entry)) {
            entry.kept = range(memory, entry.region, entry.offset, entry.length).map(Box::from);
        }
    }

    /// Returns where the bytes are, as they were when the reference was added.
    pub(crate) fn locate(&self, number: u32) -> Option<BytesLocation<'_>> {
        let entry = self.entries.get(number as usize).filter(|entry| entry.holders > 0)?;
        let location = RegionOffset { region: entry.region, offset: entry.offset };
        Some(entry.kept.as_deref().map_or(BytesLocation::At(location), BytesLocation::Kept))
    }
}

/// Location of referenced bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BytesLocation<'a> {
    /// Still in their owner's memory.
    At(RegionOffset),
    /// Kept aside.
    Kept(&'a [u8]),
}

/// Returns a range of a region, if the region has it.
pub(crate) fn range(memory: &VectorMemory, region: RegionId, offset: u64, length: usize) -> Option<&[u8]> {
    let begin = usize::try_from(offset).ok()?;
    memory.bytes(region).get(begin..begin.checked_add(length)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: RegionId = RegionId(1);

    fn memory() -> VectorMemory {
        let mut memory = VectorMemory::default();
        memory.add(REGION, 100);
        memory.bytes_mut(REGION).iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
        memory
    }

    const fn in_memory(offset: u64) -> BytesLocation<'static> {
        BytesLocation::At(RegionOffset { region: REGION, offset })
    }

    #[test]
    fn overwritten_bytes_stay_as_they_were_referenced() {
        let (mut memory, mut references) = (memory(), References::default());
        let [early, late] = [references.add(REGION, 10, 4), references.add(REGION, 50, 4)];
        references.before_write(&memory, REGION, 12, 1);
        memory.bytes_mut(REGION)[12] = 99;
        assert_eq!(references.locate(early), Some(BytesLocation::Kept(&[10, 11, 12, 13])));
        let after = references.add(REGION, 10, 4);
        assert_eq!(references.locate(after), Some(in_memory(10)), "added after the write");
        references.before_write(&memory, REGION, 54, 1);
        memory.bytes_mut(REGION)[54] = 0;
        assert_eq!(references.locate(late), Some(in_memory(50)), "it was written behind them");
        references.keep_all(&memory);
        memory.bytes_mut(REGION).fill(7);
        assert_eq!(references.locate(after), Some(BytesLocation::Kept(&[10, 11, 99, 13])));
        assert_eq!(references.locate(late), Some(BytesLocation::Kept(&[50, 51, 52, 53])));
    }

    #[test]
    fn a_reference_ends_with_its_last_holder_and_its_slot_is_reused() {
        let mut references = References::default();
        let number = references.add(REGION, 0, 8);
        references.share(number);
        references.release(number);
        assert!(references.locate(number).is_some());
        references.release(number);
        assert_eq!(references.locate(number), None);
        references.release(number);
        assert!(!references.spans.reaches(REGION, 0, 100), "nothing is referenced");
        assert_eq!(references.add(REGION, 90, 8), number);
        assert!(!references.spans.reaches(REGION, 0, 90), "the range of what is referenced now");
        assert!(references.spans.reaches(REGION, 97, 98) && !references.spans.reaches(RegionId(2), 97, 98));
    }
}
