//! Lanes: places of intervals so that no two of one lane overlap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Assigns intervals to lanes. Intervals must come in the order of their begin.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    /// Ends of occupied lanes, the earliest first.
    occupied: BinaryHeap<Reverse<(u64, usize)>>,
    /// Lanes without an interval, the lowest first.
    free: BinaryHeap<Reverse<usize>>,
    count: usize,
}

impl Lanes {
    /// Returns the lowest lane that is free from `begin_ns` on, and occupies it until `end_ns`.
    pub(crate) fn place(&mut self, begin_ns: u64, end_ns: u64) -> usize {
        while let Some(Reverse((occupied_ns, lane))) = self.occupied.peek().copied()
            && occupied_ns <= begin_ns
        {
            self.occupied.pop();
            self.free.push(Reverse(lane));
        }
        let lane = self.free.pop().map_or(self.count, |Reverse(lane)| lane);
        self.count = self.count.max(lane + 1);
        self.occupied.push(Reverse((end_ns, lane)));
        lane
    }

    /// Returns the number of lanes.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_intervals_have_lanes_of_their_own_and_lanes_are_used_again() {
        let mut lanes = Lanes::default();
        let intervals = [(0, 10), (0, 5), (4, 6), (5, 7), (10, 12), (10, 11)];
        let placed: Vec<_> = intervals.into_iter().map(|(begin, end)| lanes.place(begin, end)).collect();
        assert_eq!(placed, [0, 1, 2, 1, 0, 1]);
        assert_eq!(lanes.count(), 3);
    }
}
