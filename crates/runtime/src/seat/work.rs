//! Runtime of a GPU node with its job, and the job's result.
//!
//! The runtime continues after the job: peers may still read this member's memory or send through it. The result is written to its file block
//! by block between polls, so that neighbours do not take a node with a large result for dead.

use std::path::PathBuf;

use rackloom::{HostMemory, Runtime};
use rackloom_jobs::report::{MemoryReport, Verdict};
use rackloom_jobs::{Job, JobResult, Progress};
use rackloom_plan::faults::{FaultAction, MemoryConditions, MemoryFaults};
use rackloom_protocol::{Endpoint, Event, Instant, NodeId};

use super::incarnations::IncarnationChecks;
use super::memory;
use super::sharing::{OnSeat, Sharing};
use super::stop::StopAt;
use crate::request::arrays::ArrayWriter;

/// Directory and shape of the result.
pub(super) struct Results {
    pub(super) directory: PathBuf,
    pub(super) shape: Vec<u64>,
}

/// A job on its runtime.
pub(super) struct Work {
    pub(super) runtime: Runtime<Endpoint>,
    pub(super) sharing: Sharing,
    pub(super) job: Box<dyn Job>,
    /// Nothing more is to be done, the user's results included.
    pub(super) finished: bool,
    /// True if the job is not polled any more.
    is_dismissed: bool,
    rank: usize,
    results: Option<Results>,
    writer: Option<ArrayWriter>,
    /// Why there is no file.
    unwritten: Option<String>,
    stop_at: StopAt,
    /// Keys are revoked: whoever has mapped the memory is to hear of it.
    has_revoked: bool,
    /// Who watches whether frames of lives that are over are used, where a script makes such lives.
    lives: Option<IncarnationChecks>,
}

impl Work {
    pub(super) fn new(
        runtime: Runtime<Endpoint>,
        sharing: Sharing,
        job: Box<dyn Job>,
        rank: NodeId,
        results: Option<Results>,
        stop_at: StopAt,
    ) -> Self {
        Self {
            runtime,
            sharing,
            job,
            finished: false,
            is_dismissed: false,
            rank: rank.index(),
            results,
            writer: None,
            unwritten: None,
            stop_at,
            has_revoked: false,
            lives: None,
        }
    }

    /// See to it that no frame of a life that is over is used.
    pub(super) fn watch_incarnations(&mut self, lives: IncarnationChecks) {
        self.runtime.watch_arrivals(lives.watch());
        self.lives = Some(lives);
    }

    /// Frames in, the job's turn, frames out. Returns whether anything happened, and when the job wants to be called.
    pub(super) fn turn(&mut self, now: Instant, events: &mut Vec<Event>) -> (bool, Instant) {
        let Self { runtime, sharing, job, finished, rank, results, writer, unwritten, stop_at, .. } = self;
        let is_dismissed = self.is_dismissed;
        let commands = |now: Instant, endpoint: &mut Endpoint, memory: &mut HostMemory| {
            memory.set_time(now);
            sharing.poll(now, memory);
            let says_more = *finished && !is_dismissed && job.has_last_words();
            if says_more {
                let mut view = memory.view();
                let _ = job.advance(now, &mut OnSeat { endpoint, memory, sharing }, &mut view);
            }
            if *finished || is_dismissed || !sharing.is_settled() {
                return sharing.wake_at(now);
            }
            if writer.is_none() {
                let mut view = memory.view();
                let mut seat = OnSeat { endpoint, memory, sharing };
                if let Progress::Running(wake_at) = job.advance(now, &mut seat, &mut view) {
                    return wake_at.unwrap_or(Instant::NEVER).min(sharing.wake_at(now));
                }
                *writer = results.take().and_then(|results| begin(&**job, *rank, &results, unwritten));
            }
            let is_over = writer.as_mut().map_or(Ok(true), |writer| writer.advance(memory));
            *finished = is_over.unwrap_or_else(|error| {
                *unwritten = Some(error.to_string());
                true
            });
            if *finished { sharing.wake_at(now) } else { now }
        };
        let turned = runtime.turn_with(now, commands, &mut |event| events.push(event));
        stop_at.reached(|| job.waiting_for());
        self.sharing.take_events(events);
        turned
    }

    /// Applies the fault script to this node's memory and keys.
    pub(super) fn obey(&mut self, now: Instant, action: &FaultAction, new: impl FnOnce() -> MemoryFaults) {
        match action {
            FaultAction::Memory(conditions) => {
                self.sharing.withhold(*conditions != MemoryConditions::default() || self.has_revoked);
                self.runtime.memory_mut().set_faults(now, conditions, new);
            }
            FaultAction::Revoke => {
                self.has_revoked = true;
                self.sharing.withhold(true);
                let endpoint = self.runtime.member_mut();
                rackloom_jobs::data_regions(&*self.job).for_each(|region| endpoint.revoke(region));
            }
            _ => {}
        }
    }

    /// Sleeps until a frame arrives, a timer expires, or a peer of the server has changed a word of memory.
    pub(super) fn wait(&mut self, until: Instant) {
        let Self { runtime, sharing, .. } = self;
        let until = until.min(runtime.memory_mut().next_due());
        runtime.wait_unless(until, |memory| sharing.is_ready(memory));
    }

    /// The rack is over, whether the job is or not: it gets no more turns and lets go of what peers share, so that they can
    /// free it. They do the same.
    pub(super) fn dismiss(&mut self) {
        self.is_dismissed = true;
        self.sharing.let_go();
    }

    /// Whether a peer that is there has still mapped memory that a job that is over has no use for.
    pub(super) fn awaits_importers(&self) -> bool {
        let endpoint = self.runtime.member();
        self.finished && self.sharing.mapped_by().any(|peer| endpoint.is_reachable(peer))
    }

    /// Live shortest paths by destination, in the plan's order of members: the ports at which they begin.
    pub(super) fn paths(&self) -> Vec<Vec<u16>> {
        let endpoint = self.runtime.member();
        let members = endpoint.config().graph.members.len() as u16;
        (0..members).map(|node| endpoint.paths(NodeId(node)).map(|port| port.0).collect()).collect()
    }

    /// Returns the report about the memory now.
    pub(super) fn memory(&mut self) -> MemoryReport {
        memory::describe(self.runtime.memory_mut())
    }

    /// Of a job that is over: whether everything was right so far. A peer that dies later still counts against it.
    pub(super) fn verdict(&mut self) -> Option<Verdict> {
        let is_pass = self.finished && self.unwritten.is_none() && self.job.result().is_pass();
        self.finished.then_some(if is_pass { Verdict::Pass } else { Verdict::Fail })
    }

    /// What the job has found, and whether the user has got it. The memory of a job that is over is given back.
    pub(super) fn result(&mut self) -> JobResult {
        let mut held = self.memory();
        if self.finished {
            let (endpoint, memory) = self.runtime.parts_mut();
            held = memory::give_back(held, endpoint, &mut self.sharing, memory);
        }
        let mut result = self.job.result();
        result.paths = self.sharing.report();
        result.notes.extend(self.sharing.notes());
        result.memory = Some(held);
        self.lives.iter().for_each(|lives| result.oracles.merge(&lives.verdicts()));
        result.failures.extend(self.unwritten.iter().map(|why| format!("the result was not written: {why}")));
        result
    }
}

/// Begin to write the job's output, if it has one. A job that failed has none.
fn begin(
    job: &dyn Job,
    rank: usize,
    results: &Results,
    unwritten: &mut Option<String>,
) -> Option<ArrayWriter> {
    match ArrayWriter::begin(&results.directory, rank, job.output()?, &results.shape) {
        Ok(writer) => Some(writer),
        Err(error) => {
            *unwritten = Some(error.to_string());
            None
        }
    }
}
