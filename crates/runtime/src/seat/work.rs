//! Runtime of a GPU node with its job, and the job's result.
//!
//! The runtime continues after the job: peers may still read this member's memory or send through it. The
//! result is written to its file block by block between polls, so that neighbours do not report a node with a
//! large result as dead.

use std::path::PathBuf;

use rackloom::{HostMemory, Runtime, WaitPolicy};
use rackloom_jobs::report::{MemoryReport, Verdict};
use rackloom_jobs::{Job, JobResult, Progress};
use rackloom_plan::faults::{FaultAction, MemoryConditions, MemoryFaults};
use rackloom_protocol::{Endpoint, Event, Instant, NodeId};

use super::gpu_use::GpuSampling;
use super::incarnations::IncarnationChecks;
use super::ip::IpPort;
use super::memory;
use super::sharing::{OnSeat, Sharing};
use super::stop::StopAt;
use crate::request::arrays::ArrayWriter;

/// Time for which a member keeps a processor busy before its job begins, if there is a processor for each member, in
/// nanoseconds. Members that only wait for each other can share one processor for seconds although another one is
/// idle: while one runs, none of the others is ready to run, so the operating system sees no reason to move one.
const SETTLE_NS: u64 = 20_000_000;

/// Directory and shape of the result.
pub(super) struct Results {
    pub(super) directory: PathBuf,
    pub(super) shape: Vec<u64>,
}

/// Job of a GPU node on its runtime.
pub(super) struct Work {
    pub(super) runtime: Runtime<Endpoint>,
    pub(super) sharing: Sharing,
    pub(super) job: Box<dyn Job>,
    /// Interface of the program on the seat.
    pub(super) ip: Option<IpPort>,
    /// True once the job has ended and its results are written.
    pub(super) finished: bool,
    /// True if the job is not polled any more.
    is_ended: bool,
    rank: usize,
    results: Option<Results>,
    writer: Option<ArrayWriter>,
    /// Reason why the result was not written.
    unwritten: Option<String>,
    stop_at: StopAt,
    /// True once keys are revoked. Peers that have mapped the memory must use frames then.
    has_revoked: bool,
    /// Checks of the incarnations of received frames, under a script that starts successors.
    incarnations: Option<IncarnationChecks>,
    /// Samples of the GPU that holds the memory.
    gpu: Option<GpuSampling>,
    /// The job's progress at the last poll.
    progress: u64,
    /// Verdict of the ended job since its latest event.
    verdict: Option<Verdict>,
    /// Time for which the member keeps a processor busy before the job begins, in nanoseconds.
    settle_ns: u64,
    /// Time at which the job begins. `None` while peers exchange their memory.
    begins_at: Option<Instant>,
}

impl Work {
    pub(super) fn new(
        mut runtime: Runtime<Endpoint>,
        sharing: Sharing,
        job: Box<dyn Job>,
        rank: NodeId,
        results: Option<Results>,
        stop_at: StopAt,
    ) -> Self {
        let settle_ns = if runtime.policy() == WaitPolicy::EAGER { SETTLE_NS } else { 0 };
        let gpu = GpuSampling::of(runtime.memory_mut().device());
        Self {
            runtime,
            sharing,
            job,
            ip: None,
            finished: false,
            is_ended: false,
            rank: rank.index(),
            results,
            writer: None,
            unwritten: None,
            stop_at,
            has_revoked: false,
            incarnations: None,
            gpu,
            progress: 0,
            verdict: None,
            settle_ns,
            begins_at: None,
        }
    }

    /// Adds the interface of the program on the seat.
    pub(super) fn with_ip(self, ip: Option<IpPort>) -> Self {
        Self { ip, ..self }
    }

    /// Adds a check that no frame of an earlier incarnation is used.
    pub(super) fn watch_incarnations(&mut self, checks: IncarnationChecks) {
        self.runtime.watch_arrivals(checks.watch());
        self.incarnations = Some(checks);
    }

    /// Handles received frames, polls the job, and sends frames. Returns true if anything happened, and the
    /// time of the next poll of the job.
    pub(super) fn poll(&mut self, now: Instant, events: &mut Vec<Event>) -> (bool, Instant) {
        let Self {
            runtime, sharing, job, ip, finished, rank, results, writer, unwritten, stop_at, gpu, ..
        } = self;
        let verdict = &mut self.verdict;
        let (is_ended, settle_ns, begins_at) = (self.is_ended, self.settle_ns, &mut self.begins_at);
        let mut has_moved = false;
        let commands = |now: Instant, endpoint: &mut Endpoint, memory: &mut HostMemory| {
            memory.set_time(now);
            sharing.poll(now, memory);
            if let Some(ip) = ip {
                has_moved = ip.advance(now, endpoint, &mut memory.view());
            }
            let has_last_commands = *finished && !is_ended && job.has_last_words();
            if has_last_commands {
                *verdict = None;
                let mut view = memory.view();
                let _ = job.advance(now, &mut OnSeat { endpoint, memory, sharing }, &mut view);
            }
            if *finished || is_ended || !sharing.is_settled() {
                return sharing.wake_at(now);
            }
            if now < *begins_at.get_or_insert(now + settle_ns) {
                return now;
            }
            gpu.iter_mut().for_each(GpuSampling::begin);
            if writer.is_none() {
                let mut view = memory.view();
                let mut seat = OnSeat { endpoint, memory, sharing };
                if let Progress::Running(wake_at) = job.advance(now, &mut seat, &mut view) {
                    return wake_at.unwrap_or(Instant::NEVER).min(sharing.wake_at(now));
                }
                gpu.iter_mut().for_each(GpuSampling::end);
                *writer = results.take().and_then(|results| begin_result(&**job, *rank, &results, unwritten));
            }
            let is_over = writer.as_mut().map_or(Ok(true), |writer| writer.advance(memory));
            *finished = is_over.unwrap_or_else(|error| {
                *unwritten = Some(error.to_string());
                true
            });
            if *finished { sharing.wake_at(now) } else { now }
        };
        let (happened, wake_at) = runtime.poll_with(now, commands, &mut |event| events.push(event));
        let ip_due = self.ip.as_ref().map_or(Instant::NEVER, IpPort::wake_at);
        let polled = (happened, if has_moved { now } else { wake_at.min(ip_due) });
        // Work of the job and changes of shared memory are no frames.
        let progress = job.progress_count();
        if polled.1 <= now || progress != self.progress {
            self.progress = progress;
            runtime.note_work(now);
        }
        stop_at.reached(|| job.waiting_for());
        self.sharing.take_events(events);
        polled
    }

    /// Applies the fault script to this node's memory and keys.
    pub(super) fn apply_fault(
        &mut self,
        now: Instant,
        action: &FaultAction,
        new: impl FnOnce() -> MemoryFaults,
    ) {
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
        let Self { runtime, sharing, ip, .. } = self;
        let until = until.min(runtime.memory_mut().next_due());
        let has_frame = || ip.as_ref().is_some_and(IpPort::is_ready);
        runtime.wait_unless(until, |memory| sharing.is_ready(memory) || has_frame());
    }

    /// Ends the polls of the job, and unmaps the memory of peers so that they can free it. Call at the end of
    /// the rack.
    pub(super) fn end_job(&mut self) {
        self.is_ended = true;
        self.sharing.release();
    }

    /// Returns true if a reachable peer still maps memory of this node's job, which has ended.
    pub(super) fn awaits_importers(&self) -> bool {
        let endpoint = self.runtime.member();
        self.finished && self.sharing.mapped_by().any(|peer| endpoint.is_reachable(peer))
    }

    /// Returns the live shortest paths to each member of the plan, as the ports at which they begin.
    pub(super) fn paths(&self) -> Vec<Vec<u16>> {
        let endpoint = self.runtime.member();
        let members = endpoint.config().graph.members.len() as u16;
        (0..members).map(|node| endpoint.paths(NodeId(node)).map(|port| port.0).collect()).collect()
    }

    /// Returns the report about the current memory.
    pub(super) fn memory(&mut self) -> MemoryReport {
        memory::describe(self.runtime.memory_mut())
    }

    /// Returns the verdict of a job that has ended. A peer that dies later can still change it.
    pub(super) fn verdict(&mut self) -> Option<Verdict> {
        if self.finished && self.verdict.is_none() {
            let is_pass = self.unwritten.is_none() && self.job.result().is_pass();
            self.verdict = Some(if is_pass { Verdict::Pass } else { Verdict::Fail });
        }
        self.verdict
    }

    /// Passes an event to the job.
    pub(super) fn handle_event(&mut self, now: Instant, event: &Event) {
        self.job.handle_event(now, event);
        self.verdict = None;
    }

    /// Returns the result of the job, with the outcome of writing it. Frees the memory of a job that has
    /// ended.
    pub(super) fn result(&mut self) -> JobResult {
        let gpu = self.gpu.as_mut().and_then(GpuSampling::finish);
        let mut held = self.memory();
        if self.finished {
            let (endpoint, memory) = self.runtime.parts_mut();
            held = memory::free(held, endpoint, &mut self.sharing, memory);
        }
        let mut result = self.job.result();
        result.paths = self.sharing.report();
        result.notes.extend(self.sharing.notes());
        result.memory = Some(held);
        result.gpu = gpu;
        self.incarnations.iter().for_each(|checks| result.oracles.merge(&checks.verdicts()));
        result
            .failures
            .extend(self.unwritten.iter().map(|reason| format!("the result was not written: {reason}")));
        result
    }
}

/// Starts to write the job's output, if it has one. A job that failed has none.
fn begin_result(
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
