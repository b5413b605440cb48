//! A toy fabric for tests: as disorderly as the rules allow, and able to break each rule on demand.
//!
//! Operations become segments that are applied in random order; only fences, signals and flushes hold anything back. So a litmus
//! that passes here needs no luck, and a litmus that passes in spite of a [`Defect`] is worth nothing.

use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::{
    Atomic, Command, CommandRefused, Completion, Condition, Event, Instant, LocalRange, Memory, MemoryAccess,
    MemoryDone, MemoryRequest, MemoryToken, NodeId, OperationError, OperationId, RegionConfig, RegionId,
    RemoteAddress, Signal, SignalKind, Width,
};

use super::findings::read_word;
use super::pattern::mix;
use super::request::Seat;
use super::{Litmus, LitmusSettings, Rank};
use crate::job::{Job, Progress};

/// A rule that the toy fabric breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Defect {
    /// One posted store is never applied, though everything says so.
    PostedStoreLost,
    /// One acknowledged store, or the end of a put, is acknowledged and never applied.
    AcknowledgedStoreLost,
    /// One segment of one put is never applied.
    SegmentLost,
    /// One put is applied with one bit flipped.
    BitFlipped,
    /// One put begins a byte too late.
    Shifted,
    /// One put writes a byte more than it should.
    ByteTooMuch,
    /// Data of another writer's slot: a put's source is read a little further on.
    WrongSource,
    /// Signals do not wait for their data.
    SignalEarly,
    /// Fences order nothing.
    FenceIgnored,
    /// Flushes wait for nothing, and what they should have waited for is late.
    FlushEarly,
    /// One fetch-add is applied twice.
    AddTwice,
    /// One swap is applied twice.
    SwapTwice,
    /// One compare-swap does not compare.
    SwapWithoutCompare,
    /// Atomics on 4 bytes touch 8.
    AtomicTooWide,
    /// One load or get brings one wrong byte.
    ReadWrong,
    /// One load or get brings a byte too few.
    ReadShort,
    /// A wrong key opens.
    KeyIgnored,
    /// Bounds are checked against the first byte only: the rest is cut off.
    BoundsLoose,
    /// Read-only regions can be written.
    PermissionIgnored,
    /// Refusals come, but the byte is written first.
    RefusedTooLate,
    /// The owner is not told of refusals.
    RefusalSilent,
    /// A flush does not tell of an earlier failure.
    FailureForgotten,
    /// One wait ends before its condition holds.
    WaitEarly,
}

/// One operation on its way.
#[derive(Clone, Debug)]
struct Flight {
    source: u16,
    target: u16,
    operation: Option<OperationId>,
    /// Fences that the source had sent to the target before.
    epoch: u64,
    action: Action,
    is_started: bool,
}

#[derive(Clone, Debug)]
enum Action {
    Write {
        address: RemoteAddress,
        segments: Vec<(u64, Vec<u8>)>,
        signal: Option<Signal>,
    },
    /// A put that has not moved yet; its source is read when it does.
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
    /// Ends when all earlier flights (by number) to its targets have.
    Flush {
        before: u64,
        all: bool,
    },
}

#[derive(Clone, Debug)]
struct Wait {
    operation: OperationId,
    word: (RegionId, u64),
    condition: (Condition, u64),
    depends_on: Option<NodeId>,
}

#[derive(Default)]
struct Seated {
    memory: VectorMemory,
    regions: Vec<RegionConfig>,
    waits: Vec<Wait>,
    events: Vec<Event>,
    /// Per target: fences so far.
    epochs: Vec<u64>,
    /// Per target: a posted store failed.
    failed: Vec<bool>,
    lost: Vec<bool>,
    is_dead: bool,
}

/// Ranks, the fabric between them, and the order of turns.
pub(super) struct Toy {
    fabric: Fabric,
    jobs: Vec<Litmus>,
    finished: Vec<bool>,
    now: Instant,
}

/// What is on its way between the ranks.
struct Fabric {
    seats: Vec<Seated>,
    flights: Vec<(u64, Flight)>,
    next_flight: u64,
    random: u64,
    defect: Option<Defect>,
    /// Chances to misbehave that are let pass; single defects hit once.
    defect_after: u32,
    is_spent: bool,
}

struct ToySeat<'a> {
    fabric: &'a mut Fabric,
    rank: usize,
}

const SEGMENT_BYTES: usize = 1024;
const FLIGHTS_MAX: usize = 20;

impl Toy {
    pub(super) fn new(ranks: &[Rank], settings: &LitmusSettings, seed: u64) -> Self {
        let count = ranks.len();
        let jobs: Vec<_> = (0..count)
            .map(|rank| Litmus::new(NodeId(rank as u16), ranks.to_vec(), settings.clone()).unwrap())
            .collect();
        let fabric = Fabric {
            seats: jobs.iter().map(|job| Seated::new(job.regions(), count)).collect(),
            flights: Vec::new(),
            next_flight: 0,
            random: seed,
            defect: None,
            defect_after: 0,
            is_spent: false,
        };
        Self { fabric, jobs, now: Instant::ZERO, finished: vec![false; count] }
    }

    /// Break a rule; single defects let this many chances pass before they hit.
    pub(super) fn with_defect(mut self, defect: Defect, after: u32) -> Self {
        (self.fabric.defect, self.fabric.defect_after) = (Some(defect), after);
        self
    }

    pub(super) fn memory(&mut self, rank: usize) -> &mut VectorMemory {
        &mut self.fabric.seats[rank].memory
    }

    pub(super) fn job(&mut self, rank: usize) -> &mut Litmus {
        &mut self.jobs[rank]
    }

    /// Run until every living rank is over, or until nothing has moved for long.
    pub(super) fn run(&mut self) -> Result<(), String> {
        self.run_until(|_| false)
    }

    /// The same, but stop when the test says so.
    pub(super) fn run_until(&mut self, mut stop: impl FnMut(&mut Self) -> bool) -> Result<(), String> {
        let (mut idle, mut progress) = (0, 0);
        while !self.is_over() {
            if stop(self) {
                return Ok(());
            }
            self.now = self.now + 100;
            let rank = self.fabric.random(self.jobs.len());
            self.turn(rank);
            for _ in 0..4 {
                self.fabric.deliver_one();
            }
            let sum: u64 = self.jobs.iter().map(Job::progress_count).sum();
            idle = if sum == progress { idle + 1 } else { 0 };
            progress = sum;
            if idle > 20_000 {
                return Err(self.jobs.iter().map(Job::waiting_for).collect::<Vec<_>>().join("; "));
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.finished.iter().zip(&self.fabric.seats).all(|(finished, seat)| *finished || seat.is_dead)
    }

    fn turn(&mut self, rank: usize) {
        if self.fabric.seats[rank].is_dead {
            return;
        }
        let job = &mut self.jobs[rank];
        for event in std::mem::take(&mut self.fabric.seats[rank].events) {
            job.handle_event(self.now, &event);
        }
        // Commands only queue; memory is touched by the job alone during its turn.
        let mut memory = std::mem::take(&mut self.fabric.seats[rank].memory);
        let progress = job.turn(self.now, &mut ToySeat { fabric: &mut self.fabric, rank }, &mut memory);
        self.fabric.seats[rank].memory = memory;
        self.finished[rank] = progress == Progress::Finished;
        self.fabric.settle_waits(rank);
    }

    /// A rank dies; its memory and what it sent are gone. The others do not know yet.
    pub(super) fn kill(&mut self, rank: usize) {
        self.fabric.seats[rank].is_dead = true;
        self.fabric.flights.retain(|(_, flight)| usize::from(flight.source) != rank);
    }

    /// A living rank hears that another one is lost.
    pub(super) fn announce_loss(&mut self, to: usize, lost: usize) {
        self.fabric.announce_loss(to, lost);
    }
}

impl Fabric {
    fn random(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_add(1);
        (mix(self.random) % below.max(1) as u64) as usize
    }

    /// Whether a single defect of this kind hits now.
    fn hits(&mut self, defect: Defect) -> bool {
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

    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    fn announce_loss(&mut self, to: usize, lost: usize) {
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
        seat.events.push(Event::NodeLost { node });
    }

    fn deliver_one(&mut self) {
        if self.flights.is_empty() {
            return;
        }
        let index = self.random(self.flights.len());
        let (number, flight) = self.flights[index].clone();
        if self.seats[usize::from(flight.target)].is_dead && !matches!(flight.action, Action::Flush { .. }) {
            self.flights[index].1.is_started = true;
            return;
        }
        // What an early flush should have waited for is late.
        if self.has(Defect::FlushEarly) && flight.operation.is_none() && self.random(50) > 0 {
            return;
        }
        let is_held = !self.has(Defect::FenceIgnored)
            && self.flights.iter().any(|(_, other)| {
                (other.source, other.target) == (flight.source, flight.target)
                    && other.epoch < flight.epoch
                    && !matches!(other.action, Action::Flush { .. })
            });
        if is_held {
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

    fn check(
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

    /// Apply one segment, or, when none is left, the signal. `Some`: over.
    fn write(
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
            let room = self.seats[target].memory.bytes(address.region).len() as u64;
            bytes.truncate(room.saturating_sub(offset) as usize);
            self.seats[target].memory.write(address.region, offset, &bytes).unwrap();
        }
        let is_over = segments.is_empty() && signal.is_none();
        self.flights[index].1.action = Action::Write { address, segments, signal };
        is_over.then_some(Ok(0))
    }

    fn raise(&mut self, flight: &Flight, signal: Option<Signal>) {
        let Some(signal) = signal else { return };
        let kind = match signal.kind {
            SignalKind::Set => rackloom_protocol::AtomicKind::Set,
            SignalKind::Add => rackloom_protocol::AtomicKind::FetchAdd,
        };
        let atomic = Atomic { kind, width: Width::Eight, operand: signal.value, compare: 0 };
        self.apply(usize::from(flight.target), signal.region, signal.offset, atomic);
    }

    fn apply(&mut self, target: usize, region: RegionId, offset: u64, atomic: Atomic) -> u64 {
        let access = MemoryAccess::Atomic { offset, atomic };
        let request = MemoryRequest { token: MemoryToken(0), region, access };
        match self.seats[target].memory.execute(&request, &[]) {
            Some(MemoryDone::Value(old)) => old,
            other => panic!("{other:?}"),
        }
    }

    fn read(
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

    fn atomic(
        &mut self,
        flight: &Flight,
        address: RemoteAddress,
        mut atomic: Atomic,
    ) -> Result<u64, OperationError> {
        use rackloom_protocol::AtomicKind;
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

    fn flush(
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
        let is_told = has_failed && !self.has(Defect::FailureForgotten);
        Some(if is_told { Err(OperationError::EarlierFailure) } else { Ok(0) })
    }

    fn settle_waits(&mut self, rank: usize) {
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

    fn launch(&mut self, rank: usize, target: u16, operation: Option<OperationId>, action: Action) {
        let epoch = self.seats[rank].epochs[usize::from(target)];
        let flight = Flight { source: rank as u16, target, operation, epoch, action, is_started: false };
        self.flights.push((self.next_flight, flight));
        self.next_flight += 1;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Atomic,
}

impl Seated {
    fn new(regions: Vec<RegionConfig>, count: usize) -> Self {
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

fn segments(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let chunks = bytes.chunks(SEGMENT_BYTES).enumerate();
    chunks.map(|(number, chunk)| ((number * SEGMENT_BYTES) as u64, chunk.to_vec())).collect()
}

impl ToySeat<'_> {
    fn queue(&mut self, target: NodeId) -> Result<u16, CommandRefused> {
        if self.fabric.seats[self.rank].lost[target.index()] {
            return Err(CommandRefused::Unreachable(target));
        }
        let rank = self.rank as u16;
        if self.fabric.flights.iter().filter(|(_, flight)| flight.source == rank).count() >= FLIGHTS_MAX {
            return Err(CommandRefused::Busy);
        }
        Ok(target.0)
    }
}

impl Seat for ToySeat<'_> {
    fn is_reachable(&self, node: NodeId) -> bool {
        !self.fabric.seats[self.rank].lost[node.index()]
    }

    fn command(&mut self, _now: Instant, command: Command<'_>) -> Result<(), CommandRefused> {
        let rank = self.rank;
        match command {
            Command::Store { operation, target: address, data, completion } => {
                let target = self.queue(address.node)?;
                let operation = (completion == Completion::Visible).then_some(operation);
                let action = Action::Write { address, segments: segments(data), signal: None };
                self.fabric.launch(rank, target, operation, action);
            }
            Command::Load { operation, target: address, into }
            | Command::Get { operation, target: address, into } => {
                let target = self.queue(address.node)?;
                let action = Action::Read { address, into: (into.region, into.offset), length: into.length };
                self.fabric.launch(rank, target, Some(operation), action);
            }
            Command::Atomic { operation, target: address, atomic } => {
                let target = self.queue(address.node)?;
                self.fabric.launch(rank, target, Some(operation), Action::Atomic { address, atomic });
            }
            Command::Put { operation, target: address, source, signal } => {
                let target = self.queue(address.node)?;
                self.fabric.launch(rank, target, Some(operation), Action::Put { address, source, signal });
            }
            Command::WaitUntil { operation, region, offset, condition, value, depends_on } => {
                if depends_on.is_some_and(|node| self.fabric.seats[rank].lost[node.index()]) {
                    return Err(CommandRefused::Unreachable(depends_on.unwrap_or_default()));
                }
                let wait =
                    Wait { operation, word: (region, offset), condition: (condition, value), depends_on };
                self.fabric.seats[rank].waits.push(wait);
            }
            Command::Fence { target } => match target {
                Some(target) => self.fabric.seats[rank].epochs[target.index()] += 1,
                None => self.fabric.seats[rank].epochs.iter_mut().for_each(|epoch| *epoch += 1),
            },
            Command::Flush { operation, target } => {
                let before = self.fabric.next_flight;
                let (to, all) = (target.unwrap_or(NodeId(rank as u16)).0, target.is_none());
                self.fabric.launch(rank, to, Some(operation), Action::Flush { before, all });
            }
            Command::Cancel { operation } => {
                let seat = &mut self.fabric.seats[rank];
                if seat.waits.iter().any(|wait| wait.operation == operation) {
                    seat.waits.retain(|wait| wait.operation != operation);
                    seat.events.push(Event::Completed { operation, result: Err(OperationError::Cancelled) });
                }
            }
            other => panic!("{other:?}"),
        }
        Ok(())
    }
}
