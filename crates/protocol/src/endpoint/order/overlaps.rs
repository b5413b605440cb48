//! Overlaps of puts in flight under [`OrderScope::Region`]: puts that touch the same 256 bytes go one after the other.

use alloc::collections::VecDeque;

use crate::endpoint::stream::Stream;
use crate::ids::RegionId;
use crate::link::credits::is_ahead;
use crate::operation::bulk::Bulk;

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
    in_flight: VecDeque<(u32, Lines)>,
    /// True if the next put touches the lines of one in flight.
    pub(in crate::endpoint) blocks: bool,
}

impl Overlaps {
    /// Records that all of a put is in packets of its stream.
    pub(in crate::endpoint) fn note_cut(&mut self, put: Bulk, stream: &Stream) {
        if let Bulk::Put { target, source, .. } = put
            && source.length > 0
        {
            let last = stream.sender.next_operation().wrapping_sub(1);
            let lines = Lines::of(target.region, target.offset, source.length);
            self.in_flight.push_back((last, lines));
        }
        self.judge(stream);
    }

    /// Decides again if the next put of the stream must wait.
    pub(in crate::endpoint) fn judge(&mut self, stream: &Stream) {
        let visible = stream.sender.visible();
        while self.in_flight.front().is_some_and(|(last, _)| is_ahead(visible, *last)) {
            self.in_flight.pop_front();
        }
        self.blocks = match stream.bulk.front() {
            Some(Bulk::Put { target, source, first: None, .. }) if source.length > 0 => {
                let lines = Lines::of(target.region, target.offset, source.length);
                self.in_flight.iter().any(|(_, other)| other.touches(&lines))
            }
            _ => false,
        };
    }

    pub(in crate::endpoint) fn clear(&mut self) {
        self.in_flight.clear();
        self.blocks = false;
    }
}
