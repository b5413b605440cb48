//! All members of a rack, and the run.
//!
//! One moment of virtual time is handled like this: all due events are removed from the queue, actions are
//! applied, the other events are grouped by member, and each such member, in order of its number, is
//! polled once (`seat.rs`). Events that are scheduled for the same moment (links without delay) make another batch.
//! Members without an event are not polled, so the cost of an event does not grow with the rack.
//!
//! Usually the moments of one member are handled in a row, as many as cannot affect another member yet (`ahead.rs`). The
//! result is the same.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rackloom_jobs::recorder::Recording as SeriesRecording;
use rackloom_jobs::{Job, PathReport};
use rackloom_plan::impair::Direction;
use rackloom_plan::{Clock, DeviceModel, ForwardingPlan, LinkPlan, Plan};
use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::route::graph::SharedGraph;
use rackloom_protocol::{
    Command, CommandRefused, Edge, Endpoint, Event, Incarnation, Instant, MemberConfig, MemberRole, NodeId,
    Switch,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::device::Device;
use crate::fabric::{Fabric, FrameObserver};
use crate::ids::ChannelId;
use crate::ids::FrameId;
use crate::local::{self, Local, Owner, Owners};
use crate::memory::memories::Memories;
use crate::memory::payload::PayloadTable;
use crate::outcome::{Outcome, Statistics};
use crate::queue::{QueuedEvent, Scheduled};
use crate::recording::Recording;
use crate::seat::{Activity, Body, Due, Seat};
use crate::seats::Seats;
use crate::trace::FrameOutcome;
use crate::watchdog::{StallCause, Stalled, Watchdog};

mod act;
pub mod actions;
mod afterwards;
mod ahead;
mod observe;
mod pending;
mod play;
mod script;
#[cfg(test)]
pub(crate) mod stub;
#[cfg(test)]
mod tests;
mod window;

use actions::Action;
use pending::Ahead;
use script::Script;

/// Longest time between two calls of `trim`: a rack at rest has few events.
const TRIMMING_NS: u64 = 100_000_000;
/// Number of events of one moment for which memory is kept.
const BATCH_CAPACITY_KEPT: usize = 4_096;

/// Frames that a paused member's device holds.
const PARKED_FRAMES_MAX: usize = 4_096;

/// A rack in virtual time.
pub struct Simulation {
    fabric: Fabric,
    memories: Memories,
    seats: Seats,
    /// Edges by number.
    edges: Vec<Edge>,
    names: Vec<String>,
    actions: Vec<Action>,
    /// Times of the actions that have not been applied.
    actions_at: BinaryHeap<Reverse<Instant>>,
    recording: Recording,
    watchdog: Watchdog,
    now: Instant,
    statistics: Statistics,
    /// Living endpoints whose job is not over.
    awaited: usize,
    /// Memory is tidied after this number of events, or at this time.
    trim_at: (u64, Instant),
    /// Kept between moments so that it is not allocated again.
    batch: Vec<Scheduled>,
    due: Vec<Due>,
    events: Vec<Event>,
    /// The fault script, if there is one.
    script: Option<Box<Script>>,
    /// True if a ledger is kept.
    is_watched: bool,
    ahead: Ahead,
    /// Number of next events of the member ahead whose frames were loaded into the cache.
    loaded: usize,
    /// States of all members as their peers of the same server see them, if servers have peers.
    owners: Option<Owners>,
}

impl Simulation {
    /// Creates the rack of a plan at time 0, with one job per GPU node, in order, and behind them, if the job uses it, one per switch with a reduction unit. Without any jobs the caller gives
    /// [commands](Self::command) itself. `seed` decides all random choices.
    ///
    /// # Panics
    /// If the number of jobs is neither zero nor that of these members, or if an endpoint refuses a region that
    /// its job requests. Both are errors of the caller.
    #[must_use]
    pub fn new(plan: &Plan, seed: u64, jobs: Vec<Box<dyn Job>>) -> Self {
        let graph = SharedGraph::from(plan.graph());
        assert!(
            jobs.is_empty() || [graph.endpoint_count(), graph.participant_count()].contains(&jobs.len()),
            "{} jobs for {} members",
            jobs.len(),
            graph.participant_count()
        );
        let local = local::paths(plan, &jobs);
        let jobs = (0..).map(NodeId).zip(jobs).collect();
        let mut simulation = Self::with_members(plan, seed, &graph, jobs, |_| true);
        simulation.join_servers(local);
        simulation
    }

    /// Creates those members of a rack for which `is_here` holds, with the jobs of some of them.
    pub(crate) fn with_members(
        plan: &Plan,
        seed: u64,
        graph: &SharedGraph,
        jobs: Vec<(NodeId, Box<dyn Job>)>,
        is_here: impl Fn(NodeId) -> bool,
    ) -> Self {
        let tenants: Arc<[_]> = plan.members.iter().map(|member| member.tenant).collect();
        let mut buffer_bytes = 0;
        let mut seats = Vec::new();
        for (node, role) in (0..).map(NodeId).zip(&graph.members).filter(|(node, _)| is_here(*node)) {
            let incarnation = incarnation(seed, node);
            let config = plan.member_config_within(Clock::Virtual, node, incarnation, graph, &tenants);
            buffer_bytes = buffer_bytes.max(usize::from(config.frame_bytes_max));
            let outgoing = config.ports.iter().map(|port| leaving(&graph.edges, port.edge, node)).collect();
            seats.push(Seat::new(node, body_of(*role, config), outgoing));
        }
        let seats = Seats::new(graph.members.len(), seats);
        let payload_table = Arc::new(PayloadTable::new(plan.settings.payload, seats.members()));
        let checks = plan.end_to_end_check();
        let mut simulation =
            Self::assemble(&plan.links, checks, plan.forwarding, seed, seats, buffer_bytes, payload_table);
        simulation.names = plan.members.iter().map(|member| member.name.clone()).collect();
        simulation.watchdog = Watchdog::new(plan.settings.watchdog_ns);
        for node in (0..).map(NodeId).take(graph.endpoint_count()) {
            simulation.equip(node, plan.members[node.index()].device);
        }
        if plan.has_memory_peers() {
            simulation.count_paths(plan);
        }
        for (node, job) in jobs {
            seat_job(&mut simulation.seats[node], simulation.memories.bytes_mut(node), job);
        }
        simulation.awaited = simulation.seats.iter().filter(|seat| seat.is_awaited()).count();
        simulation
    }

    /// Gives a node its GPU, if the plan has a model of one.
    fn equip(&mut self, node: NodeId, model: DeviceModel) {
        let Some(seat) = self.seats.get_mut(node) else { return };
        seat.device = Device::new(model).map(Box::new);
        self.memories.node_mut(node).work = seat.device.as_ref().and_then(|device| device.work_clock());
    }

    /// Lets nodes of one server use each other's memory. They run together then: an operation of one affects another at once.
    fn join_servers(&mut self, local: Option<(Vec<Option<Local>>, Owners)>) {
        let Some((locals, owners)) = local else { return };
        for (seat, local) in self.seats.iter_mut().zip(locals) {
            seat.local = local.map(Box::new);
        }
        self.owners = Some(owners);
        self.ahead.is_forbidden = true;
    }

    /// Counts the operations of each node that could share memory with another one.
    fn count_paths(&mut self, plan: &Plan) {
        let ranks = self.seats.iter_mut().take(plan.endpoint_count());
        let ranks = ranks.filter(|seat| !plan.memory_peers(seat.node).is_empty());
        ranks.for_each(|seat| seat.paths = Some(PathReport::default()));
    }

    /// Returns the member as its peers of the same server see it, if servers have peers.
    fn owner(&self, member: NodeId) -> Option<&Owner> {
        self.owners.as_ref()?.get(member.index())
    }

    /// Creates members in their seats, joined by links, at time 0.
    fn assemble(
        links: &[LinkPlan],
        has_checks: bool,
        crossing: ForwardingPlan,
        seed: u64,
        seats: Seats,
        buffer_bytes: usize,
        payload_table: Arc<PayloadTable>,
    ) -> Self {
        let ahead = Ahead::new(seats.members());
        let mut fabric =
            Fabric::new(links, has_checks, crossing, seed, buffer_bytes, Arc::clone(&payload_table));
        for seat in seats.iter() {
            fabric.queue.push(Instant::ZERO, QueuedEvent::Wake(seat.node));
        }
        Self {
            fabric,
            memories: Memories::new(seats.members(), payload_table),
            seats,
            edges: links.iter().map(|link| link.edge).collect(),
            names: Vec::new(),
            actions: Vec::new(),
            actions_at: BinaryHeap::new(),
            recording: Recording::of(links.len()),
            watchdog: Watchdog::new(0),
            now: Instant::ZERO,
            statistics: Statistics::default(),
            awaited: 0,
            trim_at: (0, Instant::ZERO),
            batch: Vec::new(),
            due: Vec::new(),
            events: Vec::new(),
            script: None,
            is_watched: false,
            ahead,
            loaded: 0,
            owners: None,
        }
    }

    /// Schedules an action at `at`; at once if that is in the past.
    pub fn schedule(&mut self, at: Instant, action: Action) {
        let number = self.actions.len() as u32;
        self.actions.push(action);
        let at = at.max(self.now);
        self.actions_at.push(Reverse(at));
        self.fabric.queue.push(at, QueuedEvent::Action(number));
    }

    /// Calls `hook` for every frame that a member sends, before faults are applied.
    pub fn on_frame(&mut self, hook: impl FnMut(Instant, u16, Direction, &[u8]) + Send + 'static) {
        self.fabric.set_hook(Box::new(hook));
    }

    /// Sets an observer of the outcome of every frame.
    pub fn observe_frames(&mut self, observer: impl FrameObserver + Send + 'static) {
        self.fabric.set_observer(Box::new(observer));
    }

    /// Sets the number of events after which a run ends with an error. Without this call there is no such limit.
    pub fn limit_events(&mut self, events_max: u64) {
        self.watchdog.limit_events(events_max);
    }

    /// Gives an endpoint a command, now. Frames of the command leave when time advances.
    pub fn command(&mut self, node: NodeId, command: Command<'_>) -> Result<(), CommandRefused> {
        let now = self.now;
        let Some(seat) = self.seats.get_mut(node).filter(|seat| seat.activity != Activity::Dead) else {
            return Err(CommandRefused::NoSuchNode(node));
        };
        self.fabric.queue.push(now, QueuedEvent::Wake(node));
        seat.body.member_mut().handle_command(now, command)?;
        self.memories.with_ledger(|ledger| ledger.note_command(node, &command));
        Ok(())
    }

    /// Records time series of all members from now on, if `recording` requests them. Call it before the first step.
    pub fn record_series(&mut self, recording: &SeriesRecording) {
        let links = self.edges.len();
        for seat in self.seats.iter_mut() {
            let recorder = recording.recorder(true, seat.body.member().port_count(), links);
            seat.recorder = recorder.map(Box::new);
        }
    }

    /// Runs until the job of every living endpoint is over.
    pub fn run(&mut self) -> Result<Outcome, Stalled> {
        self.run_watched(u64::MAX, |_| {})
    }

    /// Runs like [`Self::run`], and calls `look` after each `every` events, and at the end.
    pub fn run_watched(&mut self, every: u64, mut look: impl FnMut(&Self)) -> Result<Outcome, Stalled> {
        let looked = |simulation: &Self| {
            look(simulation);
            true
        };
        self.run_until_jobs_end(every, looked)?;
        look(self);
        Ok(self.outcome())
    }

    /// Runs like [`Self::run`], and calls `goes_on` after each `every` events. Returns `None` if it returned false: jobs are not over then.
    pub fn run_while(
        &mut self,
        every: u64,
        goes_on: impl FnMut(&Self) -> bool,
    ) -> Result<Option<Outcome>, Stalled> {
        let is_over = self.run_until_jobs_end(every, goes_on)?;
        Ok(is_over.then(|| self.outcome()))
    }

    fn outcome(&self) -> Outcome {
        Outcome {
            ended_at: self.now,
            trace_hash: self.trace_hash(),
            members: self.seats.iter().map(|seat| seat.state()).collect(),
            statistics: self.statistics(),
        }
    }

    /// Runs until all jobs are over, and returns true; or until `goes_on` returns false, and returns false.
    fn run_until_jobs_end(
        &mut self,
        every: u64,
        goes_on: impl FnMut(&Self) -> bool,
    ) -> Result<bool, Stalled> {
        let ended = self.runs_until_jobs_end(every, goes_on);
        self.memories.settle_all();
        ended
    }

    fn runs_until_jobs_end(
        &mut self,
        every: u64,
        mut goes_on: impl FnMut(&Self) -> bool,
    ) -> Result<bool, Stalled> {
        let mut next_look = every;
        while self.awaited > 0 {
            if self.statistics.events_handled >= next_look {
                next_look = self.statistics.events_handled.saturating_add(every);
                self.memories.settle_all();
                if !goes_on(self) {
                    return Ok(false);
                }
            }
            let Some(at) = self.fabric.queue.next_at() else {
                return Err(self.stalled(StallCause::NothingScheduled));
            };
            self.watchdog.check_progress(at).map_err(|cause| self.stalled(cause))?;
            let until = self.ahead_until(at, self.watchdog.deadline());
            if until > at { self.run_ahead(until, true)? } else { self.step(at)? }
        }
        Ok(true)
    }

    /// Handles all events up to `until`, and sets the time to it. Jobs need not be over, and may wait for ever: only a
    /// rack in which time does not advance, or one beyond its limit of events, is an error.
    pub fn step_until(&mut self, until: Instant) -> Result<(), Stalled> {
        let result = self.steps_until(until);
        self.memories.settle_all();
        result?;
        self.now = self.now.max(until);
        Ok(())
    }

    fn steps_until(&mut self, until: Instant) -> Result<(), Stalled> {
        let end = Instant(until.0.saturating_add(1));
        while let Some(at) = self.fabric.queue.next_at().filter(|at| *at <= until) {
            let until = self.ahead_until(at, end);
            if until > at { self.run_ahead(until, false)? } else { self.step(at)? }
        }
        Ok(())
    }

    /// Handles one batch of one moment.
    fn step(&mut self, at: Instant) -> Result<(), Stalled> {
        self.now = at;
        let mut due = std::mem::take(&mut self.due);
        self.collect(at, &mut due);
        due.sort_unstable_by_key(Due::order);
        for group in due.chunk_by(|left, right| left.member == right.member) {
            self.poll_member(group);
        }
        due.clear();
        self.due = due;
        self.trim_if_due();
        self.watchdog.check_engine(at, self.statistics.events_handled).map_err(|cause| self.stalled(cause))
    }

    fn trim_if_due(&mut self) {
        if self.statistics.events_handled >= self.trim_at.0 || self.now >= self.trim_at.1 {
            self.trim();
        }
    }

    /// Gives up memory that a busier time has left.
    #[cold]
    fn trim(&mut self) {
        let events_handled = self.statistics.events_handled + self.fabric.trim();
        self.trim_at = (events_handled, self.now + TRIMMING_NS);
        self.seats.iter_mut().for_each(|seat| seat.leases.trim());
        self.batch.shrink_to(BATCH_CAPACITY_KEPT);
        self.due.shrink_to(BATCH_CAPACITY_KEPT);
        self.ahead.trim(BATCH_CAPACITY_KEPT);
    }

    /// Removes all due events from the queue. Actions are applied first, independent of their order.
    fn collect(&mut self, at: Instant, due: &mut Vec<Due>) {
        let mut batch = std::mem::take(&mut self.batch);
        while let Some(next) = self.fabric.queue.pop_due(at) {
            match next.what {
                QueuedEvent::Action(number) => {
                    self.actions_at.pop();
                    self.act(self.actions[number as usize], due);
                }
                _ => batch.push(next),
            }
            self.statistics.events_handled += 1;
        }
        for next in batch.drain(..) {
            self.prepare(next, due);
        }
        self.batch = batch;
    }

    /// Adds an event to the members that it affects.
    fn prepare(&mut self, next: Scheduled, due: &mut Vec<Due>) {
        let member = match next.what {
            QueuedEvent::Action(_) => return,
            QueuedEvent::Arrival(frame, _) => return self.arrive(next.number, frame, due),
            QueuedEvent::HoldOver(frame) => {
                if self.fabric.hold_over(self.now, frame) {
                    self.arrive(next.number, frame, due);
                }
                return;
            }
            QueuedEvent::Opening(channel) => self.fabric.open(channel),
            QueuedEvent::Timer(member) => {
                if !self.timer_is_due(member) {
                    return;
                }
                member
            }
            QueuedEvent::Wake(member) => member,
        };
        due.push(Due { member, frame: None, number: next.number });
    }

    /// Handles the arrival of a frame at the end of its channel.
    fn arrive(&mut self, number: u64, frame: FrameId, due: &mut Vec<Due>) {
        let Some((member, port)) = self.fabric.arrive(self.now, frame) else { return };
        due.push(Due { member, frame: Some((port, frame)), number });
    }

    /// Returns true if a timer that was scheduled for now is still valid. If it is due later, schedules it again.
    fn timer_is_due(&mut self, member: NodeId) -> bool {
        let seat = &mut self.seats[member];
        if seat.timer_at != self.now {
            return false;
        }
        seat.timer_at = Instant::NEVER;
        let due = seat.body.member().poll_timeout() <= self.now;
        if !due {
            self.arm(member);
        }
        due
    }

    /// Schedules the member's next timeout, unless an earlier one is scheduled.
    ///
    /// A timeout that is due even after a poll is one that waits for a device (a heartbeat behind a long frame):
    /// the member is polled when the channel opens, and polling earlier would change nothing.
    fn arm(&mut self, member: NodeId) {
        let seat = &mut self.seats[member];
        let mut at = seat.body.member().poll_timeout();
        if at <= self.now {
            if seat.outgoing.iter().any(|channel| self.fabric.channel(*channel).opening_awaited) {
                return;
            }
            at = self.now + 1;
        }
        if at < seat.timer_at {
            seat.timer_at = at;
            self.fabric.queue.push(at, QueuedEvent::Timer(member));
        }
    }

    /// Polls a member for all of its due events.
    fn poll_member(&mut self, due: &[Due]) {
        let Some(member) = due.first().map(|due| due.member) else { return };
        match self.seats[member].activity {
            Activity::Dead => return self.lose_frames(due, FrameOutcome::ReceiverDead),
            Activity::Paused => return self.park(member, due),
            Activity::Alive => {}
        }
        let seat = &mut self.seats[member];
        seat.sample(self.now, &self.fabric);
        let mut events = std::mem::take(&mut self.events);
        let result = seat.poll(self.now, due, &mut self.fabric, &mut self.memories, &mut events);
        self.statistics.polls += 1;
        self.statistics.events += events.len() as u64;
        self.play_faults(member, &events);
        let reported = self.seats[member].events_reported;
        self.seats[member].events_reported += events.len() as u64;
        for (number, event) in (reported..).zip(events.drain(..)) {
            self.fabric.trace_event(self.now, member, number, &event);
            self.record(member, number, event);
        }
        self.events = events;
        if result.finished {
            self.awaited -= 1;
        }
        if result.worked {
            self.watchdog.work(self.now);
        }
        if result.job_advanced {
            self.watchdog.job_progress(self.now);
        }
        let seat = &self.seats[member];
        let late = seat.memory_faults.as_ref().map(|memory_faults| memory_faults.next_due());
        let local = seat.local.as_ref().map(|local| local.next_due());
        let device = seat.device.as_ref().map(|device| device.next_due(self.now));
        let due = late.into_iter().chain(local).chain(device).filter(|at| *at < Instant::NEVER);
        if let Some(at) = result.wake_at.into_iter().chain(due).min() {
            self.wake(member, at);
        }
        self.arm(member);
    }

    /// Records an event. Events of members that run ahead are sorted first.
    fn record(&mut self, member: NodeId, number: u64, event: Event) {
        if self.ahead.is_running {
            self.ahead.events.push((self.now, member, number, event));
        } else {
            self.recording.add(self.now, member, event);
        }
    }

    /// Schedules the job's next wake-up, unless an earlier one is still to come.
    fn wake(&mut self, member: NodeId, at: Instant) {
        let seat = &mut self.seats[member];
        if at < seat.wake_at || seat.wake_at <= self.now {
            seat.wake_at = at;
            self.fabric.queue.push(at, QueuedEvent::Wake(member));
        }
    }

    fn lose_frames(&mut self, due: &[Due], outcome: FrameOutcome) {
        for (_, frame) in due.iter().filter_map(|due| due.frame) {
            self.fabric.lose(self.now, frame, outcome);
        }
    }

    /// Keeps frames for a paused member in its device, as long as it has space.
    fn park(&mut self, member: NodeId, due: &[Due]) {
        for due in due.iter().filter(|due| due.frame.is_some()) {
            let parked = &mut self.seats[member].parked;
            if parked.len() < PARKED_FRAMES_MAX {
                parked.push(*due);
            } else {
                self.lose_frames(std::slice::from_ref(due), FrameOutcome::ReceiverFull);
            }
        }
    }

    fn stalled(&self, cause: StallCause) -> Stalled {
        let name = |node| self.name(node).unwrap_or("?");
        Stalled::new(self.now, cause, self.waiting(), &self.waits(), name)
    }
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = formatter.debug_struct("Simulation");
        debug.field("now", &self.now).field("members", &self.seats.members()).field("awaited", &self.awaited);
        debug.finish_non_exhaustive()
    }
}

/// Returns the first incarnation of a member in a run with this seed. The seed distinguishes it from that of other runs.
#[must_use]
pub fn incarnation(seed: u64, node: NodeId) -> Incarnation {
    Incarnation(1 << 32 | xxh3_64_with_seed(&node.0.to_le_bytes(), seed) >> 32)
}

/// Creates the state machine of a member.
fn body_of(role: MemberRole, config: MemberConfig) -> Body {
    match role {
        MemberRole::Endpoint
        | MemberRole::ReducingSwitch
        | MemberRole::Process
        | MemberRole::PinnedProcess => Body::Endpoint(Box::new(Endpoint::new(config))),
        MemberRole::Switch => Body::Switch(Box::new(Switch::new(config))),
    }
}

/// Returns the channel in which frames leave `node` on this edge.
fn leaving(edges: &[Edge], edge: u16, node: NodeId) -> ChannelId {
    let from_a = edges.get(usize::from(edge)).is_some_and(|edge| edge.a == node);
    ChannelId::new(edge, if from_a { Direction::Forward } else { Direction::Backward })
}

/// Gives an endpoint its job, and the job its memory.
fn seat_job(seat: &mut Seat, memory: &mut VectorMemory, job: Box<dyn Job>) {
    let Body::Endpoint(endpoint) = &mut seat.body else { return };
    for region in job.regions() {
        memory.add(region.region, region.length as usize);
        if region.access.read && region.length >= 8 && seat.probed.is_none() {
            seat.probed = Some(region);
        }
        if let Err(refused) = endpoint.register(region) {
            panic!("{} refused region {}: {refused}", seat.node, region.region);
        }
    }
    seat.job = Some(job);
}
