//! Lanes: buffers in the rank's own memory for outstanding transfers, as sources of puts and targets of loads and gets.
//!
//! A lane is held from issue to completion, because a put reads its source again for a retransmission. There are few
//! lanes. When none is free, the rank issues no operation that needs one.

use rackloom_protocol::LocalRange;

use super::layout::{
    GUARD_BYTES, LANE_MARGIN_BYTES, LANES, LARGE_LANES, Layout, SMALL_LANE_BYTES, SMALL_LANES,
};

/// A lane that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    start: u64,
    bytes: u64,
    misalignment: u64,
    is_large: bool,
}

impl Lane {
    /// Returns the offset at which the transfer's bytes begin.
    pub(crate) const fn offset(self) -> u64 {
        self.start + GUARD_BYTES + self.misalignment
    }

    /// Returns the range to fill with the guard pattern: the transfer's bytes, and guards on both sides.
    pub(crate) const fn guarded(self) -> LocalRange {
        range(self.start, self.misalignment + self.bytes + 2 * GUARD_BYTES - 8)
    }

    /// Returns the guard before the transfer's bytes.
    pub(crate) const fn guard_before(self) -> LocalRange {
        range(self.start, self.offset() - self.start)
    }

    /// Returns the guard after the transfer's bytes.
    pub(crate) const fn guard_behind(self) -> LocalRange {
        let end = self.offset() + self.bytes;
        let guarded = self.guarded();
        range(end, guarded.offset + guarded.length - end)
    }
}

const fn range(offset: u64, length: u64) -> LocalRange {
    LocalRange { region: LANES, offset, length }
}

/// Free lanes.
#[derive(Debug)]
pub(crate) struct Lanes {
    small: Vec<u64>,
    large: Vec<u64>,
    large_bytes: u64,
}

impl Lanes {
    pub(crate) fn new(layout: &Layout) -> Self {
        let small_stride = SMALL_LANE_BYTES + LANE_MARGIN_BYTES;
        let large_base = SMALL_LANES * small_stride;
        let large_stride = layout.large_lane_stride();
        Self {
            small: (0..SMALL_LANES).rev().map(|lane| lane * small_stride).collect(),
            large: (0..LARGE_LANES).rev().map(|lane| large_base + lane * large_stride).collect(),
            large_bytes: large_stride - LANE_MARGIN_BYTES,
        }
    }

    /// Takes a lane for `bytes` at `misalignment` (0 to 7) from a 64-byte boundary; `None` while all fitting lanes are
    /// held.
    pub(crate) fn acquire(&mut self, bytes: u64, misalignment: u64) -> Option<Lane> {
        debug_assert!(misalignment < 8);
        let is_large = bytes > SMALL_LANE_BYTES;
        debug_assert!(!is_large || bytes <= self.large_bytes);
        let start = if is_large { self.large.pop() } else { self.small.pop() }?;
        Some(Lane { start, bytes, misalignment, is_large })
    }

    pub(crate) fn release(&mut self, lane: Lane) {
        if lane.is_large { self.large.push(lane.start) } else { self.small.push(lane.start) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::litmus::layout::LANES;
    use crate::litmus::settings::LitmusSettings;

    #[test]
    fn lanes_held_together_never_touch_and_stay_in_their_region() {
        let layout =
            Layout::new(4, &LitmusSettings { bytes_max: 10_001, ..LitmusSettings::default() }).unwrap();
        let mut lanes = Lanes::new(&layout);
        let mut held: Vec<_> =
            (0..SMALL_LANES).map(|_| lanes.acquire(SMALL_LANE_BYTES, 7).unwrap()).collect();
        held.extend((0..LARGE_LANES).map(|_| lanes.acquire(10_001, 7).unwrap()));
        assert_eq!(lanes.acquire(1, 0), None);
        assert_eq!(lanes.acquire(10_000, 0), None);

        held.sort_by_key(|lane| lane.start);
        for pair in held.windows(2) {
            let LocalRange { offset: start, length: bytes, .. } = pair[0].guarded();
            assert!(start + bytes <= pair[1].start, "{pair:?}");
            assert!(pair[0].guard_before().length >= GUARD_BYTES);
            assert!(pair[0].guard_behind().length >= GUARD_BYTES - 8);
        }
        let LocalRange { offset: start, length: bytes, .. } = held.last().unwrap().guarded();
        assert!(start + bytes <= layout.region_bytes(LANES));
    }

    #[test]
    fn a_released_lane_is_free_again() {
        let layout = Layout::new(2, &LitmusSettings::default()).unwrap();
        let mut lanes = Lanes::new(&layout);
        let first = lanes.acquire(100, 3).unwrap();
        assert_eq!(first.offset() % 64, 3);
        lanes.release(first);
        assert_eq!(lanes.acquire(100, 3), Some(first));
    }
}
