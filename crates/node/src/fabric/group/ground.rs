//! Where a group's words and bytes lie: at the same places in the same region on every member.
//!
//! | part | holds |
//! |---|---|
//! | departure | one word: who broke the group, and how; set by others |
//! | headline | one word: what this member is doing; read by others |
//! | barrier | words of the barrier, which only ever grow |
//! | signals, twice | one word per arrival, set to the number of the run |
//! | staging, twice | output and working space of a run |
//! | input | what this member gives; peers never write here |
//!
//! Runs take the two sets of signals and staging in turn, so that a fast member may begin the next run while a slow one
//! still takes its result out of this one.

use rackloom_collectives::{Buffer, Program, Schedule};

/// The word that says who broke the group.
pub(super) const FAREWELL: u64 = 0;
/// The word that says what this member is doing.
pub(super) const HEADLINE: u64 = 8;
const BARRIER: u64 = 64;
/// Enough for 2^16 members.
const BARRIER_WORDS: u64 = 16;
const SIGNALS: u64 = BARRIER + BARRIER_WORDS * 8;
/// Signal words of one run.
const SIGNAL_WORDS: u64 = 4096;
/// Where the parts of a chosen length begin.
const STAGING: u64 = SIGNALS + 2 * SIGNAL_WORDS * 8;
/// How many those are: staging, twice, and input.
const PARTS: u64 = 3;
/// Parts begin at multiples of a cache line.
const LINE: u64 = 64;

/// Which of the words and bytes a run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    Barrier,
    First,
    Second,
}

impl Set {
    /// The set of a run with data.
    pub(super) const fn of_run(run: u32) -> Self {
        if run.is_multiple_of(2) { Self::First } else { Self::Second }
    }
}

/// The layout, which follows from one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ground {
    staging_bytes: u64,
}

impl Ground {
    /// `None` if no address reaches so far.
    pub(super) fn new(staging_bytes: u64) -> Option<Self> {
        let staging_bytes = staging_bytes.checked_next_multiple_of(LINE)?;
        let total = staging_bytes.checked_mul(PARTS).and_then(|bytes| bytes.checked_add(STAGING))?;
        isize::try_from(total).ok().map(|_| Self { staging_bytes })
    }

    /// Length of the region.
    pub(super) const fn total_bytes(self) -> u64 {
        self.input() + self.staging_bytes
    }

    const fn staging(self, set: Set) -> u64 {
        match set {
            Set::Barrier | Set::First => STAGING,
            Set::Second => STAGING + self.staging_bytes,
        }
    }

    const fn input(self) -> u64 {
        self.staging(Set::Second) + self.staging_bytes
    }

    /// Place of a signal word.
    pub(super) const fn signal(self, set: Set, arrival: u32) -> u64 {
        let first = match set {
            Set::Barrier => BARRIER,
            Set::First => SIGNALS,
            Set::Second => SIGNALS + SIGNAL_WORDS * 8,
        };
        first + arrival as u64 * 8
    }

    /// Place of a buffer at the member that runs this program.
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

    /// Whether every member has room for its part.
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
    fn no_two_parts_share_a_byte() {
        let ground = Ground::new(1000).unwrap();
        let program = Program { input: 250, output: 100, scratch: 130, ..Program::default() };
        let last = SIGNAL_WORDS as u32 - 1;
        let place = |set, buffer| ground.buffer(set, buffer, &program, 4);
        let mut parts = vec![
            (FAREWELL, 8),
            (HEADLINE, 8),
            (ground.signal(Set::Barrier, 0), BARRIER_WORDS * 8),
            (place(Set::First, Buffer::Input), 1000),
        ];
        for set in [Set::First, Set::Second] {
            parts.push((ground.signal(set, 0), u64::from(last) * 8 + 8));
            parts.push((place(set, Buffer::Output), 400));
            parts.push((place(set, Buffer::Scratch), 520));
        }
        parts.sort_unstable();
        assert!(parts.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{parts:?}");
        let (start, length) = parts[parts.len() - 1];
        assert!(start + length <= ground.total_bytes());
    }

    #[test]
    fn what_no_address_reaches_is_no_ground() {
        for staging_bytes in [u64::MAX, u64::MAX - LINE, u64::MAX / PARTS, 1 << 62] {
            assert!(Ground::new(staging_bytes).is_none(), "{staging_bytes}");
        }
        let largest = Ground::new(1 << 60).unwrap();
        assert!(largest.total_bytes() > PARTS << 60);
    }
}
