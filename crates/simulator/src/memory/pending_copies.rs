//! Payloads that a memory has taken from another one, and has not copied yet.
//!
//! A payload is moved once, from the memory that has it to the one that takes it. That costs little more than
//! reading and writing it. But if it is done frame by frame, among a hundred nodes in step, it evicts the engine's
//! data for the next frame from the cache, without benefit, because these bytes are not read soon. So a memory first
//! notes taken payloads, consecutive ones as one, and copies many at a time ([`crate::memory::payload`]): before they are
//! read or either end is overwritten, when many have accumulated, and at the latest when the engine stops.
//!
//! Among memories the copies may be made in any order, within one memory in its own order. Before a read or write
//! that could observe a difference, the copies are made.

use rackloom_protocol::{NodeId, RegionId};

use crate::memory::spans::Spans;

/// Offset of the first byte in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegionOffset {
    pub(crate) region: RegionId,
    pub(crate) offset: u64,
}

impl RegionOffset {
    fn end(self, length: u64) -> u64 {
        self.offset + length
    }

    fn follows(self, earlier: Self, length: u64) -> bool {
        self.region == earlier.region && self.offset == earlier.end(length)
    }
}

/// Consecutive payloads of one memory, consecutive here as well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingCopy {
    /// Node whose memory has them.
    pub(crate) source: NodeId,
    pub(crate) from: RegionOffset,
    pub(crate) to: RegionOffset,
    /// Length of all payloads, in bytes.
    pub(crate) length: u64,
    /// Length of each payload, in bytes; the last one may be shorter.
    pub(crate) payload_bytes: u64,
    /// Number of payloads that the memory had taken before.
    pub(crate) number: u64,
}

impl PendingCopy {
    /// Returns true if `next` continues where this one ends, payload by payload.
    fn continues_with(&self, next: &Self) -> bool {
        self.source == next.source
            && next.from.follows(self.from, self.length)
            && next.to.follows(self.to, self.length)
            && self.length.is_multiple_of(self.payload_bytes)
            && next.length <= self.payload_bytes
            && next.number == self.number + self.length / self.payload_bytes
    }
}

/// All payloads that one memory has taken and not copied yet.
#[derive(Debug, Default)]
pub(crate) struct PendingCopies {
    list: Vec<PendingCopy>,
    /// Ranges that they will occupy.
    targets: Spans,
    /// Number of payloads that were ever taken.
    count: u64,
}

impl PendingCopies {
    /// Returns the number of a payload that is taken now.
    pub(crate) fn number(&mut self) -> u64 {
        let number = self.count;
        self.count += 1;
        number
    }

    /// Adds a payload. Returns true if it was joined to those before it.
    pub(crate) fn add(&mut self, pending_copy: PendingCopy) -> bool {
        let (region, begin, end) =
            (pending_copy.to.region, pending_copy.to.offset, pending_copy.to.end(pending_copy.length));
        if let Some(last) = self.list.last_mut().filter(|last| last.continues_with(&pending_copy)) {
            last.length += pending_copy.length;
            self.targets.widen(region, begin, end);
            return true;
        }
        self.list.push(pending_copy);
        self.targets.add(region, begin, end);
        false
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns true if one of these bytes may still have to be copied to.
    #[inline]
    pub(crate) fn reach(&self, region: RegionId, begin: u64, end: u64) -> bool {
        self.targets.reaches(region, begin, end)
            && self.list.iter().any(|pending_copy| {
                let to = pending_copy.to;
                to.region == region && begin < to.end(pending_copy.length) && to.offset < end
            })
    }

    /// Returns all of them, to be copied in this order. Give the vector back with `recycle`.
    pub(crate) fn take_all(&mut self) -> Vec<PendingCopy> {
        self.list.iter().for_each(|pending_copy| self.targets.remove(pending_copy.to.region));
        std::mem::take(&mut self.list)
    }

    /// Takes back the vector of copied payloads, to reuse its memory.
    pub(crate) fn recycle(&mut self, mut list: Vec<PendingCopy>) {
        list.clear();
        self.list = list;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: RegionId = RegionId(1);

    fn pending_copy(pending_copies: &mut PendingCopies, from: u64, to: u64, length: u64) -> PendingCopy {
        let (from, to) =
            (RegionOffset { region: REGION, offset: from }, RegionOffset { region: REGION, offset: to });
        let (source, number) = (NodeId(3), pending_copies.number());
        PendingCopy { source, from, to, length, payload_bytes: length, number }
    }

    #[test]
    fn consecutive_payloads_are_one_pending_copy() {
        let mut pending_copies = PendingCopies::default();
        for (from, to, length, joins) in [
            (0, 100, 10, false),
            (10, 110, 10, true),
            (20, 120, 4, true),
            (24, 124, 4, false), // the one before it was shorter than the first
            (28, 128, 6, false), // longer than the first
            (50, 134, 6, false),
            (56, 150, 6, false),
            (62, 156, 6, true),
        ] {
            let next = pending_copy(&mut pending_copies, from, to, length);
            assert_eq!(pending_copies.add(next), joins, "{next:?}");
        }
        pending_copies.number();
        let after_another = pending_copy(&mut pending_copies, 68, 162, 6);
        assert!(!pending_copies.add(after_another), "one that was copied at once came in between");
        let numbers: Vec<_> = pending_copies
            .take_all()
            .iter()
            .map(|pending_copy| (pending_copy.number, pending_copy.length))
            .collect();
        assert_eq!(numbers, [(0, 24), (3, 4), (4, 6), (5, 6), (6, 12), (9, 6)]);
        assert!(pending_copies.is_empty());
    }

    #[test]
    fn pending_copies_are_known_to_the_byte() {
        let mut pending_copies = PendingCopies::default();
        for to in [100, 200] {
            let next = pending_copy(&mut pending_copies, 0, to, 10);
            pending_copies.add(next);
        }
        assert!(pending_copies.reach(REGION, 109, 110) && pending_copies.reach(REGION, 0, 101));
        assert!(!pending_copies.reach(REGION, 110, 200) && !pending_copies.reach(RegionId(2), 100, 110));
        let list = pending_copies.take_all();
        pending_copies.recycle(list);
        assert!(pending_copies.is_empty() && !pending_copies.reach(REGION, 0, 1_000));
    }
}
