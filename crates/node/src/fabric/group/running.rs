//! One run of a schedule on a node: its puts and waits as operations of the core.
//!
//! A run never blocks. It advances after each poll of the node, in the thread that holds the lock, and registers wakers with the operations that it
//! waits for. It does not handle failures, and does not depend on the call that it belongs to.

use std::ops::Range;
use std::sync::Arc;
use std::task::Waker;

use rackloom_collectives::execute::{Arithmetic, Blocks, Run, RunState, Surroundings};
use rackloom_collectives::{
    Buffer, ElementType, ReduceError, ReduceOperation, Schedule, Span, Transfer, TransferId,
};
use rackloom_protocol::{Command, Condition, LocalRange, OperationId, Signal};

use super::super::error::{Error, Invalid};
use super::arithmetic::{arithmetic, number};
use super::data::Source;
use super::layout::{Layout, Set};
use super::membership::Membership;
use crate::copying::copy_slice;
use crate::fabric::engine::core::Core;
use crate::fabric::engine::table::Sink;
use crate::fabric::memory::region::Region;

/// Largest number of puts in flight.
const PUTS_MAX: usize = 64;
/// Shift of the run's number in a signal's value. The low half is a hash of the sender's call.
const RUN_SHIFT: u32 = 32;

/// Put that is not visible yet.
#[derive(Clone, Copy, Debug)]
struct Put {
    id: TransferId,
    /// `None` if the core's queue was full.
    operation: Option<OperationId>,
}

/// Words and bytes of a run, and the number and hash that its signals carry.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneRun {
    pub(super) layout: Layout,
    pub(super) set: Set,
    pub(super) number: u32,
    /// Hash of the call.
    pub(super) kind: u32,
}

/// Run in flight.
#[derive(Debug)]
pub(super) struct Running {
    run: Run,
    pub(super) schedule: Arc<Schedule>,
    /// Lane of the call.
    pub(super) layout: Layout,
    pub(super) set: Set,
    pub(super) arithmetic: Arithmetic,
    puts: Vec<Put>,
    wait: Option<(OperationId, TransferId)>,
    /// Bytes of an input array that are in the staging.
    staged: Range<usize>,
    /// The core has a command that no poll has handled.
    issued: bool,
}

impl Running {
    pub(super) fn new(
        membership: &Membership,
        schedule: Arc<Schedule>,
        lane: LaneRun,
        arithmetic: Arithmetic,
    ) -> Self {
        let LaneRun { layout, set, number, kind } = lane;
        let number = u64::from(number) << RUN_SHIFT | u64::from(kind);
        let run = Run::new(membership.rank, number);
        Self {
            run,
            schedule,
            layout,
            set,
            arithmetic,
            puts: Vec::new(),
            wait: None,
            staged: 0..0,
            issued: false,
        }
    }

    /// Advances the run. `None` while it waits.
    pub(super) fn advance(
        &mut self,
        core: &mut Core,
        membership: &Membership,
        blocks: &mut Blocks,
        source: Source<'_>,
    ) -> Option<Result<(), Error>> {
        loop {
            if let Err(error) = self.collect(core, membership, source) {
                return Some(Err(error));
            }
            let (schedule, mut run) = (Arc::clone(&self.schedule), self.run);
            let went =
                run.advance(&mut OnCore { core, membership, running: self, source }, &schedule, blocks);
            self.run = run;
            match went {
                RunState::Through => return Some(Ok(())),
                RunState::Failed(fault) => return Some(Err(fault.0)),
                RunState::Waiting if !self.issued => return None,
                RunState::Waiting | RunState::Again => {
                    self.issued = false;
                    core.poll();
                }
            }
        }
    }

    /// Takes puts that have ended, and submits those again that found a full queue.
    fn collect(&mut self, core: &mut Core, membership: &Membership, source: Source<'_>) -> Result<(), Error> {
        if let Some((operation, id)) = self.wait
            && let Some(ended) = core.table.take(operation)
        {
            self.wait = None;
            self.check_signal(id, ended?.value, membership)?;
            self.run.arrived();
        }
        let mut index = 0;
        while index < self.puts.len() {
            let put = self.puts[index];
            let ended = put.operation.and_then(|operation| core.table.take(operation));
            match ended {
                Some(Ok(_)) => {
                    self.puts.swap_remove(index);
                    continue;
                }
                Some(Err(error)) => return Err(error),
                None if put.operation.is_none() => self.offer(core, membership, index, source)?,
                None => {}
            }
            index += 1;
        }
        Ok(())
    }

    fn offer(
        &mut self,
        core: &mut Core,
        membership: &Membership,
        index: usize,
        source: Source<'_>,
    ) -> Result<(), Error> {
        let transfer = self.schedule.transfer(self.puts[index].id);
        membership.alive(core, transfer.to)?;
        let command = self.command(membership, transfer, source);
        match core.submit(command, Sink::Request(None)) {
            Ok(operation) => self.puts[index].operation = Some(operation),
            Err(Error::Busy { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
        self.issued = true;
        Ok(())
    }

    fn command(&self, membership: &Membership, transfer: &Transfer, source: Source<'_>) -> Command<'static> {
        let word = membership.word(transfer.to, self.layout.signal(self.set, transfer.arrival));
        let signal = Signal::set(word, self.run.number());
        let bytes = transfer.source.bytes(self.arithmetic.element_bytes());
        let (region, offset) = self.place(membership, source, transfer.source.buffer, bytes.start);
        let local = LocalRange { region: region.options().region, offset, length: bytes.len() as u64 };
        let target = match transfer.source.length {
            0 => word,
            _ => membership.array(transfer.to, self.local(membership, transfer.to, transfer.target).offset),
        };
        Command::Put { operation: OperationId(0), target, source: local, signal: Some(signal) }
    }

    /// Returns the location of a span at a member.
    fn local(&self, membership: &Membership, rank: usize, span: Span) -> LocalRange {
        let element_bytes = self.arithmetic.element_bytes();
        let bytes = span.bytes(element_bytes);
        let program = &self.schedule.programs[rank];
        let buffer = self.layout.buffer(self.set, span.buffer, program, element_bytes);
        LocalRange {
            region: membership.memory.arrays.options().region,
            offset: buffer + bytes.start as u64,
            length: bytes.len() as u64,
        }
    }

    /// Returns the region with a buffer of this member, and the position of a byte in it. An array of the caller is in no region: what is put of it
    /// is in the staging.
    fn place<'p>(
        &self,
        membership: &'p Membership,
        source: Source<'p>,
        buffer: Buffer,
        offset: usize,
    ) -> (&'p Region, u64) {
        let (region, base) = match (source, buffer) {
            (Source::Region(region, base), Buffer::Input) => (region, base),
            _ => (&membership.memory.arrays, self.buffer(membership, buffer)),
        };
        (region, base + offset as u64)
    }

    /// Returns the offset of a buffer of this member.
    pub(super) fn buffer(&self, membership: &Membership, buffer: Buffer) -> u64 {
        self.local(membership, membership.rank, Span::new(buffer, 0..0)).offset
    }

    /// Returns an error for a signal of the same run with another hash: its sender is in a different call.
    fn check_signal(&self, id: TransferId, value: u64, membership: &Membership) -> Result<(), Error> {
        let number = self.run.number();
        // A word of the barrier has one writer and only grows: a fast member may be one barrier ahead.
        let is_ahead = self.set == Set::Barrier && value >> RUN_SHIFT != number >> RUN_SHIFT;
        if value == number || is_ahead {
            return Ok(());
        }
        Err(Error::GroupBroken { peer: membership.members[self.schedule.transfer(id).from] })
    }

    /// Returns the wait of the run, and the rank of the member that sends its signal.
    pub(super) fn waits_for(&self) -> Option<(OperationId, usize)> {
        self.wait.map(|(operation, id)| (operation, self.schedule.transfer(id).from))
    }

    /// Returns `true` if the awaited signal has arrived.
    pub(super) fn has_arrived(&self, membership: &Membership) -> Result<bool, Error> {
        let Some((_, id)) = self.wait else { return Ok(false) };
        let offset = self.layout.signal(self.set, self.schedule.transfer(id).arrival);
        Ok(membership.memory.words.get::<u64>(offset)? >= self.run.number() >> RUN_SHIFT << RUN_SHIFT)
    }

    /// Registers a waker for the end of any operation that the run waits for.
    pub(super) fn register(&self, core: &mut Core, waker: &Waker) {
        let waits = self.wait.iter().map(|(operation, _)| *operation);
        for operation in self.puts.iter().filter_map(|put| put.operation).chain(waits) {
            core.table.set_waker(operation, waker);
        }
    }

    /// Returns `true` if a put found a full queue towards its peer.
    pub(super) fn must_retry(&self) -> bool {
        self.puts.iter().any(|put| put.operation.is_none())
    }

    /// Gives the run up. Puts in flight continue, and their memory is kept until they end.
    pub(super) fn abandon(&mut self, core: &mut Core) {
        for operation in self.puts.drain(..).filter_map(|put| put.operation) {
            core.table.abandon(operation);
        }
        if let Some((operation, _)) = self.wait.take() {
            core.cancel(operation);
            core.table.abandon(operation);
        }
    }
}

/// Reason why a run cannot continue.
pub(super) struct Fault(pub(super) Error);

impl From<ReduceError> for Fault {
    fn from(error: ReduceError) -> Self {
        Self(Error::Invalid(match error {
            ReduceError::Panicked => Invalid::ReductionPanicked,
            _ => Invalid::PartialElement,
        }))
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

/// Adapter of a node for a run.
struct OnCore<'r> {
    core: &'r mut Core,
    membership: &'r Membership,
    running: &'r mut Running,
    source: Source<'r>,
}

impl OnCore<'_> {
    fn place(&self, buffer: Buffer, offset: usize) -> (&Region, u64) {
        self.running.place(self.membership, self.source, buffer, offset)
    }

    /// Copies elements of the caller's array to the staging, unless they are there.
    fn stage(&mut self, span: Span) -> Result<(), Error> {
        let Source::Array(array) = self.source else { return Ok(()) };
        let bytes = span.bytes(self.running.arithmetic.element_bytes());
        let staged = self.running.staged.clone();
        if span.buffer != Buffer::Input || staged.start <= bytes.start && bytes.end <= staged.end {
            return Ok(());
        }
        let at = self.running.buffer(self.membership, Buffer::Input) + bytes.start as u64;
        self.membership.memory.arrays.write(at, &array[bytes.clone()])?;
        let meets = bytes.start <= staged.end && staged.start <= bytes.end;
        self.running.staged =
            if meets { bytes.start.min(staged.start)..bytes.end.max(staged.end) } else { bytes };
        Ok(())
    }
}

impl Surroundings for OnCore<'_> {
    type Fault = Fault;

    fn has_space(&self) -> bool {
        self.running.puts.len() < PUTS_MAX && !self.running.must_retry()
    }

    fn is_idle(&self) -> bool {
        self.running.puts.is_empty()
    }

    fn send(&mut self, id: TransferId, transfer: &Transfer, _: u64) -> Result<(), Fault> {
        self.stage(transfer.source)?;
        self.running.puts.push(Put { id, operation: None });
        let last = self.running.puts.len() - 1;
        Ok(self.running.offer(self.core, self.membership, last, self.source)?)
    }

    fn expect(&mut self, id: TransferId, transfer: &Transfer, number: u64) -> Result<Option<u64>, Fault> {
        let offset = self.running.layout.signal(self.running.set, transfer.arrival);
        let least = number >> RUN_SHIFT << RUN_SHIFT;
        let word = self.membership.memory.words.get::<u64>(offset)?;
        if word >= least {
            self.running.check_signal(id, word, self.membership)?;
            return Ok(Some(word));
        }
        self.membership.alive(self.core, transfer.from)?;
        let from = self.membership.members[transfer.from];
        let command = Command::WaitUntil {
            operation: OperationId(0),
            region: self.membership.memory.words.options().region,
            offset,
            condition: Condition::AtLeast,
            value: least,
            depends_on: Some(from),
        };
        self.running.wait = Some((self.core.submit(command, Sink::Request(None))?, id));
        self.running.issued = true;
        Ok(None)
    }

    fn read(&mut self, buffer: Buffer, offset: usize, out: &mut [u8]) -> Result<(), Fault> {
        if let (Source::Array(array), Buffer::Input) = (self.source, buffer) {
            copy_slice(&array[offset..offset + out.len()], out);
            return Ok(());
        }
        let (region, at) = self.place(buffer, offset);
        Ok(region.read(at, out)?)
    }

    fn combine(
        &mut self,
        how: Option<(ReduceOperation, ElementType)>,
        target: (Buffer, usize),
        source: (Buffer, usize),
        length: usize,
    ) -> Result<bool, Fault> {
        let how = match how.map(|(operation, element)| (arithmetic(operation), number(element))) {
            None => None,
            Some((Some(operation), Some(element))) => Some((operation, element)),
            // Only the host supports this arithmetic.
            Some(_) => return Ok(false),
        };
        let (region, at) = self.place(target.0, target.1);
        Ok(region.combine(at, self.place(source.0, source.1), length as u64, how)?)
    }

    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), Fault> {
        debug_assert!(buffer != Buffer::Input, "a schedule changes no input");
        let (region, at) = self.place(buffer, offset);
        Ok(region.write(at, bytes)?)
    }
}
