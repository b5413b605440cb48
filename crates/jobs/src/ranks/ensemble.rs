//! Job of ranks that run the same program together: gather, play, meet, play on, and end together.
//!
//! The program is a [`Play`]. It handles neither barriers nor losses. When a rank is lost, or an operation fails, each
//! rank breaks off on its own: it notifies the others, lets outstanding operations complete, and finishes with a
//! failure that names the lost ranks. No wait is endless: each wait names the node that it depends on, a rank that
//! breaks off notifies all others, and a timeout is the last resort.

use std::collections::BTreeSet;
use std::sync::Arc;

use rackloom_control::recorder::{OperationRecording, RecentOperations};
use rackloom_plan::faults::JobPosition;
use rackloom_protocol::{
    Access, Completion, Condition, Event, Instant, JobMemory, NodeId, RegionConfig, RegionId,
};

use super::barrier::Barrier;
use super::issuer::Issuer;
use super::observer::Observer;
use super::request::{Body, Failure, Outcome, Request, Seat, Tag};
use super::start::{StartWait, Unreached};
use super::{ABORT_WORD, BreakOff, CONTROL, CONTROL_BYTES, JobGroup, NOTICES_REPEATED_MAX, Rank};
use crate::job::{Job, Output, Portion, Progress};
use crate::report::JobResult;

/// Time between two checks of which ranks are reachable, at the start, in nanoseconds.
const GATHER_INTERVAL_NS: u64 = 1_000_000;
/// Time until a command is offered again to a busy endpoint, if no event comes first, in nanoseconds.
const RETRY_INTERVAL_NS: u64 = 10_000;
/// Maximum number of failures that are kept as text.
const FAILURES_MAX: usize = 16;

/// Result of one step of a play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// An outstanding operation must complete first.
    Waiting,
    /// There is more local work. Advance again at once.
    Again,
    /// An outstanding operation must complete first, or this time must come.
    Until(Instant),
    /// All ranks must reach this point before the play goes on.
    Meet,
    /// The rank's part is over.
    Done,
    /// The play cannot go on, for this reason.
    Broken(String),
}

/// Resources of a play during one poll.
pub(crate) struct Poll<'a> {
    pub(crate) now: Instant,
    pub(crate) job_group: &'a JobGroup,
    pub(crate) issuer: &'a mut Issuer,
    pub(crate) memory: &'a mut dyn JobMemory,
}

/// Program that the ranks run together. Every rank returns [`Step::Meet`] equally often.
pub(crate) trait Play: Send {
    /// Returns the regions beside [`CONTROL`].
    fn regions(&self, job_group: &JobGroup) -> Vec<RegionConfig>;
    /// Returns the regions of [`Job::word_regions`] beside [`CONTROL`].
    fn word_regions(&self) -> Vec<RegionId> {
        Vec::new()
    }
    /// Advances as far as possible without waiting, or as far as one poll may take.
    fn advance(&mut self, poll: &mut Poll<'_>) -> Step;
    /// Records that all ranks have met.
    fn met(&mut self, now: Instant);
    /// Records that a request of the play succeeded with `value`. An error ends the play.
    fn succeeded(&mut self, poll: &mut Poll<'_>, outcome: &Outcome, value: u64) -> Result<(), String>;
    /// Returns a description of the point that the rank has reached in the program.
    fn position(&self, job_group: &JobGroup) -> String;
    /// Adds the findings and measurements to `result`.
    fn contribute(&self, result: &mut JobResult);
    /// Returns the location of the job's result in memory, once the job is complete.
    fn output(&self) -> Option<Output>;
    /// Returns the progress of the play.
    fn portion(&self) -> Portion;
    /// Returns the point that the play has reached, for faults that wait for it.
    fn reached(&self) -> Option<JobPosition> {
        None
    }
}

/// Timeouts and limits of an ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Longest time at the start without another rank that can be reached, in nanoseconds.
    pub(crate) start_timeout_ns: u64,
    /// Time to wait for outstanding operations after a break-off, in nanoseconds.
    pub(crate) drain_timeout_ns: u64,
    /// Maximum number of outstanding operations per rank, not counting waits.
    pub(crate) outstanding_max: usize,
}

/// Stage of a rank's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Gather(StartWait),
    Playing,
    Meeting { is_last: bool },
    Close,
    BreakOff { until: Instant },
    Over,
}

/// One rank of a job that plays `P`.
pub(crate) struct Ensemble<P> {
    job_group: JobGroup,
    issuer: Issuer,
    play: P,
    barrier: Barrier,
    stage: Stage,
    /// Ranks that are not reached at the start.
    unreached: Unreached,
    limits: Limits,
    lost: BTreeSet<u16>,
    /// Ranks that could not be notified that this rank has broken off.
    unnotified: BTreeSet<u16>,
    notices_repeated: u32,
    failures: Vec<String>,
    failures_omitted: u64,
    /// Descriptions of break-offs that a loss explains.
    clean_errors: Vec<String>,
    /// Descriptions of break-offs that a refusal by memory explains, although the access was correct.
    refusals: Vec<String>,
    is_complete: bool,
    steps: u64,
    /// Time at which the play must be polled again, even without an event.
    wake_at: Option<Instant>,
}

impl<P: Play> Ensemble<P> {
    pub(crate) fn new(rank: NodeId, ranks: Arc<[Rank]>, key_seed: u64, limits: Limits, play: P) -> Self {
        let issuer = Issuer::new(limits.outstanding_max, limits.start_timeout_ns);
        let barrier = Barrier::new((0..ranks.len() as u16).collect(), rank.0);
        Self {
            job_group: JobGroup::new(rank.0, ranks, key_seed),
            issuer,
            play,
            barrier,
            stage: Stage::Gather(StartWait::new(limits.start_timeout_ns)),
            unreached: Unreached::default(),
            limits,
            lost: BTreeSet::new(),
            unnotified: BTreeSet::new(),
            notices_repeated: 0,
            failures: Vec::new(),
            failures_omitted: 0,
            clean_errors: Vec::new(),
            refusals: Vec::new(),
            is_complete: false,
            steps: 0,
            wake_at: None,
        }
    }

    /// Polls the job once, on any seat.
    pub(crate) fn poll(&mut self, now: Instant, seat: &mut dyn Seat, memory: &mut dyn JobMemory) -> Progress {
        let mut is_busy = false;
        loop {
            let before = self.progress();
            while let Some(outcome) = self.issuer.pop_outcome() {
                self.handle_outcome(now, memory, &outcome);
            }
            is_busy |= self.act(now, seat, memory);
            self.issuer.pump(now, seat);
            if is_busy || self.progress() == before {
                break;
            }
        }
        match self.stage {
            Stage::Over => Progress::Finished,
            _ if is_busy => Progress::Running(Some(now)),
            Stage::Gather(wait) => {
                let look_again = now + GATHER_INTERVAL_NS;
                Progress::Running(Some(wait.until().map_or(look_again, |until| until.min(look_again))))
            }
            _ if self.issuer.is_blocked() => Progress::Running(Some(now + RETRY_INTERVAL_NS)),
            Stage::BreakOff { until } => Progress::Running(Some(until)),
            Stage::Playing => Progress::Running(self.wake_at),
            _ => Progress::Running(None),
        }
    }

    fn progress(&self) -> u64 {
        self.issuer.progress() + self.steps
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.steps += 1;
    }

    /// Does the work of the current stage. Returns whether there is more local work to do at once.
    fn act(&mut self, now: Instant, seat: &dyn Seat, memory: &mut dyn JobMemory) -> bool {
        match self.stage {
            Stage::Gather(wait) => self.gather(now, wait, seat),
            Stage::Playing => return self.play_on(now, memory),
            Stage::Meeting { is_last } => {
                if self.barrier.is_over() {
                    self.barrier.finish(now, &mut self.issuer);
                    self.pass(now, is_last);
                }
            }
            Stage::Close => {
                if self.issuer.is_empty() {
                    self.is_complete = true;
                    self.enter(Stage::Over);
                }
            }
            Stage::BreakOff { until } => {
                if self.issuer.is_empty() || now >= until {
                    self.finish_broken_off();
                }
            }
            Stage::Over => {}
        }
        false
    }

    /// Begins the play once every other rank can be reached. Each rank that is reached counts as progress for the watchdog.
    fn gather(&mut self, now: Instant, mut wait: StartWait, seat: &dyn Seat) {
        let others = self.job_group.others();
        let is_whole = self.unreached.look(wait.is_over(now), others, self.job_group.ranks.len(), |rank| {
            seat.is_reachable(NodeId(rank))
        });
        self.steps += u64::from(wait.record(now, self.unreached.ranks().len()));
        self.stage = Stage::Gather(wait);
        if self.unreached.ranks().is_empty() {
            let wait = Body::WaitUntil {
                region: CONTROL,
                offset: 8 * ABORT_WORD,
                condition: Condition::NotEqual,
                value: 0,
                depends_on: None,
            };
            self.issuer.submit_urgent(Request::new(Tag::AbortWait, wait));
            self.enter(Stage::Playing);
        } else if is_whole && wait.is_over(now) {
            let missing = self.unreached.ranks().to_vec();
            missing.into_iter().for_each(|rank| self.lose(rank));
            self.break_off(now, BreakOff::Loss("some ranks could not be reached at the start".to_owned()));
        }
    }

    fn play_on(&mut self, now: Instant, memory: &mut dyn JobMemory) -> bool {
        let mut poll = Poll { now, job_group: &self.job_group, issuer: &mut self.issuer, memory };
        match self.play.advance(&mut poll) {
            Step::Waiting => self.wake_at = None,
            Step::Until(at) => self.wake_at = Some(at),
            Step::Again => {
                self.steps += 1;
                return true;
            }
            Step::Meet => self.meet(now, false),
            Step::Done => self.meet(now, true),
            Step::Broken(reason) => self.break_off(now, BreakOff::Fault(reason)),
        }
        false
    }

    fn meet(&mut self, now: Instant, is_last: bool) {
        self.barrier.begin(now, &self.job_group, &mut self.issuer);
        self.enter(Stage::Meeting { is_last });
    }

    fn pass(&mut self, now: Instant, is_last: bool) {
        if is_last {
            self.issuer.cancel_waits();
            self.enter(Stage::Close);
        } else {
            self.play.met(now);
            self.enter(Stage::Playing);
        }
    }

    /// Processes the result of a request.
    fn handle_outcome(&mut self, now: Instant, memory: &mut dyn JobMemory, outcome: &Outcome) {
        if let (Err(failure), Tag::AbortNotice, Some(peer)) = (outcome.result, outcome.tag, outcome.target) {
            self.handle_unnotified(now, peer, failure);
        }
        if matches!(self.stage, Stage::Close | Stage::BreakOff { .. } | Stage::Over) {
            return;
        }
        match (outcome.result, outcome.tag) {
            (Err(failure), _) => self.handle_failure(now, outcome, failure),
            (Ok(notice), Tag::AbortWait) => self.handle_abort(now, notice),
            (Ok(value), Tag::BarrierSignal | Tag::BarrierWait) => {
                if !self.barrier.is_right(outcome, value) {
                    let what = outcome.kind.name();
                    self.fail(format!("a barrier's {what} ended with {value} at {}", self.position()));
                }
                self.barrier.succeeded(&self.job_group, &mut self.issuer);
            }
            (Ok(_), Tag::AbortNotice) => {}
            (Ok(value), Tag::Phase { .. }) => {
                let mut poll = Poll { now, job_group: &self.job_group, issuer: &mut self.issuer, memory };
                if let Err(reason) = self.play.succeeded(&mut poll, outcome, value) {
                    self.break_off(now, BreakOff::Fault(reason));
                }
            }
        }
    }

    fn handle_failure(&mut self, now: Instant, outcome: &Outcome, failure: Failure) {
        match outcome.target {
            Some(node) if failure.is_loss() => {
                self.lose(node.0);
                self.break_off(now, BreakOff::Loss(self.losses()));
            }
            target => {
                let target =
                    target.map_or_else(|| "all".to_owned(), |node| self.job_group.name(node.0).to_owned());
                let text = format!("{} to {target} ended with: {}", outcome.kind.name(), failure.name());
                let is_refusal = failure.is_refusal() || failure.is_of_new_incarnation();
                self.break_off(now, if is_refusal { BreakOff::Refusal(text) } else { BreakOff::Fault(text) });
            }
        }
    }

    /// Processes the notice of another rank that broke off. The notice may name a lost rank.
    fn handle_abort(&mut self, now: Instant, notice: u64) {
        let (sender, lost) = (notice as u16, (notice >> 16) as u16);
        if let Some(lost) = lost.checked_sub(1) {
            self.lose(lost);
        }
        let sender = self.job_group.name(sender.wrapping_sub(1)).to_owned();
        self.break_off(now, BreakOff::Loss(format!("{sender} broke off")));
    }

    fn handle_loss(&mut self, now: Instant, node: NodeId) {
        let is_rank = node.index() < self.job_group.ranks.len();
        if is_rank && !matches!(self.stage, Stage::Close | Stage::Over) {
            self.lose(node.0);
            self.break_off(now, BreakOff::Loss(self.losses()));
        }
    }

    fn lose(&mut self, rank: u16) {
        if usize::from(rank) < self.job_group.ranks.len() && rank != self.job_group.rank {
            self.lost.insert(rank);
            self.issuer.lose(NodeId(rank));
        }
    }

    /// Stops the work, notifies the others, and lets outstanding operations complete.
    fn break_off(&mut self, now: Instant, reason: BreakOff) {
        if matches!(self.stage, Stage::BreakOff { .. } | Stage::Over) {
            return;
        }
        let position = self.position();
        match reason {
            BreakOff::Loss(reason) => self.clean_errors.push(format!("broke off at {position}: {reason}")),
            BreakOff::Fault(reason) => self.fail(format!("broke off at {position}: {reason}")),
            BreakOff::Refusal(reason) => self.refusals.push(format!("broke off at {position}: {reason}")),
        }
        self.issuer.break_off();
        // A rank that is lost to this one may be live and wait for it. It is notified as well, if possible.
        self.job_group.others().for_each(|peer| self.notify_abort(peer));
        let until = now + self.limits.drain_timeout_ns;
        self.enter(Stage::BreakOff { until });
    }

    /// Notifies `peer` that this rank has broken off.
    fn notify_abort(&mut self, peer: u16) {
        let lost = self.lost.first().map_or(0, |lost| u64::from(*lost) + 1);
        let notice = (u64::from(self.job_group.rank) + 1) | lost << 16;
        let target = self.job_group.address(peer, CONTROL, 8 * ABORT_WORD);
        let data = notice.to_le_bytes().to_vec();
        let body = Body::Store { target, data, completion: Completion::Visible };
        self.issuer.submit_urgent(Request::new(Tag::AbortNotice, body));
    }

    /// Handles a notice that did not arrive. Memory that fails intermittently may accept the next notice, and a lost
    /// rank may return. A notice is not repeated so late that it could not complete before the drain deadline.
    fn handle_unnotified(&mut self, now: Instant, peer: NodeId, failure: Failure) {
        let ends_in_time = match self.stage {
            Stage::BreakOff { until } => now + self.limits.drain_timeout_ns / 2 < until,
            _ => true,
        };
        if failure.may_pass() && ends_in_time && self.notices_repeated < NOTICES_REPEATED_MAX {
            self.notices_repeated += 1;
            self.notify_abort(peer.0);
        } else {
            self.unnotified.insert(peer.0);
        }
    }

    /// Handles a node that is reachable again. The node may not have noticed the loss, and may wait for work that this
    /// rank has given up.
    fn handle_reached(&mut self, node: NodeId) {
        if self.unnotified.remove(&node.0) {
            self.notify_abort(node.0);
        }
    }

    fn has_broken_off(&self) -> bool {
        self.stage == Stage::Over && !self.is_complete
    }

    fn finish_broken_off(&mut self) {
        // A notice without a path to its target is not outstanding.
        if self.issuer.has_outstanding() {
            let waiting = self.issuer.waiting_for(|node| self.job_group.name(node.0).to_owned());
            self.fail(format!("operations did not end in time: {waiting}"));
        }
        self.enter(Stage::Over);
    }

    fn losses(&self) -> String {
        format!("lost nodes [{}]", self.lost_names().join(", "))
    }

    fn lost_names(&self) -> Vec<String> {
        self.lost.iter().map(|rank| self.job_group.name(*rank).to_owned()).collect()
    }

    fn fail(&mut self, failure: String) {
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(failure);
        } else {
            self.failures_omitted += 1;
        }
    }

    /// Returns a description of the point that the rank has reached.
    fn position(&self) -> String {
        match self.stage {
            Stage::Gather(_) => "the start, waiting until every rank can be reached".to_owned(),
            Stage::Playing => self.play.position(&self.job_group),
            Stage::Meeting { is_last } => {
                let awaited = self.job_group.name(self.barrier.waits_for());
                let which = if is_last { "the last barrier" } else { "the barrier before" };
                let position =
                    if is_last { String::new() } else { format!(" {}", self.play.position(&self.job_group)) };
                format!("{which}{position}, waiting for {awaited}")
            }
            Stage::Close => "the end, closing".to_owned(),
            Stage::BreakOff { .. } => "broken off, waiting for outstanding operations".to_owned(),
            Stage::Over => "the end".to_owned(),
        }
    }
}

impl<P: Play> Job for Ensemble<P> {
    fn regions(&self) -> Vec<RegionConfig> {
        let control = self.job_group.region(CONTROL, CONTROL_BYTES, Access::ALL);
        std::iter::once(control).chain(self.play.regions(&self.job_group)).collect()
    }

    fn word_regions(&self) -> Vec<RegionId> {
        std::iter::once(CONTROL).chain(self.play.word_regions()).collect()
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
            Event::NodeLost { node } | Event::NodeRestarted { node } => {
                self.issuer.known_lost(node);
                self.handle_loss(now, node);
            }
            Event::NodeReached { node } => self.handle_reached(node),
            _ => {}
        }
    }

    fn advance(&mut self, now: Instant, seat: &mut dyn Seat, memory: &mut dyn JobMemory) -> Progress {
        self.poll(now, seat, memory)
    }

    fn waiting_for(&self) -> String {
        let outstanding = self.issuer.waiting_for(|node| self.job_group.name(node.0).to_owned());
        format!("{} ({outstanding})", self.position())
    }

    fn result(&mut self) -> JobResult {
        let mut result = JobResult {
            complete: self.is_complete,
            operations: self.issuer.measurements.clone(),
            oracles: self.issuer.verdicts(|node| self.job_group.name(node.0).to_owned()),
            failures: self.failures.clone(),
            failures_omitted: self.failures_omitted,
            clean_errors: self.clean_errors.clone(),
            refusals: self.refusals.clone(),
            lost_nodes: self.lost_names(),
            notes: self.issuer.observer.note().into_iter().collect(),
            spans: self.issuer.observer.spans("", |node| self.job_group.name(node.0).to_owned()),
            ..JobResult::default()
        };
        self.play.contribute(&mut result);
        result
    }

    fn output(&self) -> Option<Output> {
        self.play.output().filter(|_| self.is_complete)
    }

    fn portion(&self) -> Option<Portion> {
        Some(self.play.portion())
    }

    fn reached(&self) -> Option<JobPosition> {
        self.play.reached()
    }

    fn has_last_words(&self) -> bool {
        self.has_broken_off() && !self.issuer.is_empty()
    }

    fn progress_count(&self) -> u64 {
        self.progress()
    }
}
