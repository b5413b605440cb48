//! Layout of a group's region: every part has the same offset on every member.
//!
//! The region has one part per lane. Calls of different lanes may be in flight at the same time. A lane has:
//!
//! | part | holds |
//! |---|---|
//! | departure | one word, of the first lane: the member that broke the group, and the reason; set by others |
//! | group status | one word: the current call of this member in this lane; read by others |
//! | barrier | words of the barrier, which only grow |
//! | signals, twice | one word per arrival, set to the number of the run |
//! | staging, twice | output and working space of a run |
//! | input | input of this member; peers never write here |
//!
//! Runs alternate between the two sets of signals and staging, so that a fast member may begin the next run while a slow one still copies its
//! result out of this one.

use rackloom_collectives::{Buffer, Program, Schedule};

/// Offset of the departure word, which names the member that broke the group.
pub(super) const DEPARTURE: u64 = 0;
/// Offset of the group status word in a lane, which names the current call of this member.
const GROUP_STATUS: u64 = 8;
const BARRIER: u64 = 64;
/// Number of barrier words. Enough for 2^16 members.
const BARRIER_WORDS: u64 = 16;
const SIGNALS: u64 = BARRIER + BARRIER_WORDS * 8;
/// Number of signal words of one run.
const SIGNAL_WORDS: u64 = 4096;
/// Offset of the parts with a chosen length.
const STAGING: u64 = SIGNALS + 2 * SIGNAL_WORDS * 8;
/// Number of these parts: staging, twice, and input.
const PARTS: u64 = 3;
/// Alignment of the parts: a cache line.
const LINE: u64 = 64;

/// Set of words and bytes that a run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    Barrier,
    First,
    Second,
}

impl Set {
    /// Returns the set of a run with data.
    pub(super) const fn of_run(run: u32) -> Self {
        if run.is_multiple_of(2) { Self::First } else { Self::Second }
    }
}

/// Layout of one lane of the region. It follows from the length of a staging part, and from the lane's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    staging_bytes: u64,
    /// Offset of the lane.
    base: u64,
}

impl Layout {
    /// Returns the layouts of all lanes, or `None` if offsets would overflow.
    pub(super) fn of_lanes(staging_bytes: u64, lanes: usize) -> Option<Vec<Self>> {
        let staging_bytes = staging_bytes.checked_next_multiple_of(LINE)?;
        let lane_bytes = staging_bytes.checked_mul(PARTS).and_then(|bytes| bytes.checked_add(STAGING))?;
        let total_bytes = lane_bytes.checked_mul(lanes as u64)?;
        isize::try_from(total_bytes).ok()?;
        Some((0..lanes as u64).map(|lane| Self { staging_bytes, base: lane * lane_bytes }).collect())
    }

    /// Returns the offset after the last byte of the lane. The last lane ends where the region ends.
    pub(super) const fn end(self) -> u64 {
        self.input() + self.staging_bytes
    }

    /// Returns the offset of the group status word.
    pub(super) const fn group_status(self) -> u64 {
        self.base + GROUP_STATUS
    }

    const fn staging(self, set: Set) -> u64 {
        match set {
            Set::Barrier | Set::First => self.base + STAGING,
            Set::Second => self.base + STAGING + self.staging_bytes,
        }
    }

    const fn input(self) -> u64 {
        self.staging(Set::Second) + self.staging_bytes
    }

    /// Returns the offset of a signal word.
    pub(super) const fn signal(self, set: Set, arrival: u32) -> u64 {
        let first = match set {
            Set::Barrier => BARRIER,
            Set::First => SIGNALS,
            Set::Second => SIGNALS + SIGNAL_WORDS * 8,
        };
        self.base + first + arrival as u64 * 8
    }

    /// Returns the offset of a buffer at the member that runs this program.
    pub(super) const fn buffer(
        self,
        set: Set,
        buffer: Buffer,
        program: &Program,
        element_bytes: usize,
    ) -> u64 {
        match buffer {
            Buffer::Input => self.input(),
            Buffer::Output => self.staging(set),
            Buffer::Scratch => self.staging(set) + rounded(program.output, element_bytes),
        }
    }

    /// Returns `true` if the parts of every member fit.
    pub(super) fn takes(self, schedule: &Schedule, element_bytes: usize) -> bool {
        schedule.programs.iter().all(|program| {
            let staged = rounded(program.output, element_bytes) + rounded(program.scratch, element_bytes);
            let input = rounded(program.input, element_bytes);
            input <= self.staging_bytes
                && staged <= self.staging_bytes
                && u64::from(program.arrivals) <= SIGNAL_WORDS
        })
    }
}

const fn rounded(elements: usize, element_bytes: usize) -> u64 {
    (elements as u64 * element_bytes as u64).next_multiple_of(LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap() {
        let lanes = Layout::of_lanes(1000, 3).unwrap();
        let program = Program { input: 250, output: 100, scratch: 130, ..Program::default() };
        let last = SIGNAL_WORDS as u32 - 1;
        let mut parts = vec![(DEPARTURE, 8)];
        for layout in &lanes {
            let of_lane = |set, buffer| layout.buffer(set, buffer, &program, 4);
            parts.extend([
                (layout.group_status(), 8),
                (layout.signal(Set::Barrier, 0), BARRIER_WORDS * 8),
                (of_lane(Set::First, Buffer::Input), 1000),
            ]);
            for set in [Set::First, Set::Second] {
                parts.push((layout.signal(set, 0), u64::from(last) * 8 + 8));
                parts.push((of_lane(set, Buffer::Output), 400));
                parts.push((of_lane(set, Buffer::Scratch), 520));
            }
        }
        parts.sort_unstable();
        assert!(parts.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{parts:?}");
        let (start, length) = parts[parts.len() - 1];
        assert!(start + length <= lanes[2].end());
    }

    #[test]
    fn a_layout_beyond_the_address_space_is_refused() {
        for staging_bytes in [u64::MAX, u64::MAX - LINE, u64::MAX / PARTS, 1 << 62] {
            assert!(Layout::of_lanes(staging_bytes, 1).is_none(), "{staging_bytes}");
        }
        let largest = Layout::of_lanes(1 << 60, 1).unwrap();
        assert!(largest[0].end() > PARTS << 60);
        assert!(Layout::of_lanes(1 << 60, 4).is_none());
    }
}
