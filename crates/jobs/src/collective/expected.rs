//! Expected content of a rank's memory after a schedule has run, computed block by block.
//!
//! The computation goes backwards: it finds the action that wrote these elements last, and its sources, down to the
//! inputs. So a block needs the memory of a few blocks, while a run of the whole schedule would need the arrays of all
//! ranks. The bits are those of the schedule run forwards ([`rackloom_collectives::reference`]), because in a proved
//! schedule conflicting accesses are ordered.

use rackloom_collectives::reduce::{Accumulator, reduce};
use rackloom_collectives::{Action, Buffer, Cursor, Local, Schedule, Span};

use super::inputs::Given;

/// A schedule with its inputs and index, ready for queries.
pub(crate) struct Expected<'a> {
    schedule: &'a Schedule,
    given: &'a Given,
    index: &'a Index,
}

/// Actions of all ranks, and the position of each send. Computed once per schedule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    actions: Vec<Vec<Action>>,
    /// Number of actions that the sender has completed when it sends, by transfer.
    sent_at: Vec<usize>,
}

impl Index {
    pub(crate) fn new(schedule: &Schedule) -> Self {
        let mut index = Self { actions: Vec::new(), sent_at: vec![0; schedule.transfers.len()] };
        for program in &schedule.programs {
            let mut cursor = Cursor::default();
            let mut actions = Vec::new();
            while let Some(action) = cursor.action(program) {
                if let Action::Send(id) = action {
                    index.sent_at[id.index()] = actions.len();
                }
                actions.push(action);
                cursor.advance();
            }
            index.actions.push(actions);
        }
        index
    }
}

impl<'a> Expected<'a> {
    pub(crate) const fn new(schedule: &'a Schedule, given: &'a Given, index: &'a Index) -> Self {
        Self { schedule, given, index }
    }

    /// Computes the bytes of a span of a rank's output at the end. `out` has the length of the span.
    pub(crate) fn read(&self, rank: usize, span: Span, out: &mut [u8]) -> Result<(), String> {
        self.before(rank, self.index.actions[rank].len(), span, out)
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
        let Some((at, target)) = self.last_write(rank, end, span) else {
            return Err(format!("the schedule never writes {span} of rank {rank}"));
        };
        let (start, stop) = (span.start.max(target.start), span.end().min(target.end()));
        let (left, rest) = out.split_at_mut((start - span.start) * element_bytes);
        let (middle, right) = rest.split_at_mut((stop - start) * element_bytes);
        self.before(rank, at, Span::new(span.buffer, span.start..start), left)?;
        self.before(rank, at, Span::new(span.buffer, stop..span.end()), right)?;
        self.written(rank, at, start - target.start..stop - target.start, middle)
    }

    /// Returns the last action before `end` that writes any element of the span, and the span that it writes.
    fn last_write(&self, rank: usize, end: usize, span: Span) -> Option<(usize, Span)> {
        let targets = self.index.actions[rank][..end].iter().enumerate().rev();
        let targets = targets.filter_map(|(at, action)| match action {
            Action::Work(work) => Some((at, work.target())),
            Action::Await(id) => Some((at, self.schedule.transfer(*id).target)),
            Action::Send(_) => None,
        });
        let mut targets = targets.filter(|(_, target)| target.overlaps(span));
        targets.next()
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
        match self.index.actions[rank][at] {
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
                self.before(transfer.from, self.index.sent_at[id.index()], of(transfer.source), out)
            }
            Action::Send(_) => Err("a send writes nothing of its own rank".to_owned()),
        }
    }
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
                                expected
                                    .read(rank, Span::new(Buffer::Output, start..end), &mut block)
                                    .unwrap();
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
