//! Ranges of one node's memory that outstanding operations may write.
//!
//! Extents never overlap. As long as one belongs to a single operation, the bytes written there count as that
//! operation's. If a second operation may write some of the same bytes, the two share one extent without an owner,
//! until all of them have ended. So the extent of a write is found in one look-up, independent of the number of
//! operations.

use std::collections::BTreeMap;

use rackloom_protocol::{NodeId, RegionId};

use super::entry::Destination;

/// Owner of an extent: the initiator, and the number of its request.
type Owner = (NodeId, u64);

#[derive(Clone, Copy, Debug)]
struct Extent {
    end: u64,
    /// `None`: several operations may write here.
    owner: Option<Owner>,
    /// Number of operations that have not ended.
    operations: u64,
    written: u64,
    /// True if another writer than the operations has written here as well.
    is_touched: bool,
}

/// Result of an operation's writes, if it can be determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) bytes: u64,
    pub(super) is_touched: bool,
}

/// Extent that a write has hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteCheck {
    /// True if an operation may write there.
    pub(super) is_covered: bool,
    /// True if the operation had already written all its bytes.
    pub(super) is_too_much: bool,
}

/// The extents of one node's memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Extents(BTreeMap<(RegionId, u64), Extent>);

impl Extents {
    /// Begins an operation that may write here.
    pub(super) fn open(&mut self, destination: &Destination, owner: Owner) {
        let fresh = Extent {
            end: destination.offset.saturating_add(destination.length),
            owner: Some(owner),
            operations: 1,
            written: 0,
            is_touched: false,
        };
        let (mut begin, mut joined) = (destination.offset, fresh);
        while let Some((other_begin, other)) = self.last_before(destination.region, joined.end)
            && other.end > begin
        {
            self.0.remove(&(destination.region, other_begin));
            begin = begin.min(other_begin);
            joined = Extent {
                end: joined.end.max(other.end),
                owner: None,
                operations: joined.operations + other.operations,
                ..joined
            };
        }
        self.0.insert((destination.region, begin), joined);
    }

    /// Counts bytes that are written for an operation.
    pub(super) fn write(&mut self, region: RegionId, offset: u64, length: u64) -> WriteCheck {
        let Some(extent) = self.at_mut(region, offset, length) else {
            return WriteCheck { is_covered: length == 0, is_too_much: false };
        };
        extent.1.written += length;
        let is_too_much = extent.1.owner.is_some() && extent.1.written > extent.1.end - extent.0;
        WriteCheck { is_covered: true, is_too_much }
    }

    /// Notes bytes that another permitted writer has written.
    pub(super) fn touch(&mut self, region: RegionId, offset: u64, length: u64) {
        let (mut end, begin) = (offset.saturating_add(length), offset);
        while let Some((other_begin, other)) = self.last_before(region, end)
            && other.end > begin
        {
            if let Some(extent) = self.0.get_mut(&(region, other_begin)) {
                extent.is_touched = true;
            }
            end = other_begin;
        }
    }

    /// Returns true if all bytes of the operation that owns this range are written; `None` if the operation is not the only owner.
    pub(super) fn is_whole(&self, destination: &Destination) -> Option<bool> {
        let (_, extent) = self.last_before(destination.region, destination.offset.saturating_add(1))?;
        extent.owner.map(|_| extent.written >= destination.length)
    }

    /// Ends an operation. Returns `None` if its writes cannot be separated from others.
    pub(super) fn close(&mut self, destination: &Destination) -> Option<Written> {
        let (begin, extent) = self.at_mut(destination.region, destination.offset, destination.length)?;
        let written = Written { bytes: extent.written, is_touched: extent.is_touched };
        let known = extent.owner.map(|_| written);
        extent.operations = extent.operations.saturating_sub(1);
        if extent.operations == 0 {
            self.0.remove(&(destination.region, begin));
        }
        known
    }

    /// Ends an operation whose bytes may still arrive.
    pub(super) fn abandon(&mut self, destination: &Destination) -> Option<Written> {
        let (_, extent) = self.at_mut(destination.region, destination.offset, destination.length)?;
        let written = Written { bytes: extent.written, is_touched: extent.is_touched };
        extent.owner.take().map(|_| written)
    }

    /// Returns the extent that covers these bytes.
    fn at_mut(&mut self, region: RegionId, offset: u64, length: u64) -> Option<(u64, &mut Extent)> {
        let end = offset.checked_add(length)?;
        let last = (region, offset);
        let ((of, begin), extent) = self.0.range_mut(..=last).next_back()?;
        (*of == region && extent.end >= end).then_some((*begin, extent))
    }

    fn last_before(&self, region: RegionId, end: u64) -> Option<(u64, Extent)> {
        let range = (region, 0)..(region, end);
        self.0.range(range).next_back().map(|((_, begin), extent)| (*begin, *extent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: RegionId = RegionId(1);

    fn destination(offset: u64, length: u64) -> Destination {
        Destination { holder: NodeId(0), region: REGION, offset, length }
    }

    const fn owner(number: u64) -> Owner {
        (NodeId(1), number)
    }

    #[test]
    fn writes_of_a_single_operation_are_counted_for_it() {
        let mut extents = Extents::default();
        extents.open(&destination(100, 50), owner(0));
        extents.open(&destination(150, 10), owner(1));
        let fine = WriteCheck { is_covered: true, is_too_much: false };
        assert_eq!(extents.write(REGION, 100, 30), fine);
        assert_eq!(extents.is_whole(&destination(100, 50)), Some(false));
        assert_eq!(extents.write(REGION, 130, 20), fine);
        assert_eq!(extents.is_whole(&destination(100, 50)), Some(true));
        assert!(extents.write(REGION, 130, 20).is_too_much, "the same again");
        assert_eq!(extents.close(&destination(100, 50)), Some(Written { bytes: 70, is_touched: false }));
        assert!(!extents.write(REGION, 100, 1).is_covered, "it has ended");
        assert!(!extents.write(REGION, 155, 6).is_covered, "beyond the end");
        assert!(!extents.write(RegionId(2), 150, 1).is_covered, "elsewhere");
    }

    #[test]
    fn a_shared_extent_has_no_owner_until_all_operations_have_ended() {
        let mut extents = Extents::default();
        extents.open(&destination(0, 10), owner(0));
        extents.open(&destination(20, 10), owner(1));
        extents.open(&destination(5, 20), owner(2));
        assert_eq!(extents.is_whole(&destination(0, 10)), None);
        assert_eq!(extents.close(&destination(5, 20)), None);
        assert!(extents.write(REGION, 12, 3).is_covered, "two of them are still outstanding");
        assert_eq!((extents.close(&destination(0, 10)), extents.close(&destination(20, 10))), (None, None));
        assert!(!extents.write(REGION, 0, 1).is_covered);
    }

    #[test]
    fn own_writes_are_noted_and_abandoned_extents_stay_covered() {
        let mut extents = Extents::default();
        extents.open(&destination(0, 10), owner(0));
        extents.open(&destination(30, 10), owner(1));
        extents.touch(REGION, 9, 40);
        assert_eq!(extents.close(&destination(0, 10)), Some(Written { bytes: 0, is_touched: true }));
        assert_eq!(extents.abandon(&destination(30, 10)), Some(Written { bytes: 0, is_touched: true }));
        assert_eq!(extents.write(REGION, 30, 10), WriteCheck { is_covered: true, is_too_much: false });
        extents.touch(REGION, 1_000, 1);
    }
}
