//! Overlaps of puts in flight under [`OrderScope::Region`]: puts that touch the same 256 bytes go one after the other.

use alloc::collections::VecDeque;

use crate::ids::RegionId;

/// Unit of order under [`OrderScope::Region`], in bytes.
const LINE_BYTES: u64 = 256;

/// Lines of 256 bytes that a put, or a part of one, touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) struct Lines {
    pub(in crate::endpoint) region: RegionId,
    pub(in crate::endpoint) first: u64,
    pub(in crate::endpoint) last: u64,
}

impl Lines {
    pub(in crate::endpoint) const fn of(region: RegionId, offset: u64, bytes: u64) -> Self {
        let last = offset.saturating_add(bytes.saturating_sub(1)) / LINE_BYTES;
        Self { region, first: offset / LINE_BYTES, last }
    }

    pub(in crate::endpoint) fn touches(&self, other: &Self) -> bool {
        self.region == other.region && self.first <= other.last && other.first <= self.last
    }
}

/// Puts in flight to one node, of which overlapping ones must not be in flight together.
#[derive(Debug, Default)]
pub(in crate::endpoint) struct Overlaps {
    /// Number of the last operation of each put, and its lines.
    pub(in crate::endpoint) in_flight: VecDeque<(u32, Lines)>,
    /// True if the next put touches the lines of one in flight.
    pub(in crate::endpoint) blocks: bool,
}

impl Overlaps {
    pub(in crate::endpoint) fn clear(&mut self) {
        self.in_flight.clear();
        self.blocks = false;
    }
}
