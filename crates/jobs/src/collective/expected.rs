//! Expected content of a rank's memory after a schedule has run, computed block by block.
//!
//! The computation goes backwards: it finds the action that wrote these elements last, and its sources, down to the
//! inputs. So a block needs the memory of a few blocks, while a run of the whole schedule would need the arrays of all
//! ranks. Copies and transfers are followed to the origin of the values, so ranks with equal results compute them once.
//! The bits are those of the schedule run forwards ([`rackloom_collectives::reference`]), because in a proved
//! schedule conflicting accesses are ordered.

use std::collections::HashMap;
use std::sync::Mutex;

use rackloom_collectives::reduce::{Accumulator, reduce};
use rackloom_collectives::{Action, Buffer, Local, Schedule, Span, TransferId};

use super::inputs::Given;
use super::locked;

/// Number of buckets into which the elements of a buffer are divided. Each lists the writes that touch it.
const BUCKETS: usize = 256;

/// A schedule with its inputs and index, ready for queries.
pub(crate) struct Expected<'a> {
    schedule: &'a Schedule,
    given: &'a Given,
    index: &'a Index,
}

/// Elements at the time and place at which they got their values. Equal origins have equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    rank: usize,
    /// Number of actions that the rank has completed.
    done: usize,
    span: Span,
}

impl Origin {
    /// Returns the number of elements.
    pub(crate) const fn length(&self) -> usize {
        self.span.length
    }
}

/// Positions of the writes and sends of all ranks. Computed once per schedule.
#[derive(Debug, Default)]
pub(crate) struct Index {
    programs: Vec<ProgramIndex>,
    /// Number of actions that the sender has completed when it sends, by transfer.
    sent_at: Vec<u32>,
    /// Origins of parts of transfers that have been traced: transfer, first element, and number of elements.
    traced: Mutex<HashMap<(TransferId, usize, usize), Origin>>,
}

/// Actions of one rank.
#[derive(Clone, Debug, Default)]
struct ProgramIndex {
    /// Number of actions before each step, and in the end of all.
    before: Vec<u32>,
    writes: [Writes; Buffer::ALL.len()],
}

/// Actions that write a buffer.
#[derive(Clone, Debug, Default)]
struct Writes {
    /// Number of elements of a bucket.
    grain: usize,
    /// Numbers of the actions that write elements of each bucket, in ascending order.
    buckets: Vec<Vec<u32>>,
}

impl Index {
    pub(crate) fn new(schedule: &Schedule) -> Self {
        let mut index = Self { sent_at: vec![0; schedule.transfers.len()], ..Self::default() };
        for program in &schedule.programs {
            let mut of_program = ProgramIndex::default();
            for (writes, buffer) in of_program.writes.iter_mut().zip(Buffer::ALL) {
                let elements = program.elements(buffer);
                writes.grain = elements.div_ceil(BUCKETS).max(1);
                writes.buckets = vec![Vec::new(); elements.div_ceil(writes.grain)];
            }
            let mut at = 0;
            for step in &program.steps {
                of_program.before.push(at);
                for action in step.actions() {
                    if let Action::Send(id) = action {
                        index.sent_at[id.index()] = at;
                    }
                    if let Some(target) = target(schedule, action) {
                        of_program.writes[target.buffer as usize].push(target, at);
                    }
                    at += 1;
                }
            }
            of_program.before.push(at);
            index.programs.push(of_program);
        }
        index
    }
}

impl Writes {
    fn push(&mut self, target: Span, at: u32) {
        for bucket in self.touched(target) {
            self.buckets[bucket].push(at);
        }
    }

    /// Returns the buckets that contain elements of the span.
    fn touched(&self, span: Span) -> std::ops::Range<usize> {
        let end = if span.length == 0 { span.start / self.grain } else { (span.end() - 1) / self.grain + 1 };
        span.start / self.grain..end.min(self.buckets.len())
    }
}

/// Returns the elements that an action writes in memory of its rank.
fn target(schedule: &Schedule, action: Action) -> Option<Span> {
    match action {
        Action::Work(work) => Some(work.target()),
        Action::Await(id) => Some(schedule.transfer(id).target),
        Action::Send(_) => None,
    }
}

impl<'a> Expected<'a> {
    pub(crate) const fn new(schedule: &'a Schedule, given: &'a Given, index: &'a Index) -> Self {
        Self { schedule, given, index }
    }

    /// Returns the origin of the first elements of a span of a rank's output at the end, and of as many as have the same one. The span is not empty.
    pub(crate) fn origin(&self, rank: usize, span: Span) -> Result<Origin, String> {
        let mut origin = Origin { rank, done: self.actions(rank), span };
        // Transfers on the way, with the first element and the number of elements before it.
        let mut passed = Vec::new();
        while origin.span.buffer != Buffer::Input {
            let (at, target) = self.last_write(&origin).ok_or_else(|| never_written(&origin))?;
            let first = origin.span.start;
            if target.start > first {
                origin.span.length = target.start - first;
                origin.done = at;
                continue;
            }
            origin.span.length = origin.span.end().min(target.end()) - first;
            let of = |source: Span| Span {
                buffer: source.buffer,
                start: source.start + first - target.start,
                length: origin.span.length,
            };
            match self.action(origin.rank, at) {
                Action::Work(Local::Copy { source, .. }) => (origin.done, origin.span) = (at, of(source)),
                Action::Await(id) => {
                    let transfer = self.schedule.transfer(id);
                    let key = (id, first - target.start, origin.span.length);
                    if let Some(known) = locked(&self.index.traced).get(&key) {
                        origin = *known;
                        break;
                    }
                    passed.push(key);
                    let done = self.index.sent_at[id.index()] as usize;
                    origin = Origin { rank: transfer.from, done, span: of(transfer.source) };
                }
                Action::Work(_) | Action::Send(_) => {
                    origin.done = at + 1;
                    break;
                }
            }
        }
        if origin.span.buffer == Buffer::Input {
            // The input does not change.
            origin.done = 0;
        }
        let length = origin.span.length;
        let passed = passed.into_iter().map(|(id, first, _)| ((id, first, length), origin));
        locked(&self.index.traced).extend(passed);
        Ok(origin)
    }

    /// Computes the bytes of an origin. `out` has their length.
    pub(crate) fn read(&self, origin: &Origin, out: &mut [u8]) -> Result<(), String> {
        self.before(origin.rank, origin.done, origin.span, out)
    }

    /// Computes the bytes of a span before a rank's action with index `end`.
    fn before(&self, rank: usize, end: usize, span: Span, out: &mut [u8]) -> Result<(), String> {
        let element_bytes = self.given.element.bytes();
        if span.length == 0 {
            return Ok(());
        }
        if span.buffer == Buffer::Input {
            return self.given.read(rank, (span.start * element_bytes) as u64, out);
        }
        let state = Origin { rank, done: end, span };
        let (at, target) = self.last_write(&state).ok_or_else(|| never_written(&state))?;
        let (start, stop) = (span.start.max(target.start), span.end().min(target.end()));
        let (left, rest) = out.split_at_mut((start - span.start) * element_bytes);
        let (middle, right) = rest.split_at_mut((stop - start) * element_bytes);
        self.before(rank, at, Span::new(span.buffer, span.start..start), left)?;
        self.before(rank, at, Span::new(span.buffer, stop..span.end()), right)?;
        self.written(rank, at, start - target.start..stop - target.start, middle)
    }

    /// Returns the last action before a state that writes any of its elements, and the span that it writes.
    fn last_write(&self, state: &Origin) -> Option<(usize, Span)> {
        let writes = &self.index.programs[state.rank].writes[state.span.buffer as usize];
        let in_bucket = |bucket: usize| {
            let ats = &writes.buckets[bucket];
            let before = ats.partition_point(|at| (*at as usize) < state.done);
            ats[..before].iter().rev().find_map(|at| {
                let at = *at as usize;
                let target = target(self.schedule, self.action(state.rank, at))?;
                target.overlaps(state.span).then_some((at, target))
            })
        };
        writes.touched(state.span).filter_map(in_bucket).max_by_key(|(at, _)| *at)
    }

    /// Returns the number of actions of a rank.
    fn actions(&self, rank: usize) -> usize {
        self.index.programs[rank].before.last().map_or(0, |count| *count as usize)
    }

    fn action(&self, rank: usize, at: usize) -> Action {
        let before = &self.index.programs[rank].before;
        // Empty steps have no action, so the last step that begins at or before the action is its step.
        let step = before.partition_point(|begin| *begin as usize <= at) - 1;
        let number = at - before[step] as usize;
        self.schedule.programs[rank].steps[step]
            .action(number)
            .expect("the index has only actions of the program")
    }

    /// Computes the bytes that an action writes into a part of its target, counted from the target's beginning.
    fn written(
        &self,
        rank: usize,
        at: usize,
        part: std::ops::Range<usize>,
        out: &mut [u8],
    ) -> Result<(), String> {
        let of = |span: Span| Span::new(span.buffer, span.start + part.start..span.start + part.end);
        match self.action(rank, at) {
            Action::Work(Local::Copy { source, .. }) => self.before(rank, at, of(source), out),
            Action::Work(Local::Reduce { source, target }) => {
                self.before(rank, at, of(target), out)?;
                let mut operand = vec![0; out.len()];
                self.before(rank, at, of(source), &mut operand)?;
                reduce(self.given.operation, self.given.element, out, &operand)
                    .map_err(|error| error.to_string())
            }
            Action::Work(work @ Local::Fold { .. }) => {
                let mut accumulator = Accumulator::new(self.given.operation, self.given.element);
                let mut operand = vec![0; out.len()];
                for source in self.schedule.programs[rank].sources(&work) {
                    self.before(rank, at, of(*source), &mut operand)?;
                    accumulator.take(&operand).map_err(|error| error.to_string())?;
                }
                accumulator.finish(out).map_err(|error| error.to_string())
            }
            Action::Await(id) => {
                let transfer = self.schedule.transfer(id);
                self.before(transfer.from, self.index.sent_at[id.index()] as usize, of(transfer.source), out)
            }
            Action::Send(_) => Err("a send writes nothing of its own rank".to_owned()),
        }
    }
}

fn never_written(state: &Origin) -> String {
    format!("the schedule never writes {} of rank {}", state.span, state.rank)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use rackloom_collectives::algorithm::suitable;
    use rackloom_collectives::{Collective, ElementType, ReduceOperation, Request, build, reference};

    use super::*;
    use crate::collective::inputs::Inputs;

    fn inputs(schedule: &Schedule, given: &Given) -> Vec<Vec<u8>> {
        let programs = schedule.programs.iter().enumerate();
        programs
            .map(|(rank, program)| {
                let mut bytes = vec![0; program.input * given.element.bytes()];
                given.read(rank, 0, &mut bytes).unwrap();
                bytes
            })
            .collect()
    }

    #[test]
    fn backwards_block_by_block_it_gives_the_result_of_running_forwards() {
        let element = ElementType::F32;
        for operation in [ReduceOperation::Sum, ReduceOperation::Product] {
            let given = Given { inputs: Inputs::Pattern, members: Vec::new(), seed: 1, element, operation };
            for ranks in [1, 2, 3, 5, 8] {
                for collective in Collective::all(ranks - 1) {
                    for algorithm in suitable(collective, NonZeroUsize::new(3).unwrap()) {
                        let request = Request { collective, ranks, elements: 61, servers: &[], parts: &[] };
                        let schedule = build(&request, algorithm).unwrap();
                        let outputs =
                            reference::run(&schedule, operation, element, &inputs(&schedule, &given))
                                .unwrap();
                        let index = Index::new(&schedule);
                        let expected = Expected::new(&schedule, &given, &index);
                        for (rank, output) in outputs.iter().enumerate() {
                            let elements = output.len() / 4;
                            for start in (0..elements).step_by(7) {
                                let end = elements.min(start + 7);
                                let mut block = vec![0; (end - start) * 4];
                                let mut at = start;
                                while at < end {
                                    let span = Span::new(Buffer::Output, at..end);
                                    let origin = expected.origin(rank, span).unwrap();
                                    assert!((1..=span.length).contains(&origin.length()));
                                    let bytes = (at - start) * 4..(at - start + origin.length()) * 4;
                                    expected.read(&origin, &mut block[bytes]).unwrap();
                                    at += origin.length();
                                }
                                assert_eq!(
                                    block,
                                    output[start * 4..end * 4],
                                    "{collective} by {algorithm}, {ranks} ranks, rank {rank}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}
