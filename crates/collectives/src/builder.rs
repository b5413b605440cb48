//! Builder of schedules. It assigns transfer numbers, arrival indices and scratch slots, so that an algorithm cannot get them wrong.
//!
//! An algorithm begins a step of a rank, then adds the waits, the local work and the sends of that step. Transfers without
//! elements are omitted on both sides, because both sides derive their length. A barrier's transfers are signals and are kept.
//! This file contains no algorithm.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::algorithm::{Algorithm, Request};
use crate::collective::Collective;
use crate::partition::Parts;
use crate::schedule::{Buffer, Local, Operands, Program, Schedule, Span, Step, Transfer, TransferId};

/// A transfer, or `None` if it was omitted because it has no elements.
pub(crate) type Sent = Option<TransferId>;

/// A schedule under construction.
pub(crate) struct Builder {
    pub(crate) collective: Collective,
    pub(crate) ranks: usize,
    pub(crate) elements: usize,
    parts: Parts,
    transfers: Vec<Transfer>,
    programs: Vec<Program>,
    /// Numbers of transfers from each rank, by receiver.
    pair_counts: Vec<BTreeMap<usize, u32>>,
}

impl Builder {
    pub(crate) fn new(request: &Request<'_>) -> Self {
        let &Request { collective, ranks, elements, parts: lengths, .. } = request;
        let parts = match lengths {
            [] => Parts::equal(ranks, elements),
            lengths if collective == Collective::AllToAll => Parts::blocks(ranks, lengths),
            lengths => Parts::listed(lengths),
        };
        let program = |rank| Program {
            input: collective.input_of(rank, &parts),
            output: collective.output_of(rank, &parts),
            ..Program::default()
        };
        Self {
            collective,
            ranks,
            elements,
            transfers: Vec::new(),
            programs: (0..ranks).map(program).collect(),
            parts,
            pair_counts: vec![BTreeMap::new(); ranks],
        }
    }

    /// Adds units in switches behind the ranks. They have neither input nor output.
    pub(crate) fn add_units(&mut self, units: usize) {
        let participants = self.programs.len() + units;
        self.programs.resize(participants, Program::default());
        self.pair_counts.resize(participants, BTreeMap::new());
    }

    /// Returns the units, as positions among the programs.
    pub(crate) const fn units(&self) -> Range<usize> {
        self.ranks..self.programs.len()
    }

    /// Returns the part of a rank, as positions in the whole array.
    pub(crate) fn part(&self, rank: usize) -> Range<usize> {
        self.parts.part(rank)
    }

    /// Returns the parts of all ranks, or the blocks of an all-to-all.
    pub(crate) const fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Begins a step of a rank. Later calls for that rank add to this step.
    pub(crate) fn step(&mut self, rank: usize, round: usize) {
        self.programs[rank].steps.push(Step { round: round as u32, ..Step::default() });
    }

    /// Makes the rank's current step wait for this transfer.
    pub(crate) fn wait(&mut self, rank: usize, transfer: Sent) {
        self.current(rank).waits.extend(transfer);
    }

    /// Adds a copy of the source into the target.
    pub(crate) fn copy(&mut self, rank: usize, source: Span, target: Span) {
        assert_eq!(source.length, target.length, "a copy has one length");
        if source.length > 0 {
            self.current(rank).work.push(Local::Copy { source, target });
        }
    }

    /// Adds a reduction: the target becomes target *operation* source.
    pub(crate) fn reduce(&mut self, rank: usize, source: Span, target: Span) {
        assert_eq!(source.length, target.length, "a reduction has one length");
        if source.length > 0 {
            self.current(rank).work.push(Local::Reduce { source, target });
        }
    }

    /// Adds a fold: the target becomes the reduction of the operands, in their order. A single operand is copied bit by bit.
    pub(crate) fn fold(&mut self, rank: usize, sources: &[Span], target: Span) {
        assert!(!sources.is_empty() || target.length == 0, "a fold has operands");
        debug_assert!(sources.iter().all(|source| source.length == target.length), "a fold has one length");
        if let [source] = sources {
            self.copy(rank, *source, target);
        } else if target.length > 0 {
            let operands = &mut self.programs[rank].operands;
            let (start, count) = (operands.len() as u32, sources.len() as u32);
            operands.extend_from_slice(sources);
            self.current(rank).work.push(Local::Fold { operands: Operands { start, count }, target });
        }
    }

    /// Adds a transfer of elements, unless there are none.
    pub(crate) fn send(&mut self, from: usize, to: usize, source: Span, target: Span) -> Sent {
        (source.length > 0).then(|| self.transfer(from, to, source, target))
    }

    /// Adds a signal without data.
    pub(crate) fn signal(&mut self, from: usize, to: usize) -> Sent {
        let nothing = Span::new(Buffer::Input, 0..0);
        Some(self.transfer(from, to, nothing, nothing))
    }

    /// Allocates a new slot of a rank's scratch buffer.
    pub(crate) fn slot(&mut self, rank: usize, length: usize) -> Span {
        let scratch = &mut self.programs[rank].scratch;
        let start = *scratch;
        *scratch += length;
        Span::new(Buffer::Scratch, start..*scratch)
    }

    /// Returns the schedule, without empty steps.
    pub(crate) fn finish(mut self, algorithm: Algorithm) -> Schedule {
        for program in &mut self.programs {
            program
                .steps
                .retain(|step| !(step.waits.is_empty() && step.work.is_empty() && step.sends.is_empty()));
        }
        let schedule = Schedule {
            collective: self.collective,
            algorithm,
            elements: self.elements,
            parts: self.parts,
            transfers: self.transfers,
            programs: self.programs,
        };
        debug_assert!(spans_are_inside(&schedule), "{algorithm:?} uses elements outside a buffer");
        schedule
    }

    fn transfer(&mut self, from: usize, to: usize, source: Span, target: Span) -> TransferId {
        assert_ne!(from, to, "no rank sends to itself");
        assert_eq!(source.length, target.length, "a transfer has one length");
        let id = TransferId(self.transfers.len() as u32);
        let number = next(self.pair_counts[from].entry(to).or_default());
        let arrival = next(&mut self.programs[to].arrivals);
        self.transfers.push(Transfer { from, to, number, arrival, source, target });
        self.current(from).sends.push(id);
        id
    }

    fn current(&mut self, rank: usize) -> &mut Step {
        self.programs[rank].steps.last_mut().expect("an algorithm opens a step before it fills one")
    }
}

/// Returns true if every transfer and all local work stay inside the buffers. Tests prove the other properties, by
/// [`verify`](crate::verify::verify).
fn spans_are_inside(schedule: &Schedule) -> bool {
    let is_inside = |program: &Program, span: Span| span.end() <= program.elements(span.buffer);
    let transfers = schedule.transfers.iter().all(|transfer| {
        is_inside(&schedule.programs[transfer.from], transfer.source)
            && is_inside(&schedule.programs[transfer.to], transfer.target)
    });
    let does = |program: &Program, work: &Local| {
        is_inside(program, work.target())
            && program.sources(work).iter().all(|span| is_inside(program, *span))
    };
    let works =
        |program: &Program| program.steps.iter().flat_map(|step| &step.work).all(|work| does(program, work));
    transfers && schedule.programs.iter().all(works)
}

/// Returns a span of the input buffer.
pub(crate) const fn input(range: Range<usize>) -> Span {
    Span::new(Buffer::Input, range)
}

/// Returns a span of the output buffer.
pub(crate) const fn output(range: Range<usize>) -> Span {
    Span::new(Buffer::Output, range)
}

fn next(count: &mut u32) -> u32 {
    let value = *count;
    *count += 1;
    value
}
