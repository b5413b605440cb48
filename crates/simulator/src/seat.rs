//! One member with its job, and one poll of it.
//!
//! A poll has fixed steps: frames port by port; then, until no step has an effect, the job's own poll, the
//! timeout if it is due, one drain, events to the job. That is also the order of the real event loop, which is why
//! the two engines put the same frames on the wires.

use std::sync::Arc;

use rackloom_jobs::local::{count_direct, count_frames, moved_bytes};
use rackloom_jobs::recorder::{MemberSeries, Recorder};
use rackloom_jobs::{Carried, Job, PathReport, Progress};
use rackloom_plan::faults::MemoryFaults;
use rackloom_protocol::{
    Command, CommandRefused, Endpoint, Event, Inspect, Instant, Member, NodeId, OperationError, PortId,
    RegionConfig, Switch, drain,
};

use rackloom_protocol::wire::frame::{FabricHeader, FrameKind};

use crate::device::Device;
use crate::fabric::Fabric;
use crate::ids::ChannelId;
use crate::ids::FrameId;
use crate::leases::Leases;
use crate::local::{AccessContext, CommandPath, Local};
use crate::memory::memories::Memories;
use crate::memory::payload::PayloadTable;
use crate::memory::seat_memory::SeatMemory;
use crate::outcome::MemberState;
use crate::queue::QueuedEvent;
use crate::wires::MemberWires;

/// Maximum number of rounds of job and drain in one poll. A job with more to do continues in the next poll of the
/// same moment, where the watchdog counts.
const ROUNDS_MAX: u32 = 1_000;

/// Reason for which a member is polled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) member: NodeId,
    /// Frame that arrived, and its port; `None` for a poll without a frame.
    pub(crate) frame: Option<(PortId, FrameId)>,
    /// Order of insertion.
    pub(crate) number: u64,
}

impl Due {
    /// Sort key: member by member, frames port by port, each in order of insertion.
    pub(crate) fn order(&self) -> [u64; 3] {
        let port = self.frame.map_or(u16::MAX, |(port, _)| port.0);
        [self.member.0.into(), port.into(), self.number]
    }
}

/// State machine in a seat.
#[derive(Debug)]
pub(crate) enum Body {
    Endpoint(Box<Endpoint>),
    Switch(Box<Switch>),
    #[cfg(test)]
    StubMember(Box<crate::rack::stub::StubMember>),
}

impl Body {
    pub(crate) fn member(&self) -> &dyn Inspect {
        match self {
            Self::Endpoint(endpoint) => &**endpoint,
            Self::Switch(switch) => &**switch,
            #[cfg(test)]
            Self::StubMember(stub) => &**stub,
        }
    }

    pub(crate) fn member_mut(&mut self) -> &mut dyn Inspect {
        match self {
            Self::Endpoint(endpoint) => &mut **endpoint,
            Self::Switch(switch) => &mut **switch,
            #[cfg(test)]
            Self::StubMember(stub) => &mut **stub,
        }
    }

    /// Written per kind, so that the polling of many ports is compiled for each.
    fn drain(
        &mut self,
        now: Instant,
        wires: &mut MemberWires<'_>,
        memory: &mut SeatMemory<'_>,
        events: &mut Vec<Event>,
    ) -> bool {
        let mut keep = |event| events.push(event);
        match self {
            Self::Endpoint(endpoint) => drain(&mut **endpoint, now, wires, memory, &mut keep),
            Self::Switch(switch) => drain(&mut **switch, now, wires, memory, &mut keep),
            #[cfg(test)]
            Self::StubMember(stub) => drain(&mut **stub, now, wires, memory, &mut keep),
        }
    }
}

/// Activity of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    Alive,
    /// Paused; frames that arrive wait.
    Paused,
    Dead,
}

/// A member of the rack.
pub(crate) struct Seat {
    pub(crate) body: Body,
    pub(crate) node: NodeId,
    pub(crate) job: Option<Box<dyn Job>>,
    pub(crate) activity: Activity,
    /// Path to the memory of nodes of the same server, if it has such peers.
    pub(crate) local: Option<Box<Local>>,
    /// GPU of the node, if the plan has a model of one.
    pub(crate) device: Option<Box<Device>>,
    /// Operations of the job by path, if other nodes of the server could share memory.
    pub(crate) paths: Option<PathReport>,
    /// Memory faults from a fault script.
    pub(crate) memory_faults: Option<Box<MemoryFaults>>,
    /// The job has ended.
    pub(crate) finished: bool,
    /// The earliest scheduled timer of this member; later ones are stale.
    pub(crate) timer_at: Instant,
    /// The earliest scheduled wake-up of the job; later ones are stale.
    pub(crate) wake_at: Instant,
    /// Frames that arrived while the member was paused.
    pub(crate) parked: Vec<Due>,
    /// Channels that leave the ports, by port.
    pub(crate) outgoing: Vec<ChannelId>,
    /// Frames that the member holds.
    pub(crate) leases: Leases,
    /// Region of its job that others may read.
    pub(crate) probed: Option<RegionConfig>,
    /// True if the seat had earlier incarnations, whose frames may still arrive.
    pub(crate) has_predecessors: bool,
    /// Number of events that it has reported.
    pub(crate) events_reported: u64,
    /// Recorder of time series, if the run records them.
    pub(crate) recorder: Option<Box<Recorder>>,
    memory_requests: u64,
    job_progress: u64,
}

/// An endpoint and its local path. The ledger records all commands.
struct ObservedSeat<'a> {
    endpoint: &'a mut Endpoint,
    local: Option<&'a mut Local>,
    device: Option<&'a mut Device>,
    paths: Option<&'a mut PathReport>,
    /// Table with the ledger of all operations, if one is kept.
    payload_table: Option<Arc<PayloadTable>>,
    node: NodeId,
    /// Number of commands until now, refused ones included.
    commands: u32,
}

impl rackloom_jobs::Seat for ObservedSeat<'_> {
    fn command(&mut self, now: Instant, command: Command<'_>) -> Result<Carried, CommandRefused> {
        self.commands += 1;
        let taken = match &mut self.local {
            Some(local) => local.command(now, &command, self.endpoint)?,
            None => CommandPath::Frames,
        };
        if taken == CommandPath::Frames {
            match &mut self.device {
                Some(device) => device.command(now, command, self.endpoint)?,
                None => self.endpoint.handle_command(now, command)?,
            }
        }
        if let Some(paths) = &mut self.paths {
            match taken {
                CommandPath::Direct => count_direct(paths, &command),
                CommandPath::Frames => count_frames(paths, &command),
            }
        }
        if let Some(payload_table) = &self.payload_table {
            payload_table.with_ledger(|ledger| ledger.note_command(self.node, &command));
        }
        // Without bytes it affects only this side: a wait, a cancel.
        let is_direct = taken == CommandPath::Direct && moved_bytes(&command).is_some();
        Ok(if is_direct { Carried::Direct { took_ns: None } } else { Carried::Endpoint })
    }

    fn is_reachable(&self, node: NodeId) -> bool {
        self.endpoint.is_reachable(node)
    }
}

/// Result of a poll.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PollResult {
    /// Time at which the job requested its next poll.
    pub(crate) wake_at: Option<Instant>,
    /// True if the job has just ended.
    pub(crate) finished: bool,
    /// True if an operation ended, or memory was accessed for another node.
    pub(crate) worked: bool,
    /// True if the job reports progress.
    pub(crate) job_advanced: bool,
}

impl Seat {
    pub(crate) fn new(node: NodeId, body: Body, outgoing: Vec<ChannelId>) -> Self {
        Self {
            body,
            node,
            job: None,
            activity: Activity::Alive,
            local: None,
            device: None,
            paths: None,
            memory_faults: None,
            finished: false,
            timer_at: Instant::NEVER,
            wake_at: Instant::NEVER,
            parked: Vec::new(),
            outgoing,
            leases: Leases::default(),
            probed: None,
            has_predecessors: false,
            events_reported: 0,
            memory_requests: 0,
            recorder: None,
            job_progress: 0,
        }
    }

    /// Returns true if the run must wait for this member's job.
    pub(crate) fn is_awaited(&self) -> bool {
        self.job.is_some() && !self.finished && self.activity != Activity::Dead
    }

    /// Records what has changed, if an interval of the recorder is over. The member has not been polled at this moment.
    pub(crate) fn sample(&mut self, now: Instant, fabric: &Fabric) {
        let Some(recorder) = self.recorder.as_mut().filter(|recorder| recorder.is_due(now)) else { return };
        note_channels(recorder, &self.outgoing, fabric);
        let job = &mut self.job;
        recorder.sample(now, self.body.member(), || job.as_mut()?.take_recent());
    }

    /// Returns the time series until now, if they are recorded. The recorder ends.
    pub(crate) fn recorded_series(&mut self, now: Instant, fabric: &Fabric) -> Option<MemberSeries> {
        let mut recorder = self.recorder.take()?;
        note_channels(&mut recorder, &self.outgoing, fabric);
        let job = &mut self.job;
        Some(recorder.finish(now, self.body.member(), || job.as_mut()?.take_recent()))
    }

    pub(crate) fn state(&self) -> MemberState {
        match self.activity {
            Activity::Dead => MemberState::Killed,
            Activity::Alive | Activity::Paused if self.finished => MemberState::Finished,
            Activity::Paused => MemberState::Paused,
            Activity::Alive => MemberState::Running,
        }
    }

    /// Polls the member. Its events are appended to `events`.
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        due: &[Due],
        fabric: &mut Fabric,
        memories: &mut Memories,
        events: &mut Vec<Event>,
    ) -> PollResult {
        for (port, frame) in due.iter().filter_map(|due| due.frame) {
            let before = fabric.has_observer().then(|| self.body.member().port_counters(port).dropped);
            let bytes = fabric.deliver(now, frame);
            let stale = self.drops_if_stale(port, bytes);
            self.body.member_mut().handle_frame(now, port, self.leases.give(frame), bytes);
            self.forget_kept(port, fabric);
            let counters = self.body.member().port_counters(port);
            if let Some(dropped) = stale {
                let is_used = counters.dropped.iter().sum::<u64>() == dropped;
                memories.with_ledger(|ledger| ledger.note_stale_frame(now, self.node, is_used));
            }
            if let Some(reason) = before.and_then(|before| counters.dropped_since(&before)) {
                fabric.not_used(now, frame, reason);
            }
        }
        let memory_requests = self.memory_requests;
        let mut memory_faults = self.memory_faults.take();
        let mut result = self.rounds(now, fabric, memories, memory_faults.as_deref_mut(), events);
        self.memory_faults = memory_faults;
        result.worked = self.memory_requests > memory_requests
            || events.iter().any(|event| matches!(event, Event::Completed { .. }));
        result.job_advanced = result.finished || self.job_has_advanced();
        result
    }

    /// Forgets kept frames that a frame over a link with replay has acknowledged.
    fn forget_kept(&self, port: PortId, fabric: &mut Fabric) {
        let outgoing = self.outgoing[port.index()];
        if !fabric.channel(outgoing).kept.is_empty() {
            let needed = self.body.member().repeatable(port).unwrap_or(0);
            fabric.forget_kept(outgoing, needed);
        }
    }

    /// Returns the number of frames dropped at a port so far, if the current one carries operations for an earlier
    /// incarnation of this member.
    fn drops_if_stale(&self, port: PortId, bytes: &[u8]) -> Option<u64> {
        let Body::Endpoint(endpoint) = &self.body else { return None };
        if !self.has_predecessors || FrameKind::peek(bytes) != Some(FrameKind::Data) {
            return None;
        }
        let header = FabricHeader::of(bytes).ok()?;
        let is_stale = header.destination == self.node
            && header.destination_incarnation != endpoint.config().incarnation.tag();
        is_stale.then(|| endpoint.port_counters(port).dropped.iter().sum())
    }

    fn job_has_advanced(&mut self) -> bool {
        let count = self.job.as_ref().map_or(0, |job| job.progress_count());
        std::mem::replace(&mut self.job_progress, count) != count
    }

    /// Repeats the job's poll, the timeout, a drain, and events to the job until there is no further effect.
    fn rounds(
        &mut self,
        now: Instant,
        fabric: &mut Fabric,
        memories: &mut Memories,
        mut faults: Option<&mut MemoryFaults>,
        events: &mut Vec<Event>,
    ) -> PollResult {
        let mut result = PollResult::default();
        let mut requests = self.memory_requests;
        let mut is_settled = false;
        for _ in 0..ROUNDS_MAX {
            let reported = events.len();
            let of_advance = faults.as_deref_mut().map(|memory_faults| (now, memory_faults));
            let mut memory = SeatMemory::new(memories, self.node, &mut requests, of_advance).at(now);
            let commands = self.advance(now, &mut memory, &mut result);
            if self.local.is_some() {
                is_settled = false;
                let around = AccessContext {
                    memories,
                    requests: &mut requests,
                    memory_faults: faults.as_deref_mut(),
                    events,
                    touched: &mut Vec::new(),
                };
                self.work_locally(now, fabric, around);
            }
            if let (Some(device), Body::Endpoint(endpoint)) = (&mut self.device, &mut self.body) {
                is_settled = false;
                device.poll(now, endpoint, events);
            }
            let has_ended = events.len() > reported;
            // An answer of slow memory may cause requests that only the next round carries out.
            is_settled &= faults.is_none();
            let faults = faults.as_deref_mut().map(|memory_faults| (now, memory_faults));
            let mut memory = SeatMemory::new(memories, self.node, &mut requests, faults).at(now);
            if is_settled && commands == 0 {
                // A build with assertions polls nevertheless.
                if !cfg!(debug_assertions) {
                    return result;
                }
            } else if self.body.member().poll_timeout() <= now {
                self.body.member_mut().handle_timeout(now);
            }
            let mut wires = MemberWires {
                fabric,
                now,
                node: self.node,
                outgoing: &self.outgoing,
                leases: &mut self.leases,
            };
            let progress = self.body.drain(now, &mut wires, &mut memory, events) || has_ended;
            self.memory_requests = requests;
            if !progress {
                return result;
            }
            debug_assert!(!is_settled || commands > 0, "{:?} at {now:?} had more to do", self.node);
            // A member with one port has been polled to the end. With several ports, the poll of one may have changed another.
            let is_simple = matches!(self.body, Body::Endpoint(_)) && self.outgoing.len() == 1;
            is_settled = is_simple && events.len() == reported;
            memories.report_to_ledger(now, self.node, &events[reported..]);
            if let Some(local) = &mut self.local {
                events[reported..].iter().for_each(|event| local.handle_event(event));
            }
            if let Some(device) = &mut self.device {
                events[reported..].iter().for_each(|event| device.handle_event(now, event));
            }
            if let Some(job) = &mut self.job {
                events[reported..].iter().for_each(|event| job.handle_event(now, event));
            }
        }
        result.wake_at = Some(now);
        result
    }

    /// Carries out due operations of the local path. Nodes whose memory changes are polled at the same time.
    fn work_locally(&mut self, now: Instant, fabric: &mut Fabric, mut around: AccessContext<'_>) {
        let (Some(local), Body::Endpoint(endpoint)) = (&mut self.local, &mut self.body) else { return };
        local.poll(now, &mut around);
        let AccessContext { events, touched, .. } = around;
        while let Some(flush) = local.take_flush() {
            let (operation, target) = flush;
            // The flush was accepted before. A refusal, which happens only if the target is lost, is its end.
            if endpoint.handle_command(now, Command::Flush { operation, target }).is_err() {
                events.push(Event::Completed { operation, result: Err(OperationError::Unreachable) });
            }
        }
        touched.dedup();
        touched.drain(..).for_each(|node| fabric.queue.push(now, QueuedEvent::Wake(node)));
    }

    /// Polls the job and returns the number of its commands.
    fn advance(&mut self, now: Instant, memory: &mut SeatMemory<'_>, result: &mut PollResult) -> u32 {
        let (Some(job), Body::Endpoint(endpoint)) = (&mut self.job, &mut self.body) else { return 0 };
        if self.finished && !job.has_last_words() {
            return 0;
        }
        let payload_table = &memory.memories.payload_table;
        let payload_table = payload_table.keeps_ledger().then(|| Arc::clone(payload_table));
        let (local, device) = (self.local.as_deref_mut(), self.device.as_deref_mut());
        let (paths, node) = (self.paths.as_mut(), self.node);
        let mut observed = ObservedSeat { endpoint, local, device, paths, payload_table, node, commands: 0 };
        match job.advance(now, &mut observed, memory) {
            Progress::Running(wake_at) => result.wake_at = wake_at.map(|at| at.max(now + 1)),
            Progress::Finished => {
                result.finished |= !self.finished;
                (self.finished, result.wake_at) = (true, None);
            }
        }
        observed.commands
    }
}

/// Passes the numbers of lost frames and of accounted bytes of a member's links to its recorder. `outgoing`: channels by port.
fn note_channels(recorder: &mut Recorder, outgoing: &[ChannelId], fabric: &Fabric) {
    for (port, channel) in (0..).map(PortId).zip(outgoing) {
        let statistics = &fabric.channel(*channel).statistics;
        recorder.set_injected(port, statistics.frames_dropped);
        recorder.set_accounted(port, statistics.accounted_bytes);
    }
}
