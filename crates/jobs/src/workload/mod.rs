//! Job of a workload: every rank performs its graph of computations, messages and collectives.
//!
//! The rules are in `rackloom_workloads::model`. A computation is a time: in virtual time it passes, on processes the rank sleeps
//! or keeps its processor busy. One that is stated by its work gets the time of the rank's device (`durations.rs`). A message is a put whose signal counts it at the receiver, a collective is the puts and waits of a
//! schedule. What is checked is that each message and each transfer has arrived exactly once; contents have no meaning
//! (`check.rs`). A rank that does not compute waits for communication or for other ranks: this is the exposed part, which the
//! report gives.
//!
//! Modules: `prepared` (what all ranks derive equally) · `durations` · `lanes` (groups with schedules) · `layout` (memory) · `order` (dependencies) ·
//! `compute` · `messages` · `collective` · `measured` · `check` · `error`.

mod check;
mod collective;
mod compute;
mod durations;
mod error;
mod lanes;
mod layout;
mod measured;
mod messages;
mod order;
mod prepared;

use std::sync::Arc;

pub use rackloom_control::source::ComputeMode;
use rackloom_plan::faults::JobPosition;
use rackloom_protocol::{Instant, NodeId, RegionConfig, RegionId};
use rackloom_workloads::{Operation, Work};

pub use self::error::WorkloadError;
pub use self::layout::MemoryNeed;
pub use self::prepared::Prepared;
pub(crate) use self::prepared::Rack;

use self::check::BLOCK_BYTES;
use self::collective::{Groups, Step as CollectiveStep};
use self::compute::Processor;
use self::layout::{COUNTS, SIGNALS, SOURCE};
use self::measured::Measured;
use self::messages::{Received, Receives, Sends};
use self::order::Order;
use self::prepared::RankTable;
use crate::elided;
use crate::job::{Job, Output, Portion};
use crate::measure::OperationKind;
use crate::ranks::ensemble::{Ensemble, Limits, Play, Poll, Step};
use crate::ranks::request::{Outcome, Request, Tag};
use crate::ranks::{JobGroup, Rank};
use crate::report::{JobResult, Mismatch};

/// Maximum number of outstanding puts per rank.
const OUTSTANDING_MAX: usize = 256;

/// Settings of a workload's job. They are equal for every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadSettings {
    /// Seed of the data.
    pub seed: u64,
    /// Seed of the keys of regions.
    pub key_seed: u64,
    /// Performance of computations. Virtual time has no processor to keep busy: there it is [`ComputeMode::Sleep`].
    pub compute: ComputeMode,
    /// Longest time of a computation without progress of the job, in nanoseconds: less than the watchdog waits.
    pub progress_ns: u64,
    /// Longest time at the start without another rank that can be reached, in nanoseconds.
    pub start_timeout_ns: u64,
    /// Time to wait for outstanding operations after a break-off, in nanoseconds.
    pub drain_timeout_ns: u64,
}

/// Returns one rank's part of the job of a workload. `ranks` are those that it was prepared for.
#[must_use]
pub fn workload(
    rank: NodeId,
    ranks: Arc<[Rank]>,
    prepared: Arc<Prepared>,
    settings: WorkloadSettings,
) -> Box<dyn Job> {
    debug_assert_eq!(prepared.tables.len(), ranks.len());
    let limits = Limits {
        start_timeout_ns: settings.start_timeout_ns,
        drain_timeout_ns: settings.drain_timeout_ns,
        outstanding_max: OUTSTANDING_MAX,
    };
    let play = Performer::new(rank.index(), prepared, settings);
    Box::new(Ensemble::new(rank, ranks, settings.key_seed, limits, play))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The source is filled up to here.
    Fill {
        done: u64,
    },
    BeforePlaying,
    Playing,
    BeforeCheck,
    /// The inbox is compared up to here.
    Check {
        done: u64,
    },
    Over,
}

/// One rank's part of the workload.
struct Performer {
    rank: usize,
    prepared: Arc<Prepared>,
    seed: u64,
    stage: Stage,
    order: Order,
    processor: Processor,
    sends: Sends,
    receives: Receives,
    groups: Groups,
    measured: Measured,
    verified_bytes: u64,
    is_elided: bool,
    mismatch: Option<Mismatch>,
}

impl Performer {
    fn new(rank: usize, prepared: Arc<Prepared>, settings: WorkloadSettings) -> Self {
        let (operations, table) = (&prepared.workload.ranks[rank], &prepared.tables[rank]);
        Self {
            rank,
            seed: settings.seed,
            stage: Stage::Fill { done: 0 },
            order: Order::new(operations),
            processor: Processor::new(settings.compute, settings.progress_ns),
            sends: Sends::new(table),
            receives: Receives::new(table),
            groups: Groups::new(table),
            measured: Measured::new(&prepared, operations),
            verified_bytes: 0,
            is_elided: false,
            mismatch: None,
            prepared,
        }
    }

    fn table(&self) -> &RankTable {
        &self.prepared.tables[self.rank]
    }

    fn operation(&self, operation: u32) -> &Operation {
        &self.prepared.workload.ranks[self.rank].operations()[operation as usize]
    }

    /// Fills the source block by block.
    fn fill(&mut self, poll: &mut Poll<'_>, done: u64) -> Step {
        let bytes = self.table().need.source_bytes;
        let length = BLOCK_BYTES.min(bytes - done);
        // Memory that keeps no payload needs none.
        let is_elided = poll.memory.elided_bytes(SOURCE).is_some();
        if length > 0 && !is_elided {
            let content = check::content(self.seed, done, length);
            if let Err(fault) = poll.memory.write(SOURCE, done, &content) {
                return Step::Broken(format!("own memory failed: {fault:?}"));
            }
        }
        let done = done + length;
        if is_elided || done == bytes {
            self.stage = Stage::BeforePlaying;
            return Step::Meet;
        }
        self.stage = Stage::Fill { done };
        Step::Again
    }

    /// Performs all operations that can be performed now.
    fn play(&mut self, poll: &mut Poll<'_>) -> Step {
        loop {
            for operation in self.order.take_ready() {
                self.begin(poll, operation);
            }
            self.compute(poll.now);
            self.communicate(poll);
            if !self.order.has_ready() {
                break;
            }
        }
        if self.order.is_over() {
            self.stage = Stage::BeforeCheck;
            return Step::Meet;
        }
        self.processor.step(poll.now)
    }

    /// Hands an operation that is ready to those who perform it.
    fn begin(&mut self, poll: &mut Poll<'_>, operation: u32) {
        let table = &self.prepared.tables[self.rank];
        let Operation { work, phase, .. } = *self.operation(operation);
        match work {
            Work::Compute { .. } | Work::Kernel { .. } => self.processor.add(operation),
            Work::Send { .. } => self.sends.add(table, operation),
            Work::Receive { .. } => {
                self.measured.begun(phase, poll.now);
                let received = self.receives.add(table, operation);
                self.receive(poll, received);
            }
            Work::Collective { .. } => self.groups.add(table, operation),
        }
    }

    /// Ends computations that are due, and begins the next one.
    fn compute(&mut self, now: Instant) {
        loop {
            let operations = self.prepared.workload.ranks[self.rank].operations();
            let duration_ns = |operation: u32| match operations[operation as usize].work {
                Work::Compute { duration_ns } => duration_ns,
                _ => 0,
            };
            let ended = self.processor.advance(now, duration_ns);
            let Some(computed) = ended else { break };
            let phase = self.operation(computed.operation).phase;
            self.measured.begun(phase, computed.begun);
            self.measured.computed(phase, computed.ended.since(computed.begun));
            self.end(now, computed.operation);
        }
        if let Some(begun) = self.processor.begun_at(now) {
            self.measured.begun(self.operation(begun).phase, now);
        }
    }

    /// Goes on with collectives, then with messages. Operations outside of collectives wait for space behind them.
    fn communicate(&mut self, poll: &mut Poll<'_>) {
        let prepared = Arc::clone(&self.prepared);
        let (table, now) = (&prepared.tables[self.rank], poll.now);
        let operations = prepared.workload.ranks[self.rank].operations();
        let Self { groups, measured, order, .. } = self;
        groups.advance(poll, &prepared, table, &mut |step| match step {
            CollectiveStep::Begun { operation } => measured.begun(operations[operation as usize].phase, now),
            CollectiveStep::Sent { operation, bytes } => {
                measured.sent(operations[operation as usize].phase, bytes);
            }
            CollectiveStep::Ended { operation } => {
                measured.ended(operations[operation as usize].phase, now);
                order.end(operation);
            }
        });
        while poll.issuer.has_space() {
            let Some(operation) = self.sends.pop_due() else { break };
            let Operation { work: Work::Send { to, bytes, .. }, phase, .. } = operations[operation as usize]
            else {
                continue;
            };
            let channel = &table.outgoing[table.roles[operation as usize].queue as usize];
            let body = messages::put(poll.job_group, channel, bytes);
            poll.issuer.submit(Request::new(Tag::Phase { peer: to, item: operation }, body));
            self.measured.begun(phase, now);
            self.measured.sent(phase, bytes);
        }
    }

    /// Ends receives, and waits for the next one of the channel.
    fn receive(&mut self, poll: &mut Poll<'_>, received: Received) {
        for operation in received.ended {
            self.end(poll.now, operation);
        }
        if let Some(operation) = received.wait
            && let Work::Receive { from, .. } = self.operation(operation).work
        {
            let body = messages::wait(self.table(), operation);
            poll.issuer.submit_urgent(Request::new(Tag::Phase { peer: from, item: operation }, body));
        }
    }

    fn end(&mut self, now: Instant, operation: u32) {
        self.measured.ended(self.operation(operation).phase, now);
        self.order.end(operation);
    }

    /// Compares counts and bytes with the workload, and the inbox block by block.
    fn check(&mut self, poll: &mut Poll<'_>, done: u64) -> Result<Step, String> {
        let prepared = Arc::clone(&self.prepared);
        let table = &prepared.tables[self.rank];
        if done == 0 {
            check::check_counts(poll, &prepared, table)?;
            self.is_elided = check::check_bytes(poll, table)?;
        }
        let bytes = table.need.inbox_bytes;
        let length = BLOCK_BYTES.min(bytes - done);
        if length > 0 && !self.is_elided {
            self.mismatch = check::check_block(poll, self.seed, done, length)?;
            if self.mismatch.is_none() {
                self.verified_bytes += length;
            }
        }
        let done = done + length;
        if self.is_elided || done == bytes || self.mismatch.is_some() {
            self.stage = Stage::Over;
            return Ok(Step::Done);
        }
        self.stage = Stage::Check { done };
        Ok(Step::Again)
    }

    /// Describes an operation of this rank.
    fn description(&self, job_group: &JobGroup, operation: u32) -> String {
        let Operation { work, phase, .. } = self.operation(operation);
        let what = match *work {
            Work::Compute { duration_ns } => format!("computing {duration_ns} ns"),
            Work::Kernel { flops, bytes } => format!("computing {flops} operations on {bytes} bytes"),
            Work::Send { to, bytes, tag } => {
                format!("sending {bytes} bytes to {} with tag {tag}", job_group.name(to))
            }
            Work::Receive { from, bytes, tag } => {
                format!("receiving {bytes} bytes of {} with tag {tag}", job_group.name(from))
            }
            Work::Collective { group, kind, bytes, .. } => {
                format!("{} of {bytes} bytes in group {group}", kind.name())
            }
        };
        let phase = self.prepared.workload.phases.get(usize::from(*phase));
        let phase = phase.map_or_else(String::new, |phase| format!(" in phase {phase}"));
        format!("operation {operation}, {what}{phase}")
    }
}

impl Play for Performer {
    fn regions(&self, job_group: &JobGroup) -> Vec<RegionConfig> {
        self.table().need.regions(job_group)
    }

    fn word_regions(&self) -> Vec<RegionId> {
        vec![COUNTS, SIGNALS]
    }

    fn advance(&mut self, poll: &mut Poll<'_>) -> Step {
        match self.stage {
            Stage::Fill { done } => self.fill(poll, done),
            Stage::BeforePlaying | Stage::BeforeCheck => Step::Meet,
            Stage::Playing => self.play(poll),
            Stage::Check { done } => self.check(poll, done).unwrap_or_else(Step::Broken),
            Stage::Over => Step::Done,
        }
    }

    fn met(&mut self, now: Instant) {
        self.stage = match self.stage {
            Stage::BeforePlaying => {
                self.measured.begin(now);
                Stage::Playing
            }
            Stage::BeforeCheck => Stage::Check { done: 0 },
            stage => stage,
        };
    }

    fn succeeded(&mut self, poll: &mut Poll<'_>, outcome: &Outcome, value: u64) -> Result<(), String> {
        let Tag::Phase { item: operation, .. } = outcome.tag else { return Ok(()) };
        let table = &self.prepared.tables[self.rank];
        let is_wait = outcome.kind == OperationKind::WaitUntil;
        let work = self.operation(operation).work;
        match work {
            Work::Receive { .. } => {
                let received = self.receives.arrived(table, operation, value);
                self.receive(poll, received);
            }
            Work::Collective { .. } if is_wait => self.groups.arrived(table, operation),
            Work::Collective { .. } => self.groups.visible(table, operation),
            Work::Send { .. } | Work::Compute { .. } | Work::Kernel { .. } => self.end(poll.now, operation),
        }
        Ok(())
    }

    fn position(&self, job_group: &JobGroup) -> String {
        let (over, total) = (self.order.over(), self.order.total());
        let current = self
            .order
            .first_unfinished()
            .map_or_else(String::new, |operation| format!(", at {}", self.description(job_group, operation)));
        format!("workload {}, {over} of {total} operations over{current}", self.prepared.name())
    }

    fn contribute(&self, result: &mut JobResult) {
        result.verified_bytes += self.verified_bytes;
        result.mismatch_count += u64::from(self.mismatch.is_some());
        result.mismatches.extend(self.mismatch.clone());
        result.workload = Some(self.measured.part());
        result.notes.extend(self.prepared.algorithms());
        result.notes.extend(self.is_elided.then(|| elided::note(check::CHECKS)));
    }

    fn output(&self) -> Option<Output> {
        None
    }

    /// Returns the progress in operations.
    fn portion(&self) -> Portion {
        Portion::new(self.order.over() as u64, self.order.total() as u64)
    }

    /// Returns run 1, with a rank's operations as steps.
    fn reached(&self) -> Option<JobPosition> {
        let step = match self.stage {
            Stage::Playing => self.order.over() as u64 + 1,
            Stage::BeforeCheck | Stage::Check { .. } => u64::MAX,
            _ => return None,
        };
        Some(JobPosition { run: 1, step })
    }
}
