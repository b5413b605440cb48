//! Operations in flight between the ranks of the rack, and their application.

use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::operation::messages::Posted;
use rackloom_protocol::{
    Atomic, AtomicKind, Condition, Event, JobMemory, LocalRange, Memory, MemoryAccess, MemoryDone,
    MemoryRequest, MemoryToken, NodeId, OperationError, OperationId, RegionConfig, RegionId, RemoteAddress,
    Signal, Width,
};

use super::Defect;
use super::messages::Arrived;
use crate::litmus::findings::read_word;
use crate::ranks::pattern::mix;

pub(super) const SEGMENT_BYTES: usize = 1024;
pub(super) const FLIGHTS_MAX: usize = 20;

/// One operation in flight.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) source: u16,
    pub(super) target: u16,
    pub(super) operation: Option<OperationId>,
    /// Number of fences that the source had sent to the target before.
    pub(super) epoch: u64,
    pub(super) action: Action,
    pub(super) is_started: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Write {
        address: RemoteAddress,
        segments: Vec<(u64, Vec<u8>)>,
        signal: Option<Signal>,
    },
    /// A put that has not started. Its source is read when it starts.
    Put {
        address: RemoteAddress,
        source: LocalRange,
        signal: Option<Signal>,
    },
    Read {
        address: RemoteAddress,
        into: (RegionId, u64),
        length: u64,
    },
    Atomic {
        address: RemoteAddress,
        atomic: Atomic,
    },
    Message {
        tag: u64,
        source: LocalRange,
    },
    /// Completes when all earlier flights (by number) to its targets have completed.
    Flush {
        before: u64,
        all: bool,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Wait {
    pub(super) operation: OperationId,
    pub(super) word: (RegionId, u64),
    pub(super) condition: (Condition, u64),
    pub(super) depends_on: Option<NodeId>,
}

#[derive(Default)]
pub(super) struct Seated {
    pub(super) memory: VectorMemory,
    pub(super) regions: Vec<RegionConfig>,
    pub(super) waits: Vec<Wait>,
    pub(super) posted: Vec<Posted>,
    pub(super) arrived: Vec<Arrived>,
    pub(super) events: Vec<Event>,
    /// Number of fences so far, by target.
    pub(super) epochs: Vec<u64>,
    /// Failure of a posted store, by target.
    pub(super) failed: Vec<bool>,
    pub(super) lost: Vec<bool>,
    pub(super) is_dead: bool,
}

/// Ranks and the operations in flight between them.
pub(super) struct Fabric {
    pub(super) seats: Vec<Seated>,
    pub(super) flights: Vec<(u64, Flight)>,
    pub(super) next_flight: u64,
    pub(super) random: u64,
    pub(super) defect: Option<Defect>,
    /// Number of opportunities for a defect that are skipped. A defect of a single kind takes effect once.
    pub(super) defect_after: u32,
    pub(super) is_spent: bool,
}

impl Fabric {
    pub(super) fn random(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_add(1);
        (mix(self.random) % below.max(1) as u64) as usize
    }

    /// Returns whether a defect that occurs once takes effect now.
    pub(super) fn hits(&mut self, defect: Defect) -> bool {
        if self.defect != Some(defect) || self.is_spent {
            return false;
        }
        if self.defect_after > 0 {
            self.defect_after -= 1;
            return false;
        }
        self.is_spent = true;
        true
    }

    pub(super) fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    pub(super) fn announce_loss(&mut self, to: usize, lost: usize) {
        let node = NodeId(lost as u16);
        self.seats[to].lost[lost] = true;
        let (ended, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.flights)
            .into_iter()
            .partition(|(_, flight)| usize::from(flight.source) == to && usize::from(flight.target) == lost);
        self.flights = kept;
        let seat = &mut self.seats[to];
        for (_, flight) in ended {
            if let Some(operation) = flight.operation {
                let started = flight.is_started;
                let error =
                    if started { OperationError::OutcomeUnknown } else { OperationError::Unreachable };
                seat.events.push(Event::Completed { operation, result: Err(error) });
            }
        }
        let (ended, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut seat.waits).into_iter().partition(|wait| wait.depends_on == Some(node));
        seat.waits = kept;
        for Wait { operation, .. } in ended {
            seat.events.push(Event::Completed { operation, result: Err(OperationError::Unreachable) });
        }
        self.fail_receives(to, node);
        self.seats[to].events.push(Event::NodeLost { node });
    }

    pub(super) fn deliver_one(&mut self) {
        if self.flights.is_empty() {
            return;
        }
        let index = self.random(self.flights.len());
        let (number, flight) = self.flights[index].clone();
        if self.seats[usize::from(flight.target)].is_dead && !matches!(flight.action, Action::Flush { .. }) {
            self.flights[index].1.is_started = true;
            return;
        }
        // The operations that an early flush should have waited for are late.
        if self.has(Defect::FlushEarly) && flight.operation.is_none() && self.random(50) > 0 {
            return;
        }
        let is_held = !self.has(Defect::FenceIgnored)
            && self.flights.iter().any(|(_, other)| {
                (other.source, other.target) == (flight.source, flight.target)
                    && other.epoch < flight.epoch
                    && !matches!(other.action, Action::Flush { .. })
            });
        if is_held || self.is_overtaking(number, &flight) {
            return;
        }
        self.flights[index].1.is_started = true;
        let done = match flight.action.clone() {
            Action::Put { address, source, signal } => {
                let mut bytes = vec![0; source.length as usize];
                let memory = &mut self.seats[usize::from(flight.source)].memory;
                memory.read(source.region, source.offset, &mut bytes).unwrap();
                self.write(index, &flight, address, segments(&bytes), signal)
            }
            Action::Write { address, segments, signal } => {
                self.write(index, &flight, address, segments, signal)
            }
            Action::Read { address, into, length } => Some(self.read(&flight, address, into, length)),
            Action::Atomic { address, atomic } => Some(self.atomic(&flight, address, atomic)),
            Action::Message { tag, source } => {
                self.arrive(&flight, tag, source);
                Some(Ok(0))
            }
            Action::Flush { before, all } => self.flush(number, &flight, before, all),
        };
        if let Some(result) = done {
            self.flights.retain(|(other, _)| *other != number);
            let source = usize::from(flight.source);
            match flight.operation {
                Some(operation) => self.seats[source].events.push(Event::Completed { operation, result }),
                None => self.seats[source].failed[usize::from(flight.target)] |= result.is_err(),
            }
        }
        self.settle_waits(usize::from(flight.target));
    }

    pub(super) fn check(
        &mut self,
        flight: &Flight,
        address: RemoteAddress,
        length: u64,
        kind: Kind,
    ) -> Result<(), OperationError> {
        let tenant = self.seats[usize::from(flight.source)].regions[0].tenant;
        let target = &self.seats[usize::from(flight.target)];
        let region = target.regions.iter().find(|region| region.region == address.region);
        let error = match region {
            None => OperationError::NoSuchRegion,
            Some(region) if region.tenant != tenant => OperationError::WrongTenant,
            Some(region) if region.key != address.key && !self.has(Defect::KeyIgnored) => {
                OperationError::BadKey
            }
            Some(region) if kind == Kind::Atomic && !address.offset.is_multiple_of(4) => {
                let _ = region;
                OperationError::Misaligned
            }
            Some(region) if address.offset.checked_add(length).is_none_or(|end| end > region.length) => {
                if self.has(Defect::BoundsLoose) && address.offset < region.length {
                    return Ok(());
                }
                OperationError::OutOfBounds
            }
            Some(region) => {
                let allowed = match kind {
                    Kind::Read => region.access.read,
                    Kind::Write => region.access.write || self.has(Defect::PermissionIgnored),
                    Kind::Atomic => region.access.atomic || self.has(Defect::PermissionIgnored),
                };
                if allowed {
                    return Ok(());
                }
                OperationError::PermissionDenied
            }
        };
        if !self.has(Defect::RefusalSilent) {
            let event = Event::AccessRefused { source: NodeId(flight.source), region: address.region, error };
            self.seats[usize::from(flight.target)].events.push(event);
        }
        Err(error)
    }

    /// Applies one segment, or the signal when no segment is left. Returns `Some` when the write is complete.
    pub(super) fn write(
        &mut self,
        index: usize,
        flight: &Flight,
        address: RemoteAddress,
        mut segments: Vec<(u64, Vec<u8>)>,
        signal: Option<Signal>,
    ) -> Option<Result<u64, OperationError>> {
        let total = segments.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        let target = usize::from(flight.target);
        let checked =
            if flight.is_started { Ok(()) } else { self.check(flight, address, total, Kind::Write) };
        if let Err(error) = checked {
            if self.has(Defect::RefusedTooLate) {
                let _ = self.seats[target].memory.write(address.region, address.offset, &segments[0].1);
            }
            return Some(Err(error));
        }
        if self.has(Defect::SignalEarly) && !segments.is_empty() && signal.is_some() {
            self.raise(flight, signal);
            self.flights[index].1.action = Action::Write { address, segments, signal: None };
            return None;
        }
        if segments.is_empty() {
            self.raise(flight, signal);
            return Some(Ok(0));
        }
        let (at, mut bytes) = segments.swap_remove(self.random(segments.len()));
        let mut offset = address.offset + at;
        let is_lost = match flight.operation {
            None => self.hits(Defect::PostedStoreLost),
            Some(_) if bytes.len() < SEGMENT_BYTES => self.hits(Defect::AcknowledgedStoreLost),
            Some(_) => self.hits(Defect::SegmentLost),
        };
        if self.hits(Defect::BitFlipped) {
            bytes[0] ^= 4;
        }
        if self.hits(Defect::Shifted) {
            offset += 1;
        }
        if self.hits(Defect::ByteTooMuch) {
            bytes.push(0xaa);
        }
        if self.hits(Defect::WrongSource) {
            bytes[0] = bytes[0].wrapping_add(1);
        }
        if !is_lost {
            let space = self.seats[target].memory.bytes(address.region).len() as u64;
            bytes.truncate(space.saturating_sub(offset) as usize);
            self.seats[target].memory.write(address.region, offset, &bytes).unwrap();
        }
        let is_over = segments.is_empty() && signal.is_none();
        self.flights[index].1.action = Action::Write { address, segments, signal };
        is_over.then_some(Ok(0))
    }

    pub(super) fn raise(&mut self, flight: &Flight, signal: Option<Signal>) {
        let Some(signal) = signal else { return };
        let atomic = signal.kind.atomic(signal.value);
        self.apply(usize::from(flight.target), signal.region, signal.offset, atomic);
    }

    pub(super) fn apply(&mut self, target: usize, region: RegionId, offset: u64, atomic: Atomic) -> u64 {
        let access = MemoryAccess::Atomic { offset, atomic };
        let request = MemoryRequest { token: MemoryToken(0), region, access };
        match self.seats[target].memory.execute(&request, &[]) {
            Some(MemoryDone::Value(old)) => old,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn read(
        &mut self,
        flight: &Flight,
        address: RemoteAddress,
        into: (RegionId, u64),
        length: u64,
    ) -> Result<u64, OperationError> {
        self.check(flight, address, length, Kind::Read)?;
        let mut bytes = vec![0; length as usize];
        self.seats[usize::from(flight.target)]
            .memory
            .read(address.region, address.offset, &mut bytes)
            .unwrap();
        if self.hits(Defect::ReadWrong) {
            bytes[0] ^= 1;
        }
        if self.hits(Defect::ReadShort) {
            bytes.pop();
        }
        self.seats[usize::from(flight.source)].memory.write(into.0, into.1, &bytes).unwrap();
        Ok(0)
    }

    pub(super) fn atomic(
        &mut self,
        flight: &Flight,
        address: RemoteAddress,
        mut atomic: Atomic,
    ) -> Result<u64, OperationError> {
        self.check(flight, address, atomic.width.bytes(), Kind::Atomic)?;
        let target = usize::from(flight.target);
        let found =
            read_word(&mut self.seats[target].memory, address.region, address.offset, atomic.width.bytes());
        let must_fail =
            atomic.kind == AtomicKind::CompareSwap && ![atomic.compare, atomic.operand].contains(&found);
        if must_fail && self.hits(Defect::SwapWithoutCompare) {
            atomic.kind = AtomicKind::Swap;
        }
        if self.has(Defect::AtomicTooWide) {
            atomic.width = Width::Eight;
        }
        let old = self.apply(target, address.region, address.offset, atomic);
        let is_swap = atomic.kind == AtomicKind::Swap;
        if (atomic.kind == AtomicKind::FetchAdd && self.hits(Defect::AddTwice))
            || (is_swap && self.hits(Defect::SwapTwice))
        {
            return Ok(self.apply(target, address.region, address.offset, atomic));
        }
        Ok(old)
    }

    pub(super) fn flush(
        &mut self,
        number: u64,
        flight: &Flight,
        before: u64,
        all: bool,
    ) -> Option<Result<u64, OperationError>> {
        let is_pending = self.flights.iter().any(|(other_number, other)| {
            *other_number != number
                && *other_number < before
                && other.source == flight.source
                && (all || other.target == flight.target)
                && !matches!(other.action, Action::Flush { .. })
        });
        if is_pending && !self.has(Defect::FlushEarly) {
            return None;
        }
        let failed = &mut self.seats[usize::from(flight.source)].failed;
        let targets =
            if all { 0..failed.len() } else { flight.target.into()..usize::from(flight.target) + 1 };
        let has_failed = failed[targets.clone()].iter().any(|failed| *failed);
        failed[targets].fill(false);
        let is_reported = has_failed && !self.has(Defect::FailureForgotten);
        Some(if is_reported { Err(OperationError::EarlierFailure) } else { Ok(0) })
    }

    pub(super) fn settle_waits(&mut self, rank: usize) {
        let waits = std::mem::take(&mut self.seats[rank].waits);
        for wait in waits {
            let mut word = [0; 8];
            self.seats[rank].memory.read(wait.word.0, wait.word.1, &mut word).unwrap();
            let word = u64::from_le_bytes(word);
            let holds = wait.condition.0.holds(word, wait.condition.1);
            if holds || (wait.depends_on.is_some() && self.hits(Defect::WaitEarly)) {
                let result = Ok(word);
                self.seats[rank].events.push(Event::Completed { operation: wait.operation, result });
            } else {
                self.seats[rank].waits.push(wait);
            }
        }
    }

    pub(super) fn launch(
        &mut self,
        rank: usize,
        target: u16,
        operation: Option<OperationId>,
        action: Action,
    ) {
        let epoch = self.seats[rank].epochs[usize::from(target)];
        let flight = Flight { source: rank as u16, target, operation, epoch, action, is_started: false };
        self.flights.push((self.next_flight, flight));
        self.next_flight += 1;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Atomic,
}

impl Seated {
    pub(super) fn new(regions: Vec<RegionConfig>, count: usize) -> Self {
        let mut memory = VectorMemory::default();
        regions.iter().for_each(|region| memory.add(region.region, region.length as usize));
        Self {
            memory,
            regions,
            epochs: vec![0; count],
            failed: vec![false; count],
            lost: vec![false; count],
            ..Self::default()
        }
    }
}

pub(super) fn segments(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let chunks = bytes.chunks(SEGMENT_BYTES).enumerate();
    chunks.map(|(number, chunk)| ((number * SEGMENT_BYTES) as u64, chunk.to_vec())).collect()
}
