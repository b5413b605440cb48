//! Litmus job: every ordered pair of ranks, every kind of operation, and every byte checked by its owner.
//!
//! One rank is a state machine. It prepares its memory, meets the others at a barrier, and runs six phases (writes,
//! followed by a barrier, reads, order, messages, atomics, forbidden accesses). It meets the others again, and checks
//! its own memory. The expected content follows from seed, writer, slot and byte index alone. Then the next round
//! begins, with other patterns. `phase/` contains the operations, `layout.rs` the addresses.
//!
//! When a node is lost, or an operation fails that must not, the run is broken off. The rank notifies the others, waits
//! until outstanding operations have completed, checks what can still be checked, and finishes with a failure. No wait
//! is endless: waits name the node that they depend on, and a timeout is the last resort.
//!
//! The litmus does not judge speed, and it does not know the topology.

mod case;
mod fill;
mod findings;
mod lanes;
mod layout;
mod loss;
mod memory;
mod phase;
mod run_view;
mod settings;

use std::collections::BTreeSet;

use rackloom_control::recorder::{OperationRecording, RecentOperations};
use rackloom_plan::faults::JobPosition;
use rackloom_protocol::{Condition, Event, Instant, JobMemory, NodeId, RegionConfig};

use self::findings::Findings;
use self::lanes::Lanes;
use self::layout::{CONTROL, Layout};
use self::memory::Certainty;
use self::phase::{Atomics, Forbidden, Messages, Ordered, Phase, Poll, Reads, Writes};
use self::run_view::RunView;
use crate::job::{Job, Portion, Progress};
use crate::ranks::BreakOff;
use crate::ranks::Rank;
use crate::ranks::barrier::Barrier;
use crate::ranks::issuer::Issuer;
use crate::ranks::observer::Observer;
use crate::ranks::request::{Body, Matched, Outcome, Request, Seat, Tag};
use crate::ranks::start::StartWait;
use crate::report::JobResult;

pub use self::layout::LayoutError;
pub use self::settings::LitmusSettings;

/// Time between two checks of which ranks are reachable, at the start, in nanoseconds.
const GATHER_INTERVAL_NS: u64 = 1_000_000;
/// Time until a command is offered again to a busy endpoint, if no event comes first, in nanoseconds.
const RETRY_INTERVAL_NS: u64 = 10_000;

/// Next stage after a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Prepare,
    /// The check of the first phase: writes that a flush reported as visible must be there.
    Writes,
    Work,
    LastRound,
}

/// Stage of a rank.
enum Stage {
    /// The rank waits until every other rank can be reached.
    Gather(StartWait),
    Barrier(After),
    Phase(usize, Box<dyn Phase>),
    /// All work is done. The wait for abort notices is being cancelled.
    Close,
    /// The rank waits for outstanding operations to complete.
    BreakOff {
        until: Instant,
    },
    Over,
}

/// Number of [`phase`]s in a round.
const PHASES: u64 = 6;

/// Returns the phase of a round with this number; `None` after the last one.
fn phase(number: usize) -> Option<Box<dyn Phase>> {
    Some(match number {
        0 => Box::new(Writes::default()),
        1 => Box::new(Reads::default()),
        2 => Box::new(Ordered::default()),
        3 => Box::new(Messages::default()),
        4 => Box::new(Atomics::default()),
        5 => Box::new(Forbidden::default()),
        _ => return None,
    })
}

/// One rank of the litmus job.
pub struct Litmus {
    view: RunView,
    issuer: Issuer,
    lanes: Lanes,
    findings: Findings,
    barrier: Barrier,
    stage: Stage,
    lost: BTreeSet<u16>,
    /// Ranks that could not be notified that this rank has broken off.
    unnotified: BTreeSet<u16>,
    notices_repeated: u32,
    is_prepared: bool,
    is_complete: bool,
    stages_passed: u64,
    /// The latest phase of this round that was begun.
    phase: usize,
}

impl Litmus {
    /// Returns one rank of a run of `ranks`. The settings must be equal for all of them.
    pub fn new(rank: NodeId, ranks: Vec<Rank>, settings: LitmusSettings) -> Result<Self, LayoutError> {
        let layout = Layout::new(ranks.len() as u16, &settings)?;
        let view = RunView::new(rank.0, ranks, layout, settings);
        Ok(Self {
            issuer: Issuer::new(view.settings.outstanding_max, view.settings.start_timeout_ns),
            lanes: Lanes::new(&view.layout),
            findings: Findings::default(),
            barrier: Barrier::new(view.group(), view.rank),
            stage: Stage::Gather(StartWait::new(view.settings.start_timeout_ns)),
            lost: BTreeSet::new(),
            unnotified: BTreeSet::new(),
            notices_repeated: 0,
            is_prepared: false,
            is_complete: false,
            stages_passed: 0,
            phase: 0,
            view,
        })
    }

    /// Polls the job once, on any seat.
    fn poll(&mut self, now: Instant, seat: &mut dyn Seat, memory: &mut dyn JobMemory) -> Progress {
        loop {
            let before = self.progress();
            while let Some(outcome) = self.issuer.pop_outcome() {
                self.handle_outcome(now, memory, &outcome);
            }
            self.act(now, seat, memory);
            self.issuer.pump(now, seat);
            if self.progress() == before {
                break;
            }
        }
        match self.stage {
            Stage::Over => Progress::Finished,
            Stage::Gather(_) => Progress::Running(Some(now + GATHER_INTERVAL_NS)),
            _ if self.issuer.is_blocked() => Progress::Running(Some(now + RETRY_INTERVAL_NS)),
            Stage::BreakOff { until } => Progress::Running(Some(until)),
            _ => Progress::Running(None),
        }
    }

    fn progress(&self) -> u64 {
        self.issuer.progress() + self.stages_passed
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.stages_passed += 1;
    }

    /// Does the work of the current stage, as far as possible now.
    fn act(&mut self, now: Instant, seat: &dyn Seat, memory: &mut dyn JobMemory) {
        match &mut self.stage {
            Stage::Gather(wait) => {
                let wait = *wait;
                self.gather(now, wait, seat, memory);
            }
            Stage::Barrier(after) => {
                let after = *after;
                if self.barrier.is_over() {
                    self.barrier.finish(now, &mut self.issuer);
                    self.pass_barrier(now, after, memory);
                }
            }
            Stage::Phase(number, phase) => {
                let next = *number + 1;
                let mut poll = Poll {
                    view: &self.view,
                    memory,
                    issuer: &mut self.issuer,
                    lanes: &mut self.lanes,
                    findings: &mut self.findings,
                };
                let is_submitted = phase.submit(&mut poll);
                let has_seen_all = phase.look(&mut poll);
                if is_submitted && has_seen_all && self.issuer.is_idle() {
                    match next {
                        1 => self.enter_barrier(now, After::Writes),
                        _ => self.enter_phase(now, next),
                    }
                }
            }
            Stage::Close => {
                if self.issuer.is_empty() {
                    self.is_complete = true;
                    self.enter(Stage::Over);
                }
            }
            Stage::BreakOff { until } => {
                let is_late = now >= *until;
                if self.issuer.is_empty() || is_late {
                    self.finish_broken_off(memory);
                }
            }
            Stage::Over => {}
        }
    }

    /// Begins the first round once every other rank can be reached. Each rank that is reached counts as progress for the watchdog.
    fn gather(&mut self, now: Instant, mut wait: StartWait, seat: &dyn Seat, memory: &mut dyn JobMemory) {
        let others = || (0..self.view.ranks.len() as u16).filter(|rank| *rank != self.view.rank);
        let missing: Vec<_> = others().filter(|rank| !seat.is_reachable(NodeId(*rank))).collect();
        self.stages_passed += u64::from(wait.record(now, missing.len()));
        self.stage = Stage::Gather(wait);
        if missing.is_empty() {
            let offset = self.view.layout.abort_offset();
            let wait = Body::WaitUntil {
                region: CONTROL,
                offset,
                condition: Condition::NotEqual,
                value: 0,
                depends_on: None,
            };
            self.issuer.submit_urgent(Request::new(Tag::AbortWait, wait));
            self.begin_round(now, memory);
        } else if wait.is_over(now) {
            for rank in missing {
                self.lose(rank);
            }
            self.break_off(now, BreakOff::Loss("some ranks could not be reached at the start".to_owned()));
        }
    }

    fn begin_round(&mut self, now: Instant, memory: &mut dyn JobMemory) {
        memory::prepare(&self.view, memory, &mut self.findings);
        self.is_prepared = true;
        self.enter_barrier(now, After::Prepare);
    }

    fn enter_barrier(&mut self, now: Instant, after: After) {
        self.barrier.begin(now, &self.view, &mut self.issuer);
        self.enter(Stage::Barrier(after));
    }

    fn enter_phase(&mut self, now: Instant, number: usize) {
        self.phase = number;
        match phase(number) {
            Some(phase) => self.enter(Stage::Phase(number, phase)),
            None => self.enter_barrier(now, After::Work),
        }
    }

    fn pass_barrier(&mut self, now: Instant, after: After, memory: &mut dyn JobMemory) {
        match after {
            After::Prepare => self.enter_phase(now, 0),
            After::Writes => {
                memory::sweep_writes(&self.view, memory, &mut self.findings);
                self.enter_phase(now, 1);
            }
            After::Work => {
                memory::sweep(&self.view, memory, &mut self.findings, Certainty::Whole);
                if self.view.round + 1 < self.view.settings.rounds {
                    (self.view.round, self.phase) = (self.view.round + 1, 0);
                    self.begin_round(now, memory);
                } else {
                    self.enter_barrier(now, After::LastRound);
                }
            }
            After::LastRound => {
                memory::check_barrier_words(&self.view, memory, &mut self.findings, &self.barrier);
                phase::check_refusals(&self.view, &mut self.findings);
                self.issuer.cancel_waits();
                self.enter(Stage::Close);
            }
        }
    }

    /// Processes the result of a request.
    fn handle_outcome(&mut self, now: Instant, memory: &mut dyn JobMemory, outcome: &Outcome) {
        if let (Err(failure), Tag::AbortNotice, Some(peer)) = (outcome.result, outcome.tag, outcome.target) {
            self.handle_unnotified(peer, failure);
        }
        if matches!(self.stage, Stage::Close | Stage::BreakOff { .. } | Stage::Over) {
            return;
        }
        match (outcome.result, outcome.tag) {
            (Err(failure), _) => self.handle_failure(now, outcome, failure),
            (Ok(_), Tag::AbortWait) => self.handle_abort(now, memory),
            (Ok(value), Tag::BarrierSignal | Tag::BarrierWait) => {
                if !self.barrier.is_right(outcome, value) {
                    let what = outcome.kind.name();
                    self.findings
                        .fail(format!("a barrier's {what} ended with {value} at {}", self.position()));
                }
                self.barrier.succeeded(&self.view, &mut self.issuer);
            }
            (Ok(_), Tag::AbortNotice) => {}
            (Ok(_), Tag::Phase { peer, item }) => {
                if let Stage::Phase(_, phase) = &mut self.stage {
                    let mut poll = Poll {
                        view: &self.view,
                        memory,
                        issuer: &mut self.issuer,
                        lanes: &mut self.lanes,
                        findings: &mut self.findings,
                    };
                    phase.succeeded(&mut poll, outcome, peer, item);
                }
            }
        }
    }

    /// Returns a description of the point that the rank has reached.
    fn position(&self) -> String {
        let round = format!("round {} of {}", self.view.round + 1, self.view.settings.rounds);
        match &self.stage {
            Stage::Gather(_) => "the start, waiting until every rank can be reached".to_owned(),
            Stage::Barrier(after) => {
                let awaited = self.view.name(self.barrier.waits_for());
                let which = match after {
                    After::Prepare => "before the work",
                    After::Writes => "after the writes",
                    After::Work => "after the work",
                    After::LastRound => "at the end",
                };
                format!("{round}, barrier {which}, waiting for {awaited}")
            }
            Stage::Phase(_, phase) => match phase.waits_for(&self.view) {
                Some(waits) => format!("{round}, {}, waiting for {waits}", phase.name()),
                None => format!("{round}, {}", phase.name()),
            },
            Stage::Close => "the end, closing".to_owned(),
            Stage::BreakOff { .. } => format!("{round}, broken off, waiting for outstanding operations"),
            Stage::Over => "the end".to_owned(),
        }
    }
}

impl Job for Litmus {
    fn regions(&self) -> Vec<RegionConfig> {
        self.view.regions()
    }

    fn observe(&mut self, recording: OperationRecording) {
        self.issuer.observer = Observer::new(recording);
    }

    fn take_recent(&mut self) -> Option<RecentOperations> {
        Some(self.issuer.observer.take_recent())
    }

    fn handle_event(&mut self, now: Instant, event: &Event) {
        match *event {
            Event::Completed { operation, result } => self.issuer.completed(now, operation, result),
            Event::MessageMatched { operation, source, tag, .. } => {
                self.issuer.matched(operation, Matched { source, tag });
            }
            Event::NodeLost { node } | Event::NodeRestarted { node } => {
                self.issuer.known_lost(node);
                self.handle_loss(now, node);
            }
            Event::NodeReached { node } => self.handle_reached(node),
            Event::AccessRefused { source, error, .. } => self.findings.refused(source, error),
            _ => {}
        }
    }

    fn advance(&mut self, now: Instant, seat: &mut dyn Seat, memory: &mut dyn JobMemory) -> Progress {
        self.poll(now, seat, memory)
    }

    fn waiting_for(&self) -> String {
        let outstanding = self.issuer.waiting_for(|node| self.view.name(node.0).to_owned());
        format!("{} ({outstanding})", self.position())
    }

    fn result(&mut self) -> JobResult {
        let findings = &self.findings;
        JobResult {
            complete: self.is_complete,
            operations: self.issuer.measurements.clone(),
            oracles: self.issuer.verdicts(|node| self.view.name(node.0).to_owned()),
            verified_bytes: findings.verified_bytes,
            mismatches: findings.mismatches.clone(),
            mismatch_count: findings.mismatch_count,
            failures: findings.failures.clone(),
            failures_omitted: findings.failures_omitted,
            clean_errors: findings.clean_errors.clone(),
            refusals: findings.refusals.clone(),
            lost_nodes: self.lost_names(),
            notes: self
                .view
                .layout
                .shortfall(&self.view.settings)
                .into_iter()
                .chain(self.issuer.observer.note())
                .collect(),
            spans: self.issuer.observer.spans("", |node| self.view.name(node.0).to_owned()),
            ..JobResult::default()
        }
    }

    /// Returns the progress in phases.
    fn portion(&self) -> Option<Portion> {
        let (round, rounds) = (u64::from(self.view.round), u64::from(self.view.settings.rounds));
        Some(Portion::new(round * PHASES + self.phase as u64, rounds * PHASES))
    }

    /// Returns the current round as run, and its current phase as step.
    fn reached(&self) -> Option<JobPosition> {
        let step = match &self.stage {
            Stage::Phase(number, _) => *number as u64 + 1,
            Stage::Barrier(After::Work | After::LastRound) => u64::MAX,
            _ => return None,
        };
        Some(JobPosition { run: u64::from(self.view.round) + 1, step })
    }

    fn has_last_words(&self) -> bool {
        self.has_broken_off() && !self.issuer.is_empty()
    }

    fn progress_count(&self) -> u64 {
        self.progress()
    }
}

#[cfg(test)]
mod test_rack;
#[cfg(test)]
mod tests;
