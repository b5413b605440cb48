//! One member with its memory and its job, and what a turn of it is.
//!
//! A turn is always the same: frames port by port; then, as long as anything comes of it, the job's own turn, the
//! timeout if it is due, one drain, events to the job. That is also the order of the real event loop, which is why
//! the two engines put the same frames on the wires.

use rackloom_jobs::{Job, Progress};
use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::{
    Endpoint, Event, Instant, Member, Memory, MemoryDone, MemoryFault, MemoryRequest, NodeId, PortId,
    RegionId, Switch, drain,
};

use crate::fabric::Fabric;
use crate::frames::FrameId;
use crate::leases::Leases;
use crate::link::ChannelId;
use crate::outcome::MemberState;
use crate::wires::MemberWires;

/// Rounds of job and drain in one turn; a job that wants more goes on in the next turn of the same moment, where the
/// watchdog counts.
const ROUNDS_MAX: u32 = 1_000;

/// Why a member gets a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) member: NodeId,
    /// The frame that came in, and where; `None` for a turn without a frame.
    pub(crate) frame: Option<(PortId, FrameId)>,
    /// Order of insertion.
    pub(crate) number: u64,
}

impl Due {
    /// Member by member, frames port by port, each in order of insertion.
    pub(crate) fn order(&self) -> (u16, u16, u64) {
        (self.member.0, self.frame.map_or(u16::MAX, |(port, _)| port.0), self.number)
    }
}

/// The state machine in a seat.
#[derive(Debug)]
pub(crate) enum Body {
    Endpoint(Box<Endpoint>),
    Switch(Box<Switch>),
    #[cfg(test)]
    Toy(Box<crate::rack::toy::Toy>),
}

impl Body {
    pub(crate) fn member(&self) -> &dyn Member {
        match self {
            Self::Endpoint(endpoint) => &**endpoint,
            Self::Switch(switch) => &**switch,
            #[cfg(test)]
            Self::Toy(toy) => &**toy,
        }
    }

    pub(crate) fn member_mut(&mut self) -> &mut dyn Member {
        match self {
            Self::Endpoint(endpoint) => &mut **endpoint,
            Self::Switch(switch) => &mut **switch,
            #[cfg(test)]
            Self::Toy(toy) => &mut **toy,
        }
    }

    /// Written per kind, so that the polling of many ports is compiled for each.
    fn drain(
        &mut self,
        now: Instant,
        wires: &mut MemberWires<'_>,
        memory: &mut CountedMemory<'_>,
        events: &mut Vec<Event>,
    ) -> bool {
        let mut keep = |event| events.push(event);
        match self {
            Self::Endpoint(endpoint) => drain(&mut **endpoint, now, wires, memory, &mut keep),
            Self::Switch(switch) => drain(&mut **switch, now, wires, memory, &mut keep),
            #[cfg(test)]
            Self::Toy(toy) => drain(&mut **toy, now, wires, memory, &mut keep),
        }
    }
}

/// Whether a member takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Alive,
    /// Stands still; what comes in waits.
    Paused,
    Dead,
}

/// One member of the rack.
pub(crate) struct Seat {
    pub(crate) body: Body,
    pub(crate) node: NodeId,
    pub(crate) memory: VectorMemory,
    pub(crate) job: Option<Box<dyn Job>>,
    pub(crate) life: Life,
    /// The job has ended.
    pub(crate) finished: bool,
    /// The earliest scheduled timer of this member; later ones are stale.
    pub(crate) timer_at: Instant,
    /// The earliest scheduled wake-up of the job; later ones are stale.
    pub(crate) wake_at: Instant,
    /// What came in while the member was paused.
    pub(crate) parked: Vec<Due>,
    /// The channel that leaves each port.
    pub(crate) outgoing: Vec<ChannelId>,
    /// The frames that it holds.
    pub(crate) leases: Leases,
    memory_requests: u64,
    job_progress: u64,
}

/// What came of a turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// The job asked to be called again at this time.
    pub(crate) wake_at: Option<Instant>,
    /// The job has just ended.
    pub(crate) finished: bool,
    /// An operation ended, or memory was touched on behalf of somebody.
    pub(crate) worked: bool,
    /// The job says that it got further.
    pub(crate) job_advanced: bool,
}

impl Seat {
    pub(crate) fn new(node: NodeId, body: Body, outgoing: Vec<ChannelId>) -> Self {
        Self {
            body,
            node,
            memory: VectorMemory::default(),
            job: None,
            life: Life::Alive,
            finished: false,
            timer_at: Instant::NEVER,
            wake_at: Instant::NEVER,
            parked: Vec::new(),
            outgoing,
            leases: Leases::default(),
            memory_requests: 0,
            job_progress: 0,
        }
    }

    /// Whether the run must wait for this member's job.
    pub(crate) fn is_awaited(&self) -> bool {
        self.job.is_some() && !self.finished && self.life != Life::Dead
    }

    pub(crate) fn state(&self) -> MemberState {
        match self.life {
            Life::Dead => MemberState::Killed,
            Life::Paused => MemberState::Paused,
            Life::Alive if self.finished => MemberState::Finished,
            Life::Alive => MemberState::Running,
        }
    }

    /// Give the member its turn. What it reports is added to `events`.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        due: &[Due],
        fabric: &mut Fabric,
        events: &mut Vec<Event>,
    ) -> Turn {
        for (port, frame) in due.iter().filter_map(|due| due.frame) {
            let before = fabric.has_witness().then(|| self.body.member().port_counters(port).dropped);
            let bytes = fabric.deliver(now, frame);
            self.body.member_mut().handle_frame(now, port, self.leases.give(frame), bytes);
            let counters = self.body.member().port_counters(port);
            if let Some(reason) = before.and_then(|before| counters.dropped_since(&before)) {
                fabric.not_used(now, frame, reason);
            }
        }
        let memory_requests = self.memory_requests;
        let mut turn = self.rounds(now, fabric, events);
        turn.worked = self.memory_requests > memory_requests
            || events.iter().any(|event| matches!(event, Event::Completed { .. }));
        turn.job_advanced = turn.finished || self.job_has_advanced();
        turn
    }

    fn job_has_advanced(&mut self) -> bool {
        let count = self.job.as_ref().map_or(0, |job| job.progress_count());
        std::mem::replace(&mut self.job_progress, count) != count
    }

    /// The job's turn, the timeout, a drain, events to the job: until nothing more comes of it.
    fn rounds(&mut self, now: Instant, fabric: &mut Fabric, events: &mut Vec<Event>) -> Turn {
        let mut turn = Turn::default();
        for _ in 0..ROUNDS_MAX {
            self.advance(now, &mut turn);
            if self.body.member().poll_timeout() <= now {
                self.body.member_mut().handle_timeout(now);
            }
            let told = events.len();
            if !self.drain(now, fabric, events) {
                return turn;
            }
            if let Some(job) = &mut self.job {
                events[told..].iter().for_each(|event| job.handle_event(now, event));
            }
        }
        turn.wake_at = Some(now);
        turn
    }

    fn advance(&mut self, now: Instant, turn: &mut Turn) {
        let (Some(job), Body::Endpoint(endpoint)) = (&mut self.job, &mut self.body) else { return };
        if self.finished {
            return;
        }
        match job.advance(now, &mut **endpoint, &mut self.memory) {
            Progress::Running(wake_at) => turn.wake_at = wake_at.map(|at| at.max(now + 1)),
            Progress::Finished => {
                self.finished = true;
                (turn.finished, turn.wake_at) = (true, None);
            }
        }
    }

    fn drain(&mut self, now: Instant, fabric: &mut Fabric, events: &mut Vec<Event>) -> bool {
        let mut wires = MemberWires { fabric, now, outgoing: &self.outgoing, leases: &mut self.leases };
        let mut memory = CountedMemory { memory: &mut self.memory, requests: &mut self.memory_requests };
        self.body.drain(now, &mut wires, &mut memory, events)
    }
}

/// Memory that counts what is asked of it on behalf of others: the watchdog's measure of progress.
struct CountedMemory<'m> {
    memory: &'m mut VectorMemory,
    requests: &'m mut u64,
}

impl Memory for CountedMemory<'_> {
    fn execute<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>> {
        *self.requests += 1;
        self.memory.execute(request, frame)
    }

    fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.memory.read(region, offset, out)
    }

    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.memory.write(region, offset, bytes)
    }
}
