//! Runs a schedule on plain arrays: the result that the fabric must produce, bit by bit.
//!
//! A chooser decides when transfers land, at any time between their issue and the step that awaits
//! them, and they read their source only then. A proved schedule gives the same bits for any chooser.
//!
//! One thread, no fabric; the schedule must be one that [`verify`](crate::verify::verify) accepts. Meant for expectations and tests, not for speed.

use thiserror::Error;

use crate::array::ElementType;
use crate::reduce::{Accumulator, ReduceError, ReduceOperation, reduce};
use crate::schedule::{Action, Buffer, Cursor, Local, Schedule, Span, TransferId};

/// Reason why a schedule could not be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// There is not one input per rank.
    #[error("{found} inputs; hint: the schedule takes {expected}, one per rank")]
    InputCount {
        /// Number of inputs.
        found: usize,
        /// Number of ranks.
        expected: usize,
    },
    /// An input does not have the length that the schedule requires.
    #[error("rank {rank} gives {found} bytes; hint: the schedule takes {expected}")]
    InputLength {
        /// Rank of the input.
        rank: usize,
        /// Its length in bytes.
        found: usize,
        /// Required length, in bytes.
        expected: usize,
    },
    /// Ranks wait for each other without end.
    #[error("rank {rank} waits for ever")]
    Deadlock {
        /// One of the waiting ranks.
        rank: usize,
    },
    /// A reduction failed.
    #[error(transparent)]
    Reduce(#[from] ReduceError),
}

/// Runs a schedule on one input per rank; returns one output per rank. Arrays are bytes, little endian.
///
/// # Errors
/// If inputs do not fit, or the schedule deadlocks.
pub fn run(
    schedule: &Schedule,
    operation: ReduceOperation,
    element: ElementType,
    inputs: &[Vec<u8>],
) -> Result<Vec<Vec<u8>>, RunError> {
    run_with(schedule, operation, element, inputs, &mut |_| 0)
}

/// Runs like [`run`], with a chooser: given the number of possible next events, it returns the index of the one
/// that happens (anything too large counts as the last).
///
/// # Errors
/// If inputs do not fit, or the schedule deadlocks.
pub fn run_with(
    schedule: &Schedule,
    operation: ReduceOperation,
    element: ElementType,
    inputs: &[Vec<u8>],
    choose: &mut dyn FnMut(usize) -> usize,
) -> Result<Vec<Vec<u8>>, RunError> {
    let mut run = Run::new(schedule, operation, element, inputs)?;
    loop {
        let movable = run.movable();
        let count = movable.len() + run.in_flight.len();
        if count == 0 {
            break;
        }
        let chosen = choose(count).min(count - 1);
        match movable.get(chosen) {
            Some(&rank) => run.advance(rank)?,
            None => run.land(chosen - movable.len()),
        }
    }
    run.finish()
}

struct Run<'a> {
    schedule: &'a Schedule,
    operation: ReduceOperation,
    element: ElementType,
    memory: Vec<[Vec<u8>; 3]>,
    cursors: Vec<Cursor>,
    in_flight: Vec<TransferId>,
    arrived: Vec<bool>,
}

impl<'a> Run<'a> {
    fn new(
        schedule: &'a Schedule,
        operation: ReduceOperation,
        element: ElementType,
        inputs: &[Vec<u8>],
    ) -> Result<Self, RunError> {
        let ranks = schedule.ranks();
        if inputs.len() != ranks {
            return Err(RunError::InputCount { found: inputs.len(), expected: ranks });
        }
        let mut memory = Vec::with_capacity(schedule.participants());
        // Units in switches give nothing.
        let nothing = Vec::new();
        let inputs = inputs.iter().chain(std::iter::repeat(&nothing));
        for (rank, (program, input)) in schedule.programs.iter().zip(inputs).enumerate() {
            let expected = program.input * element.bytes();
            if input.len() != expected {
                return Err(RunError::InputLength { rank, found: input.len(), expected });
            }
            let zeroes = |elements: usize| vec![0; elements * element.bytes()];
            memory.push([input.clone(), zeroes(program.output), zeroes(program.scratch)]);
        }
        Ok(Self {
            schedule,
            operation,
            element,
            memory,
            cursors: vec![Cursor::default(); schedule.participants()],
            in_flight: Vec::new(),
            arrived: vec![false; schedule.transfers.len()],
        })
    }

    /// Returns the ranks whose next action can be done now.
    fn movable(&mut self) -> Vec<usize> {
        let programs = &self.schedule.programs;
        let arrived = &self.arrived;
        let can = |cursor: &mut Cursor, rank: usize| match cursor.action(&programs[rank]) {
            Some(Action::Await(id)) => arrived[id.index()],
            action => action.is_some(),
        };
        let cursors = self.cursors.iter_mut().enumerate();
        cursors.filter_map(|(rank, cursor)| can(cursor, rank).then_some(rank)).collect()
    }

    fn advance(&mut self, rank: usize) -> Result<(), RunError> {
        match self.cursors[rank].action(&self.schedule.programs[rank]) {
            Some(Action::Work(work)) => self.work(rank, work)?,
            Some(Action::Send(id)) => self.in_flight.push(id),
            Some(Action::Await(_)) | None => {}
        }
        self.cursors[rank].advance();
        Ok(())
    }

    fn land(&mut self, index: usize) {
        let id = self.in_flight.swap_remove(index);
        let transfer = self.schedule.transfer(id);
        let bytes = self.at(transfer.from, transfer.source).to_vec();
        self.at(transfer.to, transfer.target).copy_from_slice(&bytes);
        self.arrived[id.index()] = true;
    }

    fn work(&mut self, rank: usize, work: Local) -> Result<(), RunError> {
        let (operation, element) = (self.operation, self.element);
        match work {
            Local::Copy { source, target } => {
                let source = self.at(rank, source).to_vec();
                self.at(rank, target).copy_from_slice(&source);
            }
            Local::Reduce { source, target } => {
                let source = self.at(rank, source).to_vec();
                reduce(operation, element, self.at(rank, target), &source)?;
            }
            Local::Fold { target, .. } => {
                let mut accumulator = Accumulator::new(operation, element);
                for &source in self.schedule.programs[rank].sources(&work) {
                    accumulator.take(self.at(rank, source))?;
                }
                accumulator.finish(self.at(rank, target))?;
            }
        }
        Ok(())
    }

    fn at(&mut self, rank: usize, span: Span) -> &mut [u8] {
        let buffer = match span.buffer {
            Buffer::Input => 0,
            Buffer::Output => 1,
            Buffer::Scratch => 2,
        };
        &mut self.memory[rank][buffer][span.bytes(self.element.bytes())]
    }

    fn finish(mut self) -> Result<Vec<Vec<u8>>, RunError> {
        for (rank, cursor) in self.cursors.iter_mut().enumerate() {
            if cursor.action(&self.schedule.programs[rank]).is_some() {
                return Err(RunError::Deadlock { rank });
            }
        }
        self.memory.truncate(self.schedule.ranks());
        Ok(self.memory.into_iter().map(|[_, output, _]| output).collect())
    }
}
