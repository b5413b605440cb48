//! The operations of the wire, executed on mapped memory.
//!
//! A caller offers each command to [`Direct`] first. A command on an imported region is executed here, within the call, and ends with the
//! [`Event::Completed`] and the errors of the wire. All other commands go to the endpoint. A run that uses only the wire makes no
//! [`Direct`].
//!
//! *Order.* An operation is visible at its target when the call returns, so direct operations to one node are visible in the order of
//! the calls. The signal of a put is a release store (or add) after the data, and a wait reads it with acquire: a reader that sees the
//! signal sees the data. Flushes and fences only order operations on the wire, so they are passed on. An operation on the wire is *not* ordered
//! before a later direct one without a flush.
//!
//! *Waits.* Peers change a word directly without a frame, so the endpoint does not notice. With a [`Direct`], all waits are kept here
//! and checked by [`Direct::poll`]. Stores of the wire change the same words and end the same waits.
//!
//! This file moves no bytes itself and never blocks.

#![expect(private_bounds, reason = "the memories of this crate are the only ones, and callers name none")]

use std::os::fd::BorrowedFd;
use std::sync::atomic::{Ordering, fence};

use rackloom_protocol::{
    Command, CommandRefused, Completion, Condition, Event, Instant, InvalidCommand, LocalRange, NodeId,
    OperationError, OperationId, RegionId, RemoteAddress, Signal,
};
use rustix::event::PollFlags;

use super::access::{AccessError, Need};
use super::device_words::DeviceWords;
use super::imported::ImportedRegion;
use super::socket;
use crate::memory::{Local, LocalMemory};

/// Interval between checks of the owners' connections, each of which costs a system call.
const LOOK_INTERVAL_NS: u64 = 5_000_000;

/// Length of transfers that the system does not copy between processes: a word is not to be torn.
const COPY_BYTES_ABOVE: u64 = 8;

/// Path of a command.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandPath {
    /// The command was executed directly, or is kept as a wait.
    Direct,
    /// The command must go to the endpoint, which sends it in frames.
    Frames,
}

/// Imported regions of one member, and its waits.
///
/// `Send` and `Sync`. Its changes take `&mut self`, so one thread drives it at a time.
#[derive(Debug, Default)]
pub struct Direct {
    /// Sorted by owner and region.
    regions: Vec<ImportedRegion>,
    waits: Vec<Wait>,
    /// Nodes that have withheld a region. Operations to all their regions use frames from then on: the order of a store in a frame and a
    /// later direct one would not be kept.
    withheld: Vec<NodeId>,
    /// Nodes to which a posted store has failed since the last flush.
    failed: Vec<NodeId>,
    look_due: Instant,
    /// Time of the next read of words on a device.
    device_words: DeviceWords,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    operation: OperationId,
    region: RegionId,
    offset: u64,
    condition: Condition,
    value: u64,
    depends_on: Option<NodeId>,
}

impl Direct {
    /// Makes operations on this region direct. An earlier import of the region is dropped.
    pub fn add(&mut self, imported: ImportedRegion) {
        match self.index(imported.owner(), imported.region()) {
            Ok(index) => self.regions[index] = imported,
            Err(index) => self.regions.insert(index, imported),
        }
    }

    /// Drops all imports from a node, before the owner frees memory or after the owner was lost. Operations to the node use the wire again.
    pub fn forget(&mut self, node: NodeId) {
        self.regions.retain(|imported| imported.owner() != node);
        self.withheld.retain(|withheld| *withheld != node);
        self.failed.retain(|failed| *failed != node);
    }

    /// Returns `true` if operations on this region are direct.
    #[must_use]
    pub fn reaches(&self, node: NodeId, region: RegionId) -> bool {
        self.index(node, region).is_ok()
    }

    /// Returns `true` if the node requires frames, as an access has detected.
    #[must_use]
    pub fn is_withheld(&self, node: NodeId) -> bool {
        self.withheld.contains(&node)
    }

    /// Returns `true` if the owner of an imported region is known to have ended.
    #[must_use]
    pub fn is_lost(&self, node: NodeId) -> bool {
        self.regions.iter().any(|imported| imported.owner() == node && imported.is_owner_gone())
    }

    /// Executes a command if it concerns mapped memory. Completions go to `events` within the call.
    ///
    /// # Errors
    /// The errors of the core: the command is not valid.
    pub fn handle_command(
        &mut self,
        memory: &impl LocalMemory,
        command: &Command<'_>,
        events: &mut impl FnMut(Event),
    ) -> Result<CommandPath, CommandRefused> {
        match *command {
            Command::WaitUntil { operation, region, offset, condition, value, depends_on } => {
                let wait = Wait { operation, region, offset, condition, value, depends_on };
                return self.begin_wait(memory, wait, events);
            }
            Command::Cancel { operation } => return Ok(self.cancel(operation, events)),
            Command::Flush { operation, target } => return Ok(self.flush(operation, target, events)),
            Command::Fence { .. } => {
                fence(Ordering::SeqCst);
                return Ok(CommandPath::Frames);
            }
            _ => {}
        }
        let Some(done) = self.carry_out(memory, command)? else { return Ok(CommandPath::Frames) };
        let Done { operation, target, result, completion } = done;
        if result == Err(AccessError::Withheld) {
            self.withheld.push(target);
            return Ok(CommandPath::Frames);
        }
        match (completion, result) {
            (Completion::Visible, result) => {
                let result = result.map_err(AccessError::as_operation_error);
                events(Event::Completed { operation, result });
            }
            (Completion::Accepted, Ok(_)) => {}
            (Completion::Accepted, Err(_)) if self.failed.contains(&target) => {}
            (Completion::Accepted, Err(_)) => self.failed.push(target),
        }
        Ok(CommandPath::Direct)
    }

    /// Checks the words of waits and, at intervals, the owners' connections. Returns `true` if an operation ended.
    pub fn poll(&mut self, now: Instant, memory: &impl LocalMemory, events: &mut impl FnMut(Event)) -> bool {
        if now >= self.look_due {
            self.look_due = now + LOOK_INTERVAL_NS;
            self.look_at_owners();
        }
        // A read of a word on a device blocks for microseconds.
        let has_device = memory.shared_device().is_some();
        let reads_device = self.device_words.are_due(now);
        let mut has_read = false;
        let mut waits = std::mem::take(&mut self.waits);
        let before = waits.len();
        waits.retain(|wait| {
            if has_device && is_on_device(memory, wait) {
                if !reads_device {
                    return true;
                }
                has_read = true;
            }
            let lost = wait.depends_on.is_some_and(|node| self.is_lost(node));
            let Some(result) = wait.look(memory, lost) else { return true };
            events(Event::Completed { operation: wait.operation, result });
            false
        });
        if has_read {
            self.device_words.note_reads(now);
        }
        self.waits = waits;
        self.waits.len() < before
    }

    /// Ends waits that depend on a node that is lost or has restarted, according to the endpoint.
    pub fn node_lost(&mut self, node: NodeId, events: &mut impl FnMut(Event)) {
        self.waits.retain(|wait| {
            let is_over = wait.depends_on == Some(node);
            if is_over {
                let result = Err(OperationError::Unreachable);
                events(Event::Completed { operation: wait.operation, result });
            }
            !is_over
        });
    }

    /// Ends waits on the words of a region, which cannot be read, with [`OperationError::MemoryFailed`].
    pub fn fail_waits(&mut self, region: RegionId, events: &mut impl FnMut(Event)) {
        self.waits.retain(|wait| {
            let is_over = wait.region == region;
            if is_over {
                let result = Err(OperationError::MemoryFailed);
                events(Event::Completed { operation: wait.operation, result });
            }
            !is_over
        });
    }

    /// Returns `true` if there is a wait.
    #[must_use]
    pub fn has_waits(&self) -> bool {
        !self.waits.is_empty()
    }

    /// Returns `true` if [`Direct::poll`] would end a wait now. For a caller that is about to sleep.
    pub fn is_ready(&self, memory: &impl LocalMemory) -> bool {
        self.waits.iter().any(|wait| wait.look(memory, false).is_some())
    }

    /// Takes the import of one region out.
    pub(crate) fn take(&mut self, node: NodeId, region: RegionId) -> Option<ImportedRegion> {
        self.index(node, region).ok().map(|index| self.regions.remove(index))
    }

    /// Drops the import of one region.
    pub(crate) fn forget_region(&mut self, node: NodeId, region: RegionId) {
        self.regions.retain(|imported| (imported.owner(), imported.region()) != (node, region));
    }

    /// Drops imports whose owner has ended the export: an owner keeps memory on a device until then. Returns `true` if there are imports that an
    /// owner would wait for, so that this has to be called again.
    pub(crate) fn drop_ended(&mut self) -> bool {
        self.regions.retain(|imported| !imported.is_over());
        self.regions.iter().any(ImportedRegion::is_awaited_by_owner)
    }

    /// Returns `true` if the memory of an imported region belongs to its owner's program, so that only copies reach it.
    pub(crate) fn is_in_program(&self, node: NodeId, region: RegionId) -> bool {
        self.find(node, region).is_some_and(ImportedRegion::is_in_program)
    }

    /// Executes a command on an imported region. Returns `None` if it is not one, or the key is another one. A failed access has done nothing, or its
    /// region is revoked.
    ///
    /// # Errors
    /// The local end is not within mapped memory of this member.
    pub(crate) fn access(
        &self,
        memory: &impl LocalMemory,
        command: &Command<'_>,
    ) -> Result<Option<Result<u64, AccessError>>, CommandRefused> {
        Ok(self.carry_out(memory, command)?.map(|done| done.result))
    }

    fn carry_out(
        &self,
        memory: &impl LocalMemory,
        command: &Command<'_>,
    ) -> Result<Option<Done>, CommandRefused> {
        let (operation, target, completion) = match *command {
            Command::Store { operation, target, completion, .. } => (operation, target, completion),
            Command::Load { operation, target, .. }
            | Command::Atomic { operation, target, .. }
            | Command::Put { operation, target, .. }
            | Command::Get { operation, target, .. } => (operation, target, Completion::Visible),
            _ => return Ok(None),
        };
        if self.is_withheld(target.node) {
            return Ok(None);
        }
        let Some(region) = self.find(target.node, target.region) else { return Ok(None) };
        if target.key != region.key() {
            // The wire reports the owner's error.
            return Ok(None);
        }
        if region.is_in_program() && !is_copy(command) {
            return Ok(None);
        }
        let result = match *command {
            Command::Store { data, .. } => region.store(target.offset, data).map(|()| 0),
            Command::Atomic { ref atomic, .. } => region.atomic(target.offset, atomic),
            Command::Load { into, .. } | Command::Get { into, .. } => {
                check_local(memory, into)?;
                region.copy_to(target.offset, memory, into).map(|()| 0)
            }
            Command::Put { source, signal, .. } => {
                check_local(memory, source)?;
                match self.signal_region(target, signal) {
                    Some(word) => put(region, target, memory, source, word).map(|()| 0),
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        if !matches!(command, Command::Load { .. } | Command::Get { .. }) {
            region.ring();
        }
        Ok(Some(Done { operation, target: target.node, result, completion }))
    }

    /// Returns the region of a put's signal, if there is one. `None` if it is not imported.
    #[expect(clippy::option_option, reason = "no signal and a signal elsewhere are two answers")]
    fn signal_region(
        &self,
        target: RemoteAddress,
        signal: Option<Signal>,
    ) -> Option<Option<(&ImportedRegion, Signal)>> {
        let Some(signal) = signal else { return Some(None) };
        let region = self.find(target.node, signal.region)?;
        let is_word = signal.key == region.key() && !region.is_in_program();
        is_word.then_some(Some((region, signal)))
    }

    fn begin_wait(
        &mut self,
        memory: &impl LocalMemory,
        wait: Wait,
        events: &mut impl FnMut(Event),
    ) -> Result<CommandPath, CommandRefused> {
        let word = LocalRange { region: wait.region, offset: wait.offset, length: 8 };
        let is_word = wait.offset.is_multiple_of(8) && memory.local(word).is_some();
        if !is_word {
            return Err(CommandRefused::Invalid(InvalidCommand::WaitWord));
        }
        match wait.look(memory, false) {
            Some(result) => events(Event::Completed { operation: wait.operation, result }),
            None => self.waits.push(wait),
        }
        Ok(CommandPath::Direct)
    }

    fn cancel(&mut self, operation: OperationId, events: &mut impl FnMut(Event)) -> CommandPath {
        let Some(index) = self.waits.iter().position(|wait| wait.operation == operation) else {
            return CommandPath::Frames;
        };
        self.waits.remove(index);
        events(Event::Completed { operation, result: Err(OperationError::Cancelled) });
        CommandPath::Direct
    }

    /// Handles a flush. Direct operations have ended when they return, so the flush goes to the wire, unless a posted store has failed here.
    fn flush(
        &mut self,
        operation: OperationId,
        target: Option<NodeId>,
        events: &mut impl FnMut(Event),
    ) -> CommandPath {
        let before = self.failed.len();
        self.failed.retain(|node| target.is_some_and(|target| target != *node));
        if self.failed.len() == before {
            return CommandPath::Frames;
        }
        events(Event::Completed { operation, result: Err(OperationError::EarlierFailure) });
        CommandPath::Direct
    }

    fn look_at_owners(&self) {
        if self.regions.is_empty() {
            return;
        }
        let connections: Vec<BorrowedFd<'_>> = self.regions.iter().map(ImportedRegion::connection).collect();
        let gone = socket::wait(&connections, PollFlags::empty(), 0);
        for (imported, _) in self.regions.iter().zip(gone).filter(|(_, gone)| *gone) {
            // The imported region keeps the error for the next access.
            let _ = imported.fail_for_good();
        }
    }

    fn find(&self, node: NodeId, region: RegionId) -> Option<&ImportedRegion> {
        self.index(node, region).ok().map(|index| &self.regions[index])
    }

    fn index(&self, node: NodeId, region: RegionId) -> Result<usize, usize> {
        self.regions.binary_search_by_key(&(node, region), |imported| (imported.owner(), imported.region()))
    }
}

/// Returns `true` for a command that a copy between two processes can perform. Words of 4 and 8 bytes are accessed atomically, which a copy is not.
fn is_copy(command: &Command<'_>) -> bool {
    match command {
        Command::Put { source, signal: None, .. } => source.length > COPY_BYTES_ABOVE,
        Command::Get { into, .. } => into.length > COPY_BYTES_ABOVE,
        _ => false,
    }
}

struct Done {
    operation: OperationId,
    target: NodeId,
    result: Result<u64, AccessError>,
    completion: Completion,
}

impl Wait {
    /// Returns the result of the wait, if it has ended.
    fn look(&self, memory: &impl LocalMemory, is_lost: bool) -> Option<Result<u64, OperationError>> {
        let Ok(word) = memory.word(self.region, self.offset) else {
            return Some(Err(OperationError::MemoryFailed));
        };
        if self.condition.holds(word, self.value) {
            return Some(Ok(word));
        }
        is_lost.then_some(Err(OperationError::Unreachable))
    }
}

/// Returns true if the word of a wait is on a device.
fn is_on_device(memory: &impl LocalMemory, wait: &Wait) -> bool {
    let word = LocalRange { region: wait.region, offset: wait.offset, length: 8 };
    matches!(memory.local(word), Some(Local::Device(..)))
}

/// Writes the data, then the signal. Both are checked before the first byte moves.
fn put(
    region: &ImportedRegion,
    target: RemoteAddress,
    memory: &impl LocalMemory,
    source: LocalRange,
    word: Option<(&ImportedRegion, Signal)>,
) -> Result<(), AccessError> {
    if let Some((signal_region, signal)) = word {
        signal_region.allows(Need::Write, signal.offset, 8)?;
        if !signal.offset.is_multiple_of(8) {
            return Err(AccessError::Misaligned);
        }
    }
    region.copy_from(target.offset, memory, source)?;
    match word {
        Some((signal_region, signal)) => signal_region.signal(signal.offset, signal.kind, signal.value),
        None => Ok(()),
    }
}

fn check_local(memory: &impl LocalMemory, range: LocalRange) -> Result<(), CommandRefused> {
    let is_held = memory.local(range).is_some();
    if is_held { Ok(()) } else { Err(CommandRefused::Invalid(InvalidCommand::LocalRange)) }
}
