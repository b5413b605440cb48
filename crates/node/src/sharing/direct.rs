//! The operations of the wire, carried out on mapped memory.
//!
//! A caller offers each command to [`Direct`] first. What concerns a region that was imported is done here, within the
//! call, and ends in the same [`Event::Completed`] with the same errors; everything else goes to the endpoint. A run
//! that is to use the wire only does not make a [`Direct`], and nothing else changes.
//!
//! *Order.* An operation is visible at its target when the call returns, so direct operations to one node are seen in
//! the order of the calls. A put's signal is a release store (or add) after the data, and whoever waits reads it with
//! acquire: who sees the signal sees the data. Flushes and fences only have to order what is on the wire, so they are
//! passed on. What is *not* ordered without a flush: an operation that went through the wire before a direct one.
//!
//! *Waits.* A word that peers change directly changes without a frame, so the endpoint cannot know; with a [`Direct`],
//! all waits are kept here and looked at by [`Direct::poll`]. The wire's stores change the same words and end the
//! same waits.
//!
//! This file moves no bytes itself and never waits.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{Ordering, fence};

use rackloom_protocol::{
    Command, CommandRefused, Completion, Condition, Event, Instant, LocalRange, NodeId, OperationError,
    OperationId, RegionId, RemoteAddress, Signal,
};
use rustix::event::PollFlags;

use super::imported::{AccessError, ImportedRegion, Need};
use super::socket;
use crate::memory::HostMemory;

/// How often the owners' connections are looked at, which costs a system call.
const LOOK_INTERVAL_NS: u64 = 5_000_000;

/// How often words that lie on a device are looked at.
const WORD_ON_DEVICE_INTERVAL_NS: u64 = 10_000;

/// Who carries a command out.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Taken {
    /// It was carried out or is kept here.
    Here,
    /// Give it to the endpoint.
    NotHere,
}

/// The imported regions of one member, and its waits.
///
/// `Send` and `Sync`. What changes it takes `&mut self`, so one thread drives it at a time.
#[derive(Debug, Default)]
pub struct Direct {
    /// Sorted by owner and region.
    regions: Vec<ImportedRegion>,
    waits: Vec<Wait>,
    /// Nodes that have withheld a region. All they have is reached in frames from then on: a store in a frame and a direct one behind it
    /// would not be seen in this order.
    withheld: Vec<NodeId>,
    /// Nodes to which a posted store has failed since the last flush.
    failed: Vec<NodeId>,
    look_due: Instant,
    /// When words on a device are looked at next.
    word_due: Instant,
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
    /// From now on operations on this region are direct. An earlier import of the same region is dropped.
    pub fn add(&mut self, imported: ImportedRegion) {
        match self.place(imported.owner(), imported.region()) {
            Ok(place) => self.regions[place] = imported,
            Err(place) => self.regions.insert(place, imported),
        }
    }

    /// Drop all imports from a node: the importer's half of the order of frees, or the end of a lost owner. Operations
    /// to it go to the wire again.
    pub fn forget(&mut self, node: NodeId) {
        self.regions.retain(|imported| imported.owner() != node);
        self.withheld.retain(|withheld| *withheld != node);
        self.failed.retain(|failed| *failed != node);
    }

    /// Drop the import of one region. Returns whether there was one.
    pub fn forget_region(&mut self, node: NodeId, region: RegionId) -> bool {
        self.place(node, region).map(|place| self.regions.remove(place)).is_ok()
    }

    /// Whether operations on this region are direct.
    #[must_use]
    pub fn reaches(&self, node: NodeId, region: RegionId) -> bool {
        self.place(node, region).is_ok()
    }

    /// Whether a node wants to be asked in frames, as an access has found out.
    #[must_use]
    pub fn is_withheld(&self, node: NodeId) -> bool {
        self.withheld.contains(&node)
    }

    /// Whether the owner of an imported region is known to have ended.
    #[must_use]
    pub fn is_lost(&self, node: NodeId) -> bool {
        self.regions.iter().any(|imported| imported.owner() == node && imported.is_owner_gone())
    }

    /// Carry out a command if it concerns mapped memory. Completions go to `events` within the call.
    ///
    /// # Errors
    /// As the core refuses: the command cannot be carried out by anybody.
    pub fn handle_command(
        &mut self,
        memory: &HostMemory,
        command: &Command<'_>,
        events: &mut impl FnMut(Event),
    ) -> Result<Taken, CommandRefused> {
        match *command {
            Command::WaitUntil { operation, region, offset, condition, value, depends_on } => {
                let wait = Wait { operation, region, offset, condition, value, depends_on };
                return self.begin_wait(memory, wait, events);
            }
            Command::Cancel { operation } => return Ok(self.cancel(operation, events)),
            Command::Flush { operation, target } => return Ok(self.flush(operation, target, events)),
            Command::Fence { .. } => {
                fence(Ordering::SeqCst);
                return Ok(Taken::NotHere);
            }
            _ => {}
        }
        let Some(done) = self.carry_out(memory, command)? else { return Ok(Taken::NotHere) };
        let Done { operation, target, result, completion } = done;
        if result == Err(AccessError::Withheld) {
            self.withheld.push(target);
            return Ok(Taken::NotHere);
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
        Ok(Taken::Here)
    }

    /// Look at the words that are waited for, and now and then at the owners' connections. Returns whether anything ended.
    pub fn poll(&mut self, now: Instant, memory: &HostMemory, events: &mut impl FnMut(Event)) -> bool {
        if now >= self.look_due {
            self.look_due = now + LOOK_INTERVAL_NS;
            self.look_at_owners();
        }
        if memory.shared_device().is_some() {
            // Looking at a word on a device takes microseconds, in which nothing else happens.
            if now < self.word_due {
                return false;
            }
            self.word_due = now + WORD_ON_DEVICE_INTERVAL_NS;
        }
        let mut waits = std::mem::take(&mut self.waits);
        let before = waits.len();
        waits.retain(|wait| {
            let lost = wait.depends_on.is_some_and(|node| self.is_lost(node));
            let Some(result) = wait.look(memory, lost) else { return true };
            events(Event::Completed { operation: wait.operation, result });
            false
        });
        self.waits = waits;
        self.waits.len() < before
    }

    /// The endpoint says that a node is lost or has been restarted: waits that depend on it end.
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

    /// The words of a region cannot be read: waits on them end with [`OperationError::MemoryFailed`].
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

    /// Whether somebody waits for a word.
    #[must_use]
    pub fn has_waits(&self) -> bool {
        !self.waits.is_empty()
    }

    /// Whether [`Direct::poll`] would end a wait now. For a caller that is about to sleep.
    pub fn is_ready(&self, memory: &HostMemory) -> bool {
        self.waits.iter().any(|wait| wait.look(memory, false).is_some())
    }

    fn carry_out(&self, memory: &HostMemory, command: &Command<'_>) -> Result<Option<Done>, CommandRefused> {
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
            // The wire has the owner's word for it.
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

    /// The region of a put's signal, if there is one; `None` if it is not imported.
    #[expect(clippy::option_option, reason = "no signal and a signal elsewhere are two answers")]
    fn signal_region(
        &self,
        target: RemoteAddress,
        signal: Option<Signal>,
    ) -> Option<Option<(&ImportedRegion, Signal)>> {
        let Some(signal) = signal else { return Some(None) };
        let region = self.find(target.node, signal.region)?;
        (signal.key == region.key()).then_some(Some((region, signal)))
    }

    fn begin_wait(
        &mut self,
        memory: &HostMemory,
        wait: Wait,
        events: &mut impl FnMut(Event),
    ) -> Result<Taken, CommandRefused> {
        let word = LocalRange { region: wait.region, offset: wait.offset, length: 8 };
        let is_word = wait.offset.is_multiple_of(8) && memory.local(word).is_some();
        if !is_word {
            return Err(CommandRefused::Invalid("a wait needs an aligned word of a region of one's own"));
        }
        match wait.look(memory, false) {
            Some(result) => events(Event::Completed { operation: wait.operation, result }),
            None => self.waits.push(wait),
        }
        Ok(Taken::Here)
    }

    fn cancel(&mut self, operation: OperationId, events: &mut impl FnMut(Event)) -> Taken {
        let Some(place) = self.waits.iter().position(|wait| wait.operation == operation) else {
            return Taken::NotHere;
        };
        self.waits.remove(place);
        events(Event::Completed { operation, result: Err(OperationError::Cancelled) });
        Taken::Here
    }

    /// Direct operations are over when they return, so a flush is the wire's, unless a posted store has failed here.
    fn flush(
        &mut self,
        operation: OperationId,
        target: Option<NodeId>,
        events: &mut impl FnMut(Event),
    ) -> Taken {
        let before = self.failed.len();
        self.failed.retain(|node| target.is_some_and(|target| target != *node));
        if self.failed.len() == before {
            return Taken::NotHere;
        }
        events(Event::Completed { operation, result: Err(OperationError::EarlierFailure) });
        Taken::Here
    }

    fn look_at_owners(&self) {
        if self.regions.is_empty() {
            return;
        }
        let connections: Vec<BorrowedFd<'_>> = self.regions.iter().map(ImportedRegion::connection).collect();
        let gone = socket::wait(&connections, PollFlags::empty(), 0);
        for (imported, _) in self.regions.iter().zip(gone).filter(|(_, gone)| *gone) {
            // The imported region remembers it for the next access.
            let _ = imported.fail_for_good();
        }
    }

    fn find(&self, node: NodeId, region: RegionId) -> Option<&ImportedRegion> {
        self.place(node, region).ok().map(|place| &self.regions[place])
    }

    fn place(&self, node: NodeId, region: RegionId) -> Result<usize, usize> {
        self.regions.binary_search_by_key(&(node, region), |imported| (imported.owner(), imported.region()))
    }
}

struct Done {
    operation: OperationId,
    target: NodeId,
    result: Result<u64, AccessError>,
    completion: Completion,
}

impl Wait {
    /// How the wait ends, if it does.
    fn look(&self, memory: &HostMemory, is_lost: bool) -> Option<Result<u64, OperationError>> {
        let Ok(word) = memory.word(self.region, self.offset) else {
            return Some(Err(OperationError::MemoryFailed));
        };
        if self.condition.holds(word, self.value) {
            return Some(Ok(word));
        }
        is_lost.then_some(Err(OperationError::Unreachable))
    }
}

/// Data, then the signal; both are checked before the first byte moves.
fn put(
    region: &ImportedRegion,
    target: RemoteAddress,
    memory: &HostMemory,
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

fn check_local(memory: &HostMemory, range: LocalRange) -> Result<(), CommandRefused> {
    let is_held = memory.local(range).is_some();
    if is_held { Ok(()) } else { Err(CommandRefused::Invalid("the local range leaves its region")) }
}
