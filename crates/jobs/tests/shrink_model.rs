//! Shrinking jobs in a small model with random faults: every rank ends, and its result is right.
//!
//! The model is smaller than the simulator and has worse faults. Operations take any time and arrive in any order.
//! Memory refuses puts, reads and sends, keys are revoked, and paths are cut in one direction. Ranks stop and are
//! killed, and a rank that was stopped may be lost to the others without having lost them. The jobs are the real ones.
//! The test shows what the agreement must tolerate on any fabric.

use std::sync::Arc;

use proptest::prelude::*;
use rackloom_collectives::{Algorithm, ElementType};
use rackloom_jobs::collective::{CollectiveSettings, HeldArrays, Inputs, collective};
use rackloom_jobs::{Carried, Job, Progress, Rank, Seat};
use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::{
    Atomic, AtomicKind, Command, CommandRefused, Completion, Condition, Event, Instant, InvalidCommand,
    JobMemory, LocalRange, Memory, MemoryAccess, MemoryRequest, MemoryToken, NodeId, OperationError,
    OperationId, RegionId, RemoteAddress, Signal, SignalKind, Tenant, Width,
};

const MS: u64 = 1_000_000;
/// Time without a heartbeat after which a rank loses another one, in nanoseconds.
const DETECTION_NS: u64 = 20 * MS;
const TIMEOUT_NS: u64 = 400 * MS;
/// Time limit in nanoseconds. Four attempts take much less: each breaks off and agrees within its timeout, after it has
/// detected the losses.
const LIMIT_NS: u64 = 12_000 * MS;
/// Control region of the ranks. Revoking does not affect it, as in the engines.
const CONTROL: RegionId = RegionId(1);

/// Fault of the model.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Nothing from rank `from` arrives at rank `to`.
    Cut {
        from: usize,
        to: usize,
    },
    /// Nothing arrives from this rank anywhere.
    Mute {
        rank: usize,
    },
    /// Nothing arrives at this rank.
    Isolated {
        rank: usize,
    },
    /// The rank is stopped.
    Pause {
        rank: usize,
    },
    Kill {
        rank: usize,
    },
    Revoke {
        rank: usize,
    },
    /// Of a hundred requests to the rank's memory, `percent` fail.
    Fail {
        rank: usize,
        percent: u64,
    },
}

#[derive(Clone, Copy, Debug)]
struct Timed {
    fault: Fault,
    at_ns: u64,
    for_ns: u64,
}

impl Timed {
    fn holds(&self, now: Instant) -> bool {
        now.0 >= self.at_ns && now.0 - self.at_ns < self.for_ns
    }
}

#[derive(Clone, Debug)]
enum Action {
    Write { target: RemoteAddress, bytes: Vec<u8> },
    Put { target: RemoteAddress, source: LocalRange, signal: Option<Signal> },
    Load { target: RemoteAddress, into: LocalRange },
    Atomic { target: RemoteAddress, atomic: Atomic },
}

impl Action {
    const fn target(&self) -> RemoteAddress {
        match self {
            Self::Write { target, .. }
            | Self::Put { target, .. }
            | Self::Load { target, .. }
            | Self::Atomic { target, .. } => *target,
        }
    }
}

struct Flight {
    due: Instant,
    source: usize,
    operation: OperationId,
    action: Action,
}

struct Wait {
    operation: OperationId,
    region: RegionId,
    offset: u64,
    condition: Condition,
    value: u64,
    depends_on: Option<NodeId>,
}

struct MemberState {
    memory: VectorMemory,
    waits: Vec<Wait>,
    events: Vec<Event>,
    /// Losses as seen by this rank, by rank, and the time of each rank's silence.
    lost: Vec<bool>,
    silent_ns: Vec<u64>,
    wake: Instant,
    is_finished: bool,
}

/// State of the model without the jobs.
struct World {
    now: Instant,
    faults: Vec<Timed>,
    members: Vec<MemberState>,
    flights: Vec<Flight>,
    random: u64,
}

impl World {
    fn random(&mut self, below: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below.max(1)
    }

    fn holds(&self, is_meant: impl Fn(&Fault) -> bool) -> bool {
        self.faults.iter().any(|timed| timed.holds(self.now) && is_meant(&timed.fault))
    }

    fn is_dead(&self, rank: usize) -> bool {
        let died = |timed: &Timed| {
            matches!(timed.fault, Fault::Kill { rank: dead } if dead == rank) && timed.at_ns <= self.now.0
        };
        self.faults.iter().any(died)
    }

    fn is_still(&self, rank: usize) -> bool {
        self.is_dead(rank)
            || self.holds(|fault| matches!(fault, Fault::Pause { rank: still } if *still == rank))
    }

    fn is_revoked(&self, rank: usize) -> bool {
        let since = |timed: &Timed| {
            matches!(timed.fault, Fault::Revoke { rank: of } if of == rank) && timed.at_ns <= self.now.0
        };
        self.faults.iter().any(since)
    }

    fn arrives(&self, from: usize, to: usize) -> bool {
        !self.is_still(from)
            && !self.is_still(to)
            && !self.holds(|fault| match *fault {
                Fault::Cut { from: a, to: b } => (a, b) == (from, to),
                Fault::Mute { rank } => rank == from,
                Fault::Isolated { rank } => rank == to,
                _ => false,
            })
    }

    fn memory_fails(&mut self, rank: usize) -> bool {
        let percents =
            self.faults.iter().filter(|timed| timed.holds(self.now)).filter_map(|timed| match timed.fault {
                Fault::Fail { rank: of, percent } if of == rank => Some(percent),
                _ => None,
            });
        let percent = percents.max().unwrap_or(0);
        percent > 0 && self.random(100) < percent
    }

    fn launch(&mut self, source: usize, operation: OperationId, action: Action) {
        // Mostly microseconds, sometimes many milliseconds.
        let within_ns = if self.random(20) == 0 { 30 * MS } else { 20_000 };
        let due = Instant(self.now.0 + 1 + self.random(within_ns));
        self.flights.push(Flight { due, source, operation, action });
    }

    fn end(&mut self, rank: usize, operation: OperationId, result: Result<u64, OperationError>) {
        self.members[rank].events.push(Event::Completed { operation, result });
    }

    /// Simulates a millisecond of heartbeats.
    fn beat(&mut self) {
        for own in 0..self.members.len() {
            if self.is_still(own) {
                // A stopped rank receives no heartbeat and detects no loss in the meantime.
                self.members[own].silent_ns.fill(0);
                continue;
            }
            for other in (0..self.members.len()).filter(|other| *other != own) {
                let node = NodeId(other as u16);
                // A link that works in only one direction is down for both ends.
                let arrives = self.arrives(other, own) && self.arrives(own, other);
                let member = &mut self.members[own];
                if arrives {
                    member.silent_ns[other] = 0;
                    if std::mem::take(&mut member.lost[other]) {
                        member.events.push(Event::NodeReached { node });
                    }
                    continue;
                }
                member.silent_ns[other] += MS;
                if member.silent_ns[other] >= DETECTION_NS && !member.lost[other] {
                    self.lose(own, node);
                }
            }
        }
    }

    fn lose(&mut self, own: usize, node: NodeId) {
        self.members[own].lost[node.index()] = true;
        let is_to = |flight: &Flight| flight.source == own && flight.action.target().node == node;
        let (ended, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.flights).into_iter().partition(is_to);
        self.flights = kept;
        ended.iter().for_each(|flight| self.end(own, flight.operation, Err(OperationError::OutcomeUnknown)));
        let waits = std::mem::take(&mut self.members[own].waits);
        let (ended, kept): (Vec<_>, Vec<_>) =
            waits.into_iter().partition(|wait| wait.depends_on == Some(node));
        self.members[own].waits = kept;
        ended.iter().for_each(|wait| self.end(own, wait.operation, Err(OperationError::Unreachable)));
        self.members[own].events.push(Event::NodeLost { node });
    }

    /// Performs the operations that have arrived. Operations that cannot get through now are sent again later.
    fn deliver(&mut self) {
        let (due, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.flights).into_iter().partition(|flight| flight.due <= self.now);
        self.flights = kept;
        for mut flight in due {
            let to = flight.action.target().node.index();
            if self.arrives(flight.source, to) && self.arrives(to, flight.source) {
                let result = self.carry_out(&flight, to);
                self.end(flight.source, flight.operation, result);
                self.settle(to);
            } else {
                flight.due = Instant(self.now.0 + MS);
                self.flights.push(flight);
            }
        }
    }

    fn carry_out(&mut self, flight: &Flight, to: usize) -> Result<u64, OperationError> {
        let target = flight.action.target();
        if self.is_revoked(to) && target.region != CONTROL {
            return Err(OperationError::Revoked);
        }
        match &flight.action {
            Action::Write { bytes, .. } => self.write(to, target, bytes),
            Action::Put { source, signal, .. } => {
                let mut bytes = vec![0; source.length as usize];
                if !bytes.is_empty() {
                    if self.memory_fails(flight.source) {
                        return Err(OperationError::SourceFailed);
                    }
                    let memory = &mut self.members[flight.source].memory;
                    memory.read(source.region, source.offset, &mut bytes).expect("a source that is there");
                    self.write(to, target, &bytes)?;
                }
                let Some(signal) = signal else { return Ok(0) };
                let kind =
                    if signal.kind == SignalKind::Set { AtomicKind::Set } else { AtomicKind::FetchAdd };
                let atomic = Atomic { kind, width: Width::Eight, operand: signal.value, compare: 0 };
                self.atomic(to, signal.region, signal.offset, atomic)
            }
            Action::Load { into, .. } => {
                if self.memory_fails(to) || self.memory_fails(flight.source) {
                    return Err(OperationError::MemoryFailed);
                }
                let mut bytes = vec![0; into.length as usize];
                self.members[to]
                    .memory
                    .read(target.region, target.offset, &mut bytes)
                    .expect("a word that is there");
                self.members[flight.source]
                    .memory
                    .write(into.region, into.offset, &bytes)
                    .expect("a slot for it");
                Ok(0)
            }
            Action::Atomic { atomic, .. } => self.atomic(to, target.region, target.offset, *atomic),
        }
    }

    fn write(&mut self, to: usize, target: RemoteAddress, bytes: &[u8]) -> Result<u64, OperationError> {
        if self.memory_fails(to) {
            return Err(OperationError::MemoryFailed);
        }
        self.members[to]
            .memory
            .write(target.region, target.offset, bytes)
            .map_err(|_| OperationError::OutOfBounds)?;
        Ok(0)
    }

    fn atomic(
        &mut self,
        to: usize,
        region: RegionId,
        offset: u64,
        atomic: Atomic,
    ) -> Result<u64, OperationError> {
        if self.memory_fails(to) {
            return Err(OperationError::MemoryFailed);
        }
        let before = self.word(to, region, offset);
        let request =
            MemoryRequest { token: MemoryToken(0), region, access: MemoryAccess::Atomic { offset, atomic } };
        self.members[to].memory.execute(&request, &[]).expect("vectors answer at once");
        Ok(before)
    }

    fn word(&mut self, rank: usize, region: RegionId, offset: u64) -> u64 {
        let mut bytes = [0; 8];
        self.members[rank].memory.read(region, offset, &mut bytes).expect("a word that is there");
        u64::from_le_bytes(bytes)
    }

    fn settle(&mut self, rank: usize) {
        for wait in std::mem::take(&mut self.members[rank].waits) {
            let word = self.word(rank, wait.region, wait.offset);
            if wait.condition.holds(word, wait.value) {
                self.end(rank, wait.operation, Ok(word));
            } else {
                self.members[rank].waits.push(wait);
            }
        }
    }
}

struct Sits<'a> {
    world: &'a mut World,
    rank: usize,
}

impl Seat for Sits<'_> {
    fn is_reachable(&self, node: NodeId) -> bool {
        !self.world.members[self.rank].lost[node.index()]
    }

    fn command(&mut self, _now: Instant, command: Command<'_>) -> Result<Carried, CommandRefused> {
        let own = match command {
            Command::Load { into, .. } => Some(into.region),
            Command::Put { source, .. } if source.length > 0 => Some(source.region),
            Command::WaitUntil { region, .. } => Some(region),
            _ => None,
        };
        if own.is_some_and(|region| region != CONTROL) && self.world.is_revoked(self.rank) {
            return Err(CommandRefused::Invalid(InvalidCommand::Source));
        }
        let (operation, action) = match command {
            Command::Store { operation, target, data, completion: Completion::Visible } => {
                (operation, Action::Write { target, bytes: data.to_vec() })
            }
            Command::Load { operation, target, into } => (operation, Action::Load { target, into }),
            Command::Atomic { operation, target, atomic } => (operation, Action::Atomic { target, atomic }),
            Command::Put { operation, target, source, signal } => {
                (operation, Action::Put { target, source, signal })
            }
            Command::WaitUntil { operation, region, offset, condition, value, depends_on } => {
                if let Some(node) = depends_on.filter(|node| !self.is_reachable(*node)) {
                    return Err(CommandRefused::Unreachable(node));
                }
                let wait = Wait { operation, region, offset, condition, value, depends_on };
                self.world.members[self.rank].waits.push(wait);
                return Ok(Carried::Endpoint);
            }
            Command::Cancel { operation } => {
                let waits = &mut self.world.members[self.rank].waits;
                let before = waits.len();
                waits.retain(|wait| wait.operation != operation);
                if waits.len() < before {
                    self.world.end(self.rank, operation, Err(OperationError::Cancelled));
                }
                return Ok(Carried::Endpoint);
            }
            other => panic!("{other:?}"),
        };
        let target = action.target().node;
        if !self.is_reachable(target) {
            return Err(CommandRefused::Unreachable(target));
        }
        self.world.launch(self.rank, operation, action);
        Ok(Carried::Endpoint)
    }
}

/// Gives a rank's own job access to the rank's memory.
fn with_memory<T>(world: &mut World, rank: usize, act: impl FnOnce(&mut World, &mut VectorMemory) -> T) -> T {
    let mut memory = std::mem::take(&mut world.members[rank].memory);
    let result = act(world, &mut memory);
    world.members[rank].memory = memory;
    result
}

fn job(rank: usize, count: usize) -> Box<dyn Job> {
    let array =
        |rank: usize| (0..24_u32).flat_map(|member| (rank as f32 + member as f32).to_le_bytes()).collect();
    let arrays = Arc::new(HeldArrays { element: ElementType::F32, bytes: (0..count).map(array).collect() });
    let settings = CollectiveSettings {
        algorithms: vec![Algorithm::Ring],
        repetitions: 2,
        warm_up: 0,
        shrinks: true,
        start_timeout_ns: TIMEOUT_NS,
        drain_timeout_ns: TIMEOUT_NS,
        inputs: Inputs::Pattern,
        ..CollectiveSettings::default()
    };
    let ranks: Arc<[Rank]> =
        (0..count).map(|rank| Rank { name: format!("n{rank}"), tenant: Tenant(0) }).collect();
    let settings = settings.on_arrays(arrays, count);
    collective(NodeId(rank as u16), ranks, settings).expect("a job that fits")
}

/// Runs the script. The error names a rank that hangs, or a wrong result.
fn play(count: usize, faults: &[Timed], seed: u64) -> Result<(), String> {
    let mut jobs: Vec<_> = (0..count).map(|rank| job(rank, count)).collect();
    let member = |job: &dyn Job| {
        let mut memory = VectorMemory::default();
        job.regions().iter().for_each(|region| memory.add(region.region, region.length as usize));
        MemberState {
            memory,
            waits: Vec::new(),
            events: Vec::new(),
            lost: vec![false; count],
            silent_ns: vec![0; count],
            wake: Instant::ZERO,
            is_finished: false,
        }
    };
    let members = jobs.iter().map(|job| member(job.as_ref())).collect();
    let mut world =
        World { now: Instant::ZERO, faults: faults.to_vec(), members, flights: Vec::new(), random: seed };
    let mut beat_at = Instant(MS);
    while !(0..count).all(|rank| world.members[rank].is_finished || world.is_dead(rank)) {
        if world.now.0 > LIMIT_NS {
            let awaited =
                (0..count).filter(|rank| !world.members[*rank].is_finished && !world.is_dead(*rank));
            let waits: Vec<_> =
                awaited.map(|rank| format!("n{rank} waits: {}", jobs[rank].waiting_for())).collect();
            return Err(waits.join("\n"));
        }
        world.deliver();
        if world.now >= beat_at {
            world.beat();
            beat_at = Instant(world.now.0 + MS);
        }
        for (rank, job) in
            jobs.iter_mut().enumerate().filter(|(rank, _)| !world.is_still(*rank)).collect::<Vec<_>>()
        {
            poll(&mut world, rank, job);
        }
        let flights = world.flights.iter().map(|flight| flight.due);
        let wakes = (0..count).filter(|rank| !world.is_still(*rank)).map(|rank| world.members[rank].wake);
        let next = flights.chain(wakes).chain([beat_at]).min().unwrap_or(beat_at);
        world.now = Instant(next.0.max(world.now.0 + 1));
    }
    let mut wrong = Vec::new();
    for (rank, job) in jobs.iter_mut().enumerate().filter(|(rank, _)| !world.is_dead(*rank)) {
        let result = job.result();
        let is_wrong = result.mismatch_count > 0 || !result.failures.is_empty();
        is_wrong
            .then(|| wrong.push(format!("n{rank}: {} bytes, {:?}", result.mismatch_count, result.failures)));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Polls one rank until it has nothing more to do.
fn poll(world: &mut World, rank: usize, job: &mut Box<dyn Job>) {
    let is_due = world.members[rank].wake <= world.now || !world.members[rank].events.is_empty();
    if !is_due || world.members[rank].is_finished && !job.has_last_words() {
        world.members[rank].wake = if is_due { Instant::NEVER } else { world.members[rank].wake };
        return;
    }
    loop {
        let now = world.now;
        for event in std::mem::take(&mut world.members[rank].events) {
            job.handle_event(now, &event);
        }
        let progress =
            with_memory(world, rank, |world, memory| job.advance(now, &mut Sits { world, rank }, memory));
        world.settle(rank);
        world.members[rank].wake = match progress {
            Progress::Running(wake) => wake.map_or(Instant::NEVER, |at| Instant(at.0.max(now.0 + 1))),
            Progress::Finished => {
                world.members[rank].is_finished = true;
                Instant(now.0 + MS)
            }
        };
        if world.members[rank].events.is_empty() {
            return;
        }
    }
}

fn faults(count: usize) -> impl Strategy<Value = Vec<Timed>> {
    let rank = 0..count;
    let fault = prop_oneof![
        3 => (rank.clone(), rank.clone()).prop_map(|(from, to)| Fault::Cut { from, to }),
        2 => rank.clone().prop_map(|rank| Fault::Mute { rank }),
        2 => rank.clone().prop_map(|rank| Fault::Isolated { rank }),
        2 => rank.clone().prop_map(|rank| Fault::Pause { rank }),
        1 => rank.clone().prop_map(|rank| Fault::Kill { rank }),
        3 => rank.clone().prop_map(|rank| Fault::Revoke { rank }),
        3 => (rank, prop_oneof![1_u64..40, 40_u64..=100]).prop_map(|(rank, percent)| Fault::Fail { rank, percent }),
    ];
    // While the first attempt runs, while it breaks off, and while others are formed.
    let at_ns = prop_oneof![4 => 0..2 * MS, 2 => 0..60 * MS, 1 => 0..600 * MS];
    // Shorter and longer than the detection of a loss takes, and permanently.
    let for_ns = prop_oneof![3 => 1..DETECTION_NS, 3 => 1..10 * DETECTION_NS, 1 => Just(u64::MAX)];
    let timed = (fault, at_ns, for_ns).prop_map(|(fault, at_ns, for_ns)| Timed { fault, at_ns, for_ns });
    // A stopped rank resumes, as in fault scripts.
    let goes_on = |timed: &mut Timed| {
        if matches!(timed.fault, Fault::Pause { .. }) {
            timed.for_ns = timed.for_ns.min(10 * DETECTION_NS);
        }
    };
    prop::collection::vec(timed, 1..5).prop_map(move |mut faults| {
        faults.iter_mut().for_each(goes_on);
        faults
    })
}

fn scripts() -> impl Strategy<Value = (usize, Vec<Timed>, u64)> {
    (2_usize..=6).prop_flat_map(|count| (Just(count), faults(count), any::<u64>()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_rank_comes_to_its_end_and_no_result_is_wrong((count, faults, seed) in scripts()) {
        let played = play(count, &faults, seed);
        prop_assert!(played.is_ok(), "{}", played.unwrap_err());
    }
}
