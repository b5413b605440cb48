//! Bytes of a node's memory to which frames in flight refer.
//!
//! A frame of the simulator need not carry bytes that its sender's memory holds: it names their region and offset,
//! and the receiver's memory copies them from there, once. The sender might write there in between. Then the bytes as
//! they were are copied aside first, for the frames that still refer to them. That is rare, so it may be slow. The
//! check whether it is needed must be fast. So each region with loans stores the range in which they are.
//!
//! This file does not contain who lends and who takes.

use rackloom_protocol::RegionId;
use rackloom_protocol::memory::vector::VectorMemory;

use crate::spans::Spans;
use crate::takings::RegionOffset;

/// Bytes that were lent.
#[derive(Debug)]
struct Lent {
    region: RegionId,
    offset: u64,
    length: usize,
    /// Number of frames that refer to them; 0 if the slot is free.
    holders: u32,
    /// The bytes as they were when the owner wrote over them.
    kept: Option<Box<[u8]>>,
}

/// All loans of one node.
#[derive(Debug, Default)]
pub(crate) struct Loans {
    lent: Vec<Lent>,
    free: Vec<u32>,
    spans: Spans,
}

impl Loans {
    /// Lends a range of the owner's memory. One frame holds it.
    pub(crate) fn lend(&mut self, region: RegionId, offset: u64, length: usize) -> u32 {
        let end = offset + length as u64;
        self.spans.add(region, offset, end);
        let lent = Lent { region, offset, length, holders: 1, kept: None };
        match self.free.pop() {
            Some(number) => {
                self.lent[number as usize] = lent;
                number
            }
            None => {
                self.lent.push(lent);
                self.lent.len() as u32 - 1
            }
        }
    }

    /// Copies a loan's bytes aside now, independent of later writes of the owner.
    pub(crate) fn keep_one(&mut self, number: u32, bytes: &[u8]) {
        if let Some(lent) = self.lent.get_mut(number as usize) {
            lent.kept = Some(Box::from(bytes));
        }
    }

    /// Adds a frame that holds the loan.
    pub(crate) fn share(&mut self, number: u32) {
        if let Some(lent) = self.lent.get_mut(number as usize).filter(|lent| lent.holders > 0) {
            lent.holders += 1;
        }
    }

    /// Removes a frame that held the loan.
    pub(crate) fn give_back(&mut self, number: u32) {
        let Some(lent) = self.lent.get_mut(number as usize).filter(|lent| lent.holders > 0) else { return };
        lent.holders -= 1;
        if lent.holders > 0 {
            return;
        }
        lent.kept = None;
        let region = lent.region;
        self.free.push(number);
        self.spans.remove(region);
    }

    /// Must be called before the owner writes `length` bytes at `offset`.
    #[inline]
    pub(crate) fn before_write(&mut self, memory: &VectorMemory, region: RegionId, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        if self.spans.reaches(region, offset, end) {
            self.keep(memory, |lent| {
                lent.region == region && offset < lent.offset + lent.length as u64 && lent.offset < end
            });
        }
    }

    /// Copies all loans aside, before writes at unspecified offsets of the owner's memory.
    pub(crate) fn keep_all(&mut self, memory: &VectorMemory) {
        self.keep(memory, |_| true);
    }

    #[cold]
    fn keep(&mut self, memory: &VectorMemory, is_concerned: impl Fn(&Lent) -> bool) {
        let open = self.lent.iter_mut().filter(|lent| lent.holders > 0 && lent.kept.is_none());
        for lent in open.filter(|lent| is_concerned(lent)) {
            lent.kept = range(memory, lent.region, lent.offset, lent.length).map(Box::from);
        }
    }

    /// Returns where the bytes are, as they were lent.
    pub(crate) fn loaned(&self, number: u32) -> Option<Loaned<'_>> {
        let lent = self.lent.get(number as usize).filter(|lent| lent.holders > 0)?;
        let location = RegionOffset { region: lent.region, offset: lent.offset };
        Some(lent.kept.as_deref().map_or(Loaned::At(location), Loaned::Kept))
    }
}

/// Location of lent bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loaned<'a> {
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

    const fn in_memory(offset: u64) -> Loaned<'static> {
        Loaned::At(RegionOffset { region: REGION, offset })
    }

    #[test]
    fn overwritten_bytes_stay_as_lent() {
        let (mut memory, mut loans) = (memory(), Loans::default());
        let [early, late] = [loans.lend(REGION, 10, 4), loans.lend(REGION, 50, 4)];
        loans.before_write(&memory, REGION, 12, 1);
        memory.bytes_mut(REGION)[12] = 99;
        assert_eq!(loans.loaned(early), Some(Loaned::Kept(&[10, 11, 12, 13])));
        let after = loans.lend(REGION, 10, 4);
        assert_eq!(loans.loaned(after), Some(in_memory(10)), "lent after the write");
        loans.before_write(&memory, REGION, 54, 1);
        memory.bytes_mut(REGION)[54] = 0;
        assert_eq!(loans.loaned(late), Some(in_memory(50)), "it was written behind them");
        loans.keep_all(&memory);
        memory.bytes_mut(REGION).fill(7);
        assert_eq!(loans.loaned(after), Some(Loaned::Kept(&[10, 11, 99, 13])));
        assert_eq!(loans.loaned(late), Some(Loaned::Kept(&[50, 51, 52, 53])));
    }

    #[test]
    fn a_loan_ends_with_its_last_holder_and_its_slot_is_reused() {
        let mut loans = Loans::default();
        let number = loans.lend(REGION, 0, 8);
        loans.share(number);
        loans.give_back(number);
        assert!(loans.loaned(number).is_some());
        loans.give_back(number);
        assert_eq!(loans.loaned(number), None);
        loans.give_back(number);
        assert!(!loans.spans.reaches(REGION, 0, 100), "nothing is lent");
        assert_eq!(loans.lend(REGION, 90, 8), number);
        assert!(!loans.spans.reaches(REGION, 0, 90), "the range of what is lent now");
        assert!(loans.spans.reaches(REGION, 97, 98) && !loans.spans.reaches(RegionId(2), 97, 98));
    }
}
