//! One run of a schedule on a node: its puts and waits as operations of the core.
//!
//! A run never waits. It is asked to go on after each turn of the node, by whoever has the lock, and leaves wakers with what it
//! waits for. It does not know what it is a part of, nor what happens after a failure.

use std::sync::Arc;
use std::task::Waker;

use rackloom_collectives::execute::{Blocks, Run, Surroundings, Went};
use rackloom_collectives::{
    Buffer, ElementType, ReduceError, ReduceOperation, Schedule, Span, Transfer, TransferId,
};
use rackloom_protocol::{Command, Condition, LocalRange, NodeId, OperationId, RemoteAddress, Signal};

use super::super::core::Core;
use super::super::error::Error;
use super::super::region::Region;
use super::super::table::Sink;
use super::Arithmetic;
use super::combined::{arithmetic, number};
use super::ground::{Ground, Set};

/// Puts under way at once.
const PUTS_MAX: usize = 64;
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
    /// A number for what members agree on when they join; part of all that they compare later.
    pub(super) terms: u32,
    /// How often each member had died when this one joined.
    pub(super) deaths: Vec<u32>,
}

impl Place {
    /// The same offset at another member.
    pub(super) fn address(&self, rank: usize, offset: u64) -> RemoteAddress {
        RemoteAddress { node: self.members[rank], ..self.region.address(offset) }
    }

    /// Whether a member has died since this one joined, perhaps to come back with nothing in its memory.
    pub(super) fn has_died(&self, core: &Core, rank: usize) -> bool {
        core.table.deaths.of(self.members[rank]) != self.deaths[rank]
    }

    fn alive(&self, core: &Core, rank: usize) -> Result<(), Error> {
        if self.has_died(core, rank) {
            return Err(Error::PeerLost { peer: self.members[rank], maybe_done: true });
        }
        Ok(())
    }
}

/// A put that is not visible yet.
#[derive(Clone, Copy, Debug)]
struct Put {
    id: TransferId,
    /// `None`: the core had no room for it.
    operation: Option<OperationId>,
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
}

impl Running {
    pub(super) fn new(
        place: &Place,
        schedule: Arc<Schedule>,
        (set, number, kind): (Set, u32, u32),
        arithmetic: Arithmetic,
    ) -> Self {
        let number = u64::from(number) << RUN_SHIFT | u64::from(kind);
        let run = Run::new(place.rank, number);
        Self { run, schedule, set, arithmetic, puts: Vec::new(), wait: None, issued: false }
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
                Some(Err(error)) => return Err(error),
                None if put.operation.is_none() => self.offer(core, place, index)?,
                None => {}
            }
            index += 1;
        }
        Ok(())
    }

    fn offer(&mut self, core: &mut Core, place: &Place, index: usize) -> Result<(), Error> {
        let transfer = self.schedule.transfer(self.puts[index].id);
        place.alive(core, transfer.to)?;
        let command = self.command(place, transfer);
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
        let signal = Signal::set(word, self.run.number());
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
        let number = self.run.number();
        // Words of the barrier have one writer and only grow: a fast member may be a barrier ahead.
        let is_ahead = self.set == Set::Barrier && value >> RUN_SHIFT != number >> RUN_SHIFT;
        if value == number || is_ahead {
            return Ok(());
        }
        Err(Error::GroupBroken { peer: place.members[self.schedule.transfer(id).from] })
    }

    /// What it waits for, and whose signal that is.
    pub(super) fn waits_for(&self) -> Option<(OperationId, usize)> {
        self.wait.map(|(operation, id)| (operation, self.schedule.transfer(id).from))
    }

    /// Whether the signal that it waits for is there.
    pub(super) fn has_arrived(&self, place: &Place) -> Result<bool, Error> {
        let Some((_, id)) = self.wait else { return Ok(false) };
        let offset = place.ground.signal(self.set, self.schedule.transfer(id).arrival);
        Ok(place.region.get::<u64>(offset)? >= self.run.number() >> RUN_SHIFT << RUN_SHIFT)
    }

    /// Wake this one when anything ends that the run waits for.
    pub(super) fn register(&self, core: &mut Core, waker: &Waker) {
        let waits = self.wait.iter().map(|(operation, _)| *operation);
        for operation in self.puts.iter().filter_map(|put| put.operation).chain(waits) {
            core.table.set_waker(operation, waker);
        }
    }

    /// Whether something was not taken for want of room towards its peer.
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
        self.running.puts.push(Put { id, operation: None });
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
        self.place.alive(self.core, transfer.from)?;
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
            // Nobody but the host knows how.
            Some(_) => return Ok(false),
        };
        let at = |(buffer, offset): (Buffer, usize)| self.running.buffer(self.place, buffer) + offset as u64;
        Ok(self.place.region.combine(at(target), at(source), length as u64, how)?)
    }

    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), Fault> {
        let at = self.running.buffer(self.place, buffer) + offset as u64;
        Ok(self.place.region.write(at, bytes)?)
    }
}
