//! One run of a schedule on one rank of a job: the run of the `rackloom_collectives` crate, with the job's regions and
//! requests.
//!
//! A put becomes a request of the phase. An expected signal becomes an urgent wait on its word. The run's time is kept
//! here, because a schedule has no clock.

use rackloom_collectives::execute::{self, Surroundings};
use rackloom_collectives::{
    Buffer, ElementType, ReduceError, ReduceOperation, Schedule, Span, Transfer, TransferId,
};
use rackloom_protocol::{
    Arithmetic, Combine, Condition, Instant, LocalRange, NodeId, Number, Signal, SignalKind,
};

use super::memory_plan::SIGNALS;
use super::prepared::Prepared;
use super::symbols::Symbols;
use super::work::{Blocks, combine, read, region_of, write};
use crate::ranks::NOTHING;
use crate::ranks::ensemble::Poll;
use crate::ranks::request::{Body, Request, Tag};

/// Result of one poll of a run.
pub(crate) type RunState = execute::RunState<Fault>;

/// Text of the reason for which a run cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault(pub(crate) String);

impl From<ReduceError> for Fault {
    fn from(error: ReduceError) -> Self {
        Self(error.to_string())
    }
}

impl From<String> for Fault {
    fn from(words: String) -> Self {
        Self(words)
    }
}

/// One rank's position in one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) begun: Instant,
    inner: execute::Run,
}

impl Run {
    /// Returns a run that begins at `begun`. `number` counts the runs of the job from 1.
    pub(crate) const fn new(rank: usize, number: u64, begun: Instant) -> Self {
        Self { begun, inner: execute::Run::new(rank, number) }
    }

    /// Returns the index of the rank's current step.
    pub(crate) fn step(&self) -> usize {
        self.inner.step()
    }

    /// Returns the rank whose signal is waited for.
    pub(crate) fn waits_for(&self, schedule: &Schedule) -> Option<usize> {
        self.inner.waits_for(schedule)
    }

    /// Returns the transfer whose signal is waited for.
    pub(super) fn awaited(&self, schedule: &Schedule) -> Option<TransferId> {
        self.inner.awaited(schedule)
    }

    /// Records that a wait completed with the word's value.
    pub(crate) fn arrived(&mut self, value: u64) -> Result<(), String> {
        if value != self.inner.number() {
            return Err(format!("a signal of run {value} came in run {}", self.inner.number()));
        }
        self.inner.arrived();
        Ok(())
    }

    pub(crate) fn advance(
        &mut self,
        poll: &mut Poll<'_>,
        schedule: &Schedule,
        element: ElementType,
        blocks: &mut Blocks,
    ) -> RunState {
        let mut around = OnPoll { poll, element, symbols: None };
        self.inner.advance(&mut around, schedule, blocks)
    }

    /// Advances a run on memory that keeps no payload.
    pub(super) fn advance_with(
        &mut self,
        symbols: &mut Symbols,
        poll: &mut Poll<'_>,
        prepared: &Prepared,
        element: ElementType,
        blocks: &mut Blocks,
    ) -> RunState {
        let mut around = OnPoll { poll, element, symbols: Some((symbols, prepared)) };
        self.inner.advance(&mut around, &prepared.schedule, blocks)
    }
}

/// Resources that a poll of the job gives to a run.
struct OnPoll<'t, 'a> {
    poll: &'t mut Poll<'a>,
    element: ElementType,
    /// Fingerprints, if memory keeps no payload.
    symbols: Option<(&'t mut Symbols, &'t Prepared)>,
}

impl Surroundings for OnPoll<'_, '_> {
    type Fault = Fault;

    fn has_space(&self) -> bool {
        self.poll.issuer.has_space()
    }

    fn is_idle(&self) -> bool {
        self.poll.issuer.is_idle() && !self.poll.memory.is_busy()
    }

    fn send(&mut self, id: TransferId, transfer: &Transfer, number: u64) -> Result<(), Fault> {
        if let Some((symbols, prepared)) = &self.symbols {
            symbols.send(prepared, id, transfer);
        }
        let owner = transfer.to as u16;
        let job_group = self.poll.job_group;
        let word = job_group.address(owner, SIGNALS, signal_offset(transfer.arrival));
        let signal = Signal {
            region: word.region,
            offset: word.offset,
            key: word.key,
            kind: SignalKind::Set,
            value: number,
        };
        let (target, source) = if transfer.source.length == 0 {
            (word, NOTHING)
        } else {
            let range = |span: Span| (region_of(span.buffer), span.bytes(self.element.bytes()));
            let (region, bytes) = range(transfer.source);
            let source = LocalRange { region, offset: bytes.start as u64, length: bytes.len() as u64 };
            let (region, bytes) = range(transfer.target);
            (job_group.address(owner, region, bytes.start as u64), source)
        };
        let body = Body::Put { target, source, signal: Some(signal) };
        self.poll.issuer.submit(Request::new(tag(transfer.to, id), body));
        Ok(())
    }

    fn expect(&mut self, id: TransferId, transfer: &Transfer, number: u64) -> Result<Option<u64>, Fault> {
        let body = Body::WaitUntil {
            region: SIGNALS,
            offset: signal_offset(transfer.arrival),
            condition: Condition::AtLeast,
            value: number,
            depends_on: Some(NodeId(transfer.from as u16)),
        };
        self.poll.issuer.submit_urgent(Request::new(tag(transfer.from, id), body));
        Ok(None)
    }

    fn read(&mut self, buffer: Buffer, offset: usize, out: &mut [u8]) -> Result<(), Fault> {
        Ok(read(self.poll.memory, region_of(buffer), offset, out)?)
    }

    fn combine(
        &mut self,
        how: Option<(ReduceOperation, ElementType)>,
        target: (Buffer, usize),
        source: (Buffer, usize),
        length: usize,
    ) -> Result<bool, Fault> {
        if let Some((symbols, _)) = &mut self.symbols {
            let elements = |(buffer, offset)| (buffer, offset / self.element.bytes());
            symbols.combine(how.is_none(), elements(target), elements(source), length / self.element.bytes());
            return Ok(true);
        }
        let how = match how.map(|(operation, element)| (arithmetic(operation), number(element))) {
            None => None,
            Some((Some(operation), Some(element))) => Some((operation, element)),
            // Only the host can do this reduction.
            Some(_) => return Ok(false),
        };
        let range = |(buffer, offset): (Buffer, usize)| (region_of(buffer), offset as u64);
        let (target, source, length) = (range(target), range(source), length as u64);
        combine(self.poll.memory, &Combine { target, source, length, how }).map_err(Fault)
    }

    fn note_work(&mut self, moved: usize, reduced: usize) {
        self.poll.memory.note_work(moved as u64, reduced as u64);
    }

    fn folds_exactly(&self) -> bool {
        self.symbols.is_some()
    }

    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), Fault> {
        Ok(write(self.poll.memory, region_of(buffer), offset, bytes)?)
    }
}

/// Returns the arithmetic and the number type for memory that reduces by itself, if it supports both.
pub(super) fn known(operation: ReduceOperation, element: ElementType) -> Option<(Arithmetic, Number)> {
    Some((arithmetic(operation)?, number(element)?))
}

fn arithmetic(operation: ReduceOperation) -> Option<Arithmetic> {
    match operation {
        ReduceOperation::Sum => Some(Arithmetic::Sum),
        ReduceOperation::Min => Some(Arithmetic::Min),
        ReduceOperation::Max => Some(Arithmetic::Max),
        ReduceOperation::Product => Some(Arithmetic::Product),
        _ => None,
    }
}

fn number(element: ElementType) -> Option<Number> {
    match element {
        ElementType::F32 => Some(Number::F32),
        ElementType::F64 => Some(Number::F64),
        ElementType::F16 => Some(Number::F16),
        ElementType::Bf16 => Some(Number::Bf16),
        ElementType::I32 => Some(Number::I32),
        ElementType::I64 => Some(Number::I64),
        _ => None,
    }
}

/// Returns the tag of a transfer: its peer and its number.
fn tag(peer: usize, id: TransferId) -> Tag {
    Tag::Phase { peer: peer as u16, item: id.0 }
}

fn signal_offset(arrival: u32) -> u64 {
    u64::from(arrival) * 8
}
