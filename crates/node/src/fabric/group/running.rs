//! One run of a schedule on a node: its puts and waits as operations of the core.
//!
//! A run never waits. It is asked to go on after each turn of the node, by whoever has the lock, and leaves wakers with what it
//! waits for. It does not know what it is a part of, nor what happens after a failure.

use std::sync::Arc;
use std::task::Waker;

use rackloom_collectives::execute::{Blocks, Run, Surroundings, Went};
use rackloom_collectives::{Buffer, ReduceError, Schedule, Span, Transfer, TransferId};
use rackloom_protocol::{
    Command, Condition, Instant, LocalRange, NodeId, OperationError, OperationId, RemoteAddress, Signal,
    SignalKind,
};

use super::super::engine::Core;
use super::super::error::Error;
use super::super::region::Region;
use super::super::table::Sink;
use super::Arithmetic;
use super::ground::{Ground, Set};

/// Puts under way at once.
const PUTS_MAX: usize = 64;
/// A member that has not joined yet is asked again after this time.
const RETRY_NS: u64 = 5_000_000;
/// The low half of a signal's value says what the sender is doing, the high half in which run.
const RUN_SHIFT: u32 = 32;

/// What every run of a group has in common.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) members: Vec<NodeId>,
    /// This node's place among them.
    pub(super) rank: usize,
    pub(super) region: Region,
    pub(super) ground: Ground,
}

impl Place {
    /// The same offset at another member.
    pub(super) fn address(&self, rank: usize, offset: u64) -> RemoteAddress {
        RemoteAddress { node: self.members[rank], ..self.region.address(offset) }
    }
}

/// A put that is not visible yet.
#[derive(Clone, Copy, Debug)]
struct Put {
    id: TransferId,
    /// `None`: to be given to the core, not before some time.
    operation: Option<OperationId>,
    not_before: Instant,
}

/// A run in flight.
#[derive(Debug)]
pub(super) struct Running {
    run: Run,
    pub(super) schedule: Arc<Schedule>,
    pub(super) set: Set,
    pub(super) arithmetic: Arithmetic,
    puts: Vec<Put>,
    wait: Option<(OperationId, TransferId)>,
    /// Something was given to the core that no turn has seen.
    issued: bool,
    /// Until when members may be late to join.
    pub(super) patient_until: Instant,
}

impl Running {
    pub(super) fn new(
        place: &Place,
        schedule: Arc<Schedule>,
        (set, number, kind): (Set, u32, u32),
        arithmetic: Arithmetic,
        patient_until: Instant,
    ) -> Self {
        let number = u64::from(number) << RUN_SHIFT | u64::from(kind);
        let run = Run::new(place.rank, number);
        Self { run, schedule, set, arithmetic, puts: Vec::new(), wait: None, issued: false, patient_until }
    }

    /// Go on; `None` while it waits.
    pub(super) fn advance(
        &mut self,
        core: &mut Core,
        place: &Place,
        blocks: &mut Blocks,
    ) -> Option<Result<(), Error>> {
        loop {
            if let Err(error) = self.collect(core, place) {
                return Some(Err(error));
            }
            let (schedule, mut run) = (Arc::clone(&self.schedule), self.run);
            let went = run.advance(&mut OnCore { core, place, running: self }, &schedule, blocks);
            self.run = run;
            match went {
                Went::Through => return Some(Ok(())),
                Went::Failed(fault) => return Some(Err(fault.0)),
                Went::Waiting if !self.issued => return None,
                Went::Waiting | Went::Again => {
                    self.issued = false;
                    core.turn();
                }
            }
        }
    }

    /// Take what has ended, and offer again what was not taken.
    fn collect(&mut self, core: &mut Core, place: &Place) -> Result<(), Error> {
        if let Some((operation, id)) = self.wait
            && let Some(ended) = core.table.take(operation)
        {
            self.wait = None;
            self.check_signal(id, ended?.value, place)?;
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
                Some(Err(error)) => self.put_back(core, index, error)?,
                None if put.operation.is_none() => self.offer(core, place, index)?,
                None => {}
            }
            index += 1;
        }
        Ok(())
    }

    /// A put has failed. If its target has no such region yet, it is only early.
    fn put_back(&mut self, core: &mut Core, index: usize, error: Error) -> Result<(), Error> {
        let now = core.member()?.now();
        let is_early = matches!(error, Error::Refused { reason: OperationError::NoSuchRegion, .. });
        if !is_early || now >= self.patient_until {
            return Err(error);
        }
        self.puts[index].operation = None;
        self.puts[index].not_before = now + RETRY_NS;
        Ok(())
    }

    fn offer(&mut self, core: &mut Core, place: &Place, index: usize) -> Result<(), Error> {
        let put = self.puts[index];
        if core.member()?.now() < put.not_before {
            return Ok(());
        }
        let command = self.command(place, self.schedule.transfer(put.id));
        match core.submit(command, Sink::Asker(None)) {
            Ok(operation) => self.puts[index].operation = Some(operation),
            Err(Error::Busy { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
        self.issued = true;
        Ok(())
    }

    fn command(&self, place: &Place, transfer: &Transfer) -> Command<'static> {
        let word = place.address(transfer.to, place.ground.signal(self.set, transfer.arrival));
        let signal = Signal {
            region: word.region,
            offset: word.offset,
            key: word.key,
            kind: SignalKind::Set,
            value: self.run.number(),
        };
        let source = self.local(place, transfer.from, transfer.source);
        let target = match transfer.source.length {
            0 => word,
            _ => place.address(transfer.to, self.local(place, transfer.to, transfer.target).offset),
        };
        Command::Put { operation: OperationId(0), target, source, signal: Some(signal) }
    }

    /// Where a span lies at a member.
    fn local(&self, place: &Place, rank: usize, span: Span) -> LocalRange {
        let element_bytes = self.arithmetic.element.bytes();
        let bytes = span.bytes(element_bytes);
        let program = &self.schedule.programs[rank];
        let buffer = place.ground.buffer(self.set, span.buffer, program, element_bytes);
        LocalRange {
            region: place.region.options().region,
            offset: buffer + bytes.start as u64,
            length: bytes.len() as u64,
        }
    }

    /// Where a buffer of this member lies.
    pub(super) fn buffer(&self, place: &Place, buffer: Buffer) -> u64 {
        self.local(place, place.rank, Span::new(buffer, 0..0)).offset
    }

    /// A signal of another kind in the same run: its sender does something else.
    fn check_signal(&self, id: TransferId, value: u64, place: &Place) -> Result<(), Error> {
        // Words of the barrier have one writer and only grow: a fast member may be a barrier ahead.
        if value == self.run.number() || self.set == Set::Barrier {
            return Ok(());
        }
        Err(Error::GroupBroken { peer: place.members[self.schedule.transfer(id).from] })
    }

    /// Wake this one when anything ends that the run waits for.
    pub(super) fn register(&self, core: &mut Core, waker: &Waker) {
        let waits = self.wait.iter().map(|(operation, _)| *operation);
        for operation in self.puts.iter().filter_map(|put| put.operation).chain(waits) {
            core.table.set_waker(operation, waker);
        }
    }

    /// Whether something is to be tried again that nobody will wake for.
    pub(super) fn must_ask_again(&self) -> bool {
        self.puts.iter().any(|put| put.operation.is_none())
    }

    /// Give up. Puts in flight go on by themselves, and their memory stays until they end.
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

/// Why a run cannot go on.
pub(super) struct Fault(pub(super) Error);

impl From<ReduceError> for Fault {
    fn from(_: ReduceError) -> Self {
        Self(Error::Invalid("a part of the array is no whole number of elements"))
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

/// What a node offers to a run.
struct OnCore<'r> {
    core: &'r mut Core,
    place: &'r Place,
    running: &'r mut Running,
}

impl Surroundings for OnCore<'_> {
    type Fault = Fault;

    fn has_room(&self) -> bool {
        self.running.puts.len() < PUTS_MAX && !self.running.must_ask_again()
    }

    fn is_idle(&self) -> bool {
        self.running.puts.is_empty()
    }

    fn send(&mut self, id: TransferId, _: &Transfer, _: u64) -> Result<(), Fault> {
        self.running.puts.push(Put { id, operation: None, not_before: Instant::ZERO });
        let last = self.running.puts.len() - 1;
        Ok(self.running.offer(self.core, self.place, last)?)
    }

    fn expect(&mut self, id: TransferId, transfer: &Transfer, number: u64) -> Result<Option<u64>, Fault> {
        let offset = self.place.ground.signal(self.running.set, transfer.arrival);
        let least = number >> RUN_SHIFT << RUN_SHIFT;
        let word = self.place.region.get::<u64>(offset)?;
        if word >= least {
            self.running.check_signal(id, word, self.place)?;
            return Ok(Some(word));
        }
        let from = self.place.members[transfer.from];
        let command = Command::WaitUntil {
            operation: OperationId(0),
            region: self.place.region.options().region,
            offset,
            condition: Condition::AtLeast,
            value: least,
            depends_on: Some(from),
        };
        self.running.wait = Some((self.core.submit(command, Sink::Asker(None))?, id));
        self.running.issued = true;
        Ok(None)
    }

    fn read(&mut self, buffer: Buffer, offset: usize, out: &mut [u8]) -> Result<(), Fault> {
        let at = self.running.buffer(self.place, buffer) + offset as u64;
        Ok(self.place.region.read(at, out)?)
    }

    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), Fault> {
        let at = self.running.buffer(self.place, buffer) + offset as u64;
        Ok(self.place.region.write(at, bytes)?)
    }
}
