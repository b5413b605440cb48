//! Content of one rank's memory as fingerprints: which contributions each element contains, without the elements.
//!
//! The fingerprint of element `e` of an input is `base + slope * e`, with a random [`Line`] per rank. A reduction of any kind adds
//! fingerprints, and a copy moves them. An element of an output has the promised fingerprint if it contains each contribution once, and is then wrong
//! with a probability of about 2^-64 (Schwartz 1980, Zippel 1979: a polynomial that is not zero has few zeros). Elements that were treated alike are
//! stored as one piece, so memory and time depend on the schedule and not on the length of the arrays.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::collective::Collective;
use crate::partition::Parts;
use crate::schedule::{Buffer, Program, Span};
use crate::verify::{Contributors, promised};

/// Fingerprints of consecutive elements: that of element `e` is `base + slope * e`, modulo 2^64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Fingerprint of element 0.
    pub base: u64,
    /// Difference between two neighbours.
    pub slope: u64,
}

impl Line {
    /// Returns the line whose element `e` is element `e + distance` of this one.
    #[must_use]
    pub const fn shifted(self, distance: usize) -> Self {
        Self { base: self.base.wrapping_add(self.slope.wrapping_mul(distance as u64)), ..self }
    }

    /// Returns the line whose element `e + distance` is element `e` of this one.
    #[must_use]
    const fn moved(self, distance: usize) -> Self {
        Self { base: self.base.wrapping_sub(self.slope.wrapping_mul(distance as u64)), ..self }
    }

    /// Returns the sum of both, element by element.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { base: self.base.wrapping_add(other.base), slope: self.slope.wrapping_add(other.slope) }
    }

    /// Returns the line that gives this one when `other` is added.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self { base: self.base.wrapping_sub(other.base), slope: self.slope.wrapping_sub(other.slope) }
    }
}

/// Fingerprints of the elements of a span, as pieces in ascending order. Positions count from the beginning of the span. Elements in no piece were
/// never written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    length: usize,
    pieces: SmallVec<[(usize, usize, Line); 1]>,
}

/// Sums of the lines of the ranks below each rank, and of all: one more than there are ranks.
pub type Sums = [Line];

/// Fingerprints of the memory of one rank.
#[derive(Clone, Debug)]
pub struct Fingerprints {
    /// First element, end and line of each piece, by buffer.
    buffers: [BTreeMap<usize, (usize, Line)>; Buffer::ALL.len()],
}

impl Fingerprints {
    /// Returns the memory of a rank before a run. `line`: fingerprints of its input.
    #[must_use]
    pub fn new(program: &Program, line: Line) -> Self {
        let mut buffers: [BTreeMap<_, _>; Buffer::ALL.len()] = Default::default();
        if program.input > 0 {
            buffers[Buffer::Input as usize].insert(0, (program.input, line));
        }
        Self { buffers }
    }

    /// Returns the fingerprints of a span.
    #[must_use]
    pub fn read(&self, span: Span) -> Values {
        let pieces = &self.buffers[span.buffer as usize];
        let first = pieces.range(..=span.start).next_back().map_or(span.start, |(start, _)| *start);
        let cut = |(start, (end, line)): (&usize, &(usize, Line))| {
            let (start, end) = ((*start).max(span.start), (*end).min(span.end()));
            (start < end).then(|| (start - span.start, end - span.start, line.shifted(span.start)))
        };
        Values { length: span.length, pieces: pieces.range(first..span.end()).filter_map(cut).collect() }
    }

    /// Replaces the fingerprints of a span of the same length.
    pub fn write(&mut self, span: Span, values: &Values) {
        debug_assert_eq!(span.length, values.length, "values of another span");
        self.remove(span);
        for (start, end, line) in &values.pieces {
            self.insert(span.buffer, (span.start + start, span.start + end), line.moved(span.start));
        }
    }

    /// Adds fingerprints to those of a span of the same length. The sum with an element that was never written is like that element.
    pub fn add(&mut self, span: Span, values: &Values) {
        let sum = self.read(span).plus(values);
        self.write(span, &sum);
    }

    /// Returns the number of elements of the output whose fingerprint is not the promised one, and the first of them.
    #[must_use]
    pub fn wrong(
        &self,
        collective: Collective,
        parts: &Parts,
        rank: usize,
        elements: usize,
        sums: &Sums,
    ) -> Option<(usize, usize)> {
        let (mut wrong, mut first) = (0, None);
        for promise in promised(collective, parts, rank, elements) {
            let line = match promise.contributors {
                Contributors::All => sums[sums.len() - 1],
                Contributors::Below(end) => sums[end],
                Contributors::One(from) => sums[from + 1].minus(sums[from]),
            };
            let line = line.shifted(promise.position);
            let found = self.read(Span::new(Buffer::Output, promise.elements.clone()));
            let mut note = |start: usize, end: usize| {
                if start < end {
                    wrong += end - start;
                    first = first.or(Some(promise.elements.start + start));
                }
            };
            let mut at = 0;
            for (start, end, found) in found.pieces {
                note(at, start);
                if found != line {
                    note(start, end);
                }
                at = end;
            }
            note(at, promise.elements.len());
        }
        first.map(|first| (wrong, first))
    }

    /// Removes the pieces of a span, and cuts those at its borders.
    fn remove(&mut self, span: Span) {
        let pieces = &mut self.buffers[span.buffer as usize];
        if span.length == 0 {
            return;
        }
        if let Some((start, (end, line))) =
            pieces.range(..span.start).next_back().map(|(at, piece)| (*at, *piece))
            && end > span.start
        {
            pieces.insert(start, (span.start, line));
            if end > span.end() {
                pieces.insert(span.end(), (end, line));
            }
        }
        while let Some((start, (end, line))) =
            pieces.range(span.range()).next().map(|(start, piece)| (*start, *piece))
        {
            pieces.remove(&start);
            if end > span.end() {
                pieces.insert(span.end(), (end, line));
            }
        }
    }

    /// Inserts a piece where there is none, and joins it with neighbours on the same line.
    fn insert(&mut self, buffer: Buffer, (mut start, mut end): (usize, usize), line: Line) {
        let pieces = &mut self.buffers[buffer as usize];
        if let Some((before, (its_end, its_line))) = pieces.range(..start).next_back()
            && (*its_end, *its_line) == (start, line)
        {
            start = *before;
        }
        if let Some((its_end, its_line)) = pieces.get(&end)
            && *its_line == line
        {
            let joined = end;
            end = *its_end;
            pieces.remove(&joined);
        }
        pieces.insert(start, (end, line));
    }
}

impl Values {
    /// Returns the sum of both, element by element.
    fn plus(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.pieces.iter().copied(), other.pieces.iter().copied());
        let (mut of_left, mut of_right) = (left.next(), right.next());
        let mut pieces = SmallVec::with_capacity(self.pieces.len().max(other.pieces.len()));
        while let (Some((left_start, left_end, left_line)), Some((right_start, right_end, right_line))) =
            (of_left, of_right)
        {
            let (start, end) = (left_start.max(right_start), left_end.min(right_end));
            if start < end {
                pieces.push((start, end, left_line.plus(right_line)));
            }
            if left_end <= right_end {
                of_left = left.next();
            }
            if right_end <= left_end {
                of_right = right.next();
            }
        }
        Self { length: self.length, pieces }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::algorithm::{Algorithm, Request, build, suitable};
    use crate::schedule::{Action, Cursor, Local, Schedule};

    fn line(rank: usize) -> Line {
        let mixed = |seed: u64| {
            (rank as u64 + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(seed | 1)
        };
        Line { base: mixed(0x1234_5678_9abc_def1), slope: mixed(0x0fed_cba9_8765_4321) }
    }

    fn sums(ranks: usize) -> Vec<Line> {
        let mut sums = vec![Line::default()];
        (0..ranks).for_each(|rank| sums.push(sums[rank].plus(line(rank))));
        sums
    }

    /// Runs a schedule, with each rank as far as it gets. `sent` may change what a transfer carries.
    fn run(schedule: &Schedule, mut sent: impl FnMut(usize, &mut Values)) -> Vec<Fingerprints> {
        let programs = schedule.programs.iter().enumerate();
        let mut memories: Vec<_> =
            programs.map(|(rank, program)| Fingerprints::new(program, line(rank))).collect();
        let mut cursors = vec![Cursor::new(); schedule.participants()];
        let mut flights = vec![None; schedule.transfers.len()];
        loop {
            let mut has_moved = false;
            for (rank, program) in schedule.programs.iter().enumerate() {
                while let Some(action) = cursors[rank].action(program) {
                    let memory = &mut memories[rank];
                    match action {
                        Action::Await(id) => {
                            let Some(values) = flights[id.index()].take() else { break };
                            memory.write(schedule.transfer(id).target, &values);
                        }
                        Action::Send(id) => {
                            let mut values = memory.read(schedule.transfer(id).source);
                            sent(id.index(), &mut values);
                            flights[id.index()] = Some(values);
                        }
                        Action::Work(work) => {
                            let sources = program.sources(&work).iter().map(|source| memory.read(*source));
                            let mut sources: Vec<_> = sources.collect();
                            if let Local::Reduce { target, .. } = work {
                                sources.push(memory.read(target));
                            }
                            let sum = sources.split_first().map(|(first, rest)| {
                                rest.iter().fold(first.clone(), |sum, values| sum.plus(values))
                            });
                            memory.write(work.target(), &sum.expect("work has operands"));
                        }
                    }
                    cursors[rank].advance();
                    has_moved = true;
                }
            }
            if !has_moved {
                return memories;
            }
        }
    }

    fn schedules(ranks: usize) -> impl Iterator<Item = Schedule> {
        let all = Collective::all(ranks - 1).into_iter();
        all.flat_map(move |collective| {
            let in_switch = Algorithm::InSwitch { switches: NonZeroUsize::MIN };
            let all = suitable(collective, NonZeroUsize::new(3).unwrap()).chain([in_switch]);
            all.filter(move |algorithm| algorithm.does(collective)).map(move |algorithm| {
                build(&Request { collective, ranks, elements: 61, servers: &[], parts: &[] }, algorithm)
                    .unwrap()
            })
        })
    }

    fn wrong(schedule: &Schedule, memories: &[Fingerprints]) -> usize {
        let sums = sums(schedule.ranks());
        let of_rank = |(rank, memory): (usize, &Fingerprints)| {
            let elements = schedule.programs[rank].output;
            memory
                .wrong(schedule.collective, &schedule.parts, rank, elements, &sums)
                .map_or(0, |(wrong, _)| wrong)
        };
        memories.iter().enumerate().map(of_rank).sum()
    }

    #[test]
    fn every_schedule_keeps_its_promise_and_a_changed_transfer_breaks_it() {
        for schedule in [1, 2, 3, 5, 8].into_iter().flat_map(schedules) {
            let name =
                format!("{} by {}, {} ranks", schedule.collective, schedule.algorithm, schedule.ranks());
            assert_eq!(wrong(&schedule, &run(&schedule, |_, _| {})), 0, "{name}");
            for (at, transfer) in
                schedule.transfers.iter().enumerate().filter(|(_, transfer)| transfer.source.length > 0)
            {
                let length = transfer.source.length;
                let lost = run(&schedule, |sent, values| {
                    if sent == at {
                        values.pieces.clear();
                    }
                });
                assert!(wrong(&schedule, &lost) >= length, "{name}: nothing came by {transfer:?}");
                let twice = run(&schedule, |sent, values| {
                    if sent == at {
                        *values = values.plus(values);
                    }
                });
                assert!(wrong(&schedule, &twice) >= length, "{name}: {transfer:?} counts twice");
                let displaced = run(&schedule, |sent, values| {
                    if sent == at {
                        values.pieces.iter_mut().for_each(|piece| piece.2 = piece.2.shifted(1));
                    }
                });
                assert!(wrong(&schedule, &displaced) >= length, "{name}: {transfer:?} is displaced");
            }
        }
    }

    #[test]
    fn pieces_are_cut_added_and_joined() {
        let program = Program { input: 10, output: 10, ..Program::default() };
        let mut memory = Fingerprints::new(&program, line(1));
        let of = |buffer, range| Span::new(buffer, range);
        let whole = memory.read(of(Buffer::Input, 0..10));
        memory.write(of(Buffer::Output, 0..10), &whole);
        let part = memory.read(of(Buffer::Input, 4..6));
        memory.write(of(Buffer::Output, 4..6), &part);
        assert_eq!(memory.buffers[Buffer::Output as usize].len(), 1, "equal pieces are one");
        memory.add(of(Buffer::Output, 4..6), &part);
        assert_eq!(memory.buffers[Buffer::Output as usize].len(), 3);
        memory.write(of(Buffer::Output, 2..8), &Values { length: 6, pieces: SmallVec::new() });
        let found = memory.read(of(Buffer::Output, 1..9));
        assert_eq!(found.pieces[..], [(0, 1, line(1).shifted(1)), (7, 8, line(1).shifted(1))]);
        memory.add(of(Buffer::Output, 0..4), &memory.read(of(Buffer::Input, 0..4)));
        assert_eq!(memory.read(of(Buffer::Output, 0..4)).pieces[..], [(0, 2, line(1).plus(line(1)))]);
    }
}
