//! Layout of a group's regions, one with words and one with arrays: every part has the same offset on every member.
//!
//! Both regions have one part per lane. Calls of different lanes may be in flight at the same time. A lane has:
//!
//! | region | part | holds |
//! |---|---|---|
//! | words | departure | one word, of the first lane: the member that broke the group, and the reason; set by others |
//! | words | group status | one word: the current call of this member in this lane; read by others |
//! | words | barrier | words of the barrier, which only grow |
//! | words | signals, twice | one word per arrival, set to the number of the run |
//! | arrays | staging, twice | output and working space of a run |
//! | arrays | input | input of this member; peers never write here |
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
/// Length of the words of a lane.
const WORDS_BYTES: u64 = SIGNALS + 2 * SIGNAL_WORDS * 8;
/// Number of arrays, whose length is chosen: staging, twice, and input.
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

/// Layout of one lane of the regions. It follows from the length of a staging part, and from the lane's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    staging_bytes: u64,
    lane: u64,
}

impl Layout {
    /// Returns the layouts of all lanes, or `None` if offsets would overflow.
    pub(super) fn of_lanes(staging_bytes: u64, lanes: usize) -> Option<Vec<Self>> {
        let staging_bytes = staging_bytes.checked_next_multiple_of(LINE)?;
        let total_bytes = staging_bytes.checked_mul(PARTS)?.checked_mul(lanes as u64)?;
        isize::try_from(total_bytes).ok()?;
        Some((0..lanes as u64).map(|lane| Self { staging_bytes, lane }).collect())
    }

    /// Returns the offset after the last array of the lane. The last lane ends where the region ends.
    pub(super) const fn arrays_end(self) -> u64 {
        self.input() + self.staging_bytes
    }

    /// Returns the offset after the last word of the lane. The last lane ends where the region ends.
    pub(super) const fn words_end(self) -> u64 {
        self.words() + WORDS_BYTES
    }

    const fn words(self) -> u64 {
        self.lane * WORDS_BYTES
    }

    /// Returns the offset of the group status word.
    pub(super) const fn group_status(self) -> u64 {
        self.words() + GROUP_STATUS
    }

    const fn staging(self, set: Set) -> u64 {
        let first = self.lane * PARTS * self.staging_bytes;
        match set {
            Set::Barrier | Set::First => first,
            Set::Second => first + self.staging_bytes,
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
        self.words() + first + arrival as u64 * 8
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
        let (mut words, mut arrays) = (vec![(DEPARTURE, 8)], Vec::new());
        for layout in &lanes {
            let of_lane = |set, buffer| layout.buffer(set, buffer, &program, 4);
            words.push((layout.group_status(), 8));
            words.push((layout.signal(Set::Barrier, 0), BARRIER_WORDS * 8));
            arrays.push((of_lane(Set::First, Buffer::Input), 1000));
            for set in [Set::First, Set::Second] {
                words.push((layout.signal(set, 0), u64::from(last) * 8 + 8));
                arrays.push((of_lane(set, Buffer::Output), 400));
                arrays.push((of_lane(set, Buffer::Scratch), 520));
            }
        }
        for (mut parts, end) in [(words, lanes[2].words_end()), (arrays, lanes[2].arrays_end())] {
            parts.sort_unstable();
            assert!(parts.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{parts:?}");
            let (start, length) = parts[parts.len() - 1];
            assert!(start + length <= end);
        }
    }

    #[test]
    fn a_layout_beyond_the_address_space_is_refused() {
        for staging_bytes in [u64::MAX, u64::MAX - LINE, u64::MAX / PARTS, 1 << 62] {
            assert!(Layout::of_lanes(staging_bytes, 1).is_none(), "{staging_bytes}");
        }
        let largest = Layout::of_lanes(1 << 60, 1).unwrap();
        assert_eq!(largest[0].arrays_end(), PARTS << 60);
        assert!(Layout::of_lanes(1 << 60, 4).is_none());
    }
}
