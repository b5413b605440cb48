//! Overlaps of puts in flight under [`OrderScope::Region`]: puts that touch the same 256 bytes go one after the other.

use alloc::collections::VecDeque;

use crate::ids::RegionId;

/// Unit of order under [`OrderScope::Region`], in bytes.
const LINE_BYTES: u64 = 256;

/// Lines of 256 bytes that a put, or a part of one, touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) region: RegionId,
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Lines {
    pub(super) const fn of(region: RegionId, offset: u64, bytes: u64) -> Self {
        let last = offset.saturating_add(bytes.saturating_sub(1)) / LINE_BYTES;
        Self { region, first: offset / LINE_BYTES, last }
    }

    pub(super) fn touches(&self, other: &Self) -> bool {
        self.region == other.region && self.first <= other.last && other.first <= self.last
    }
}

/// Puts in flight to one node, of which overlapping ones must not be in flight together.
#[derive(Debug, Default)]
pub(super) struct Overlaps {
    /// Number of the last operation of each put, and its lines.
    pub(super) in_flight: VecDeque<(u32, Lines)>,
    /// True if the next put touches the lines of one in flight.
    pub(super) blocks: bool,
}

impl Overlaps {
    pub(super) fn clear(&mut self) {
        self.in_flight.clear();
        self.blocks = false;
    }
}
