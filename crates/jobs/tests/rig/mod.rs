//! Endpoints and switches of a plan, joined by links that deliver every frame in order after a fixed delay.
//!
//! The rig is simple on purpose. The simulator tests behaviour under loss and disorder. Here the litmus runs on the
//! real protocol core, and a test may change an owner's memory without the core.

use std::collections::{BTreeMap, VecDeque};

use rackloom_jobs::report::{Context, EventLog, MemberReport, MemberSeat, MemberState, PortReport};
use rackloom_jobs::{Job, JobResult, Progress, Report};
use rackloom_plan::Plan;
use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::{
    BatchedWires, Endpoint, Event, Incarnation, Inspect, Instant, KeptFrames, LeaseId, MemberRole, NodeId,
    PinnedFrames, PortId, RegionId, Switch, Wires, drain,
};

const DELAY_NS: u64 = 500;
const LIMIT_NS: u64 = 60_000_000_000;

enum AnyMember {
    Endpoint(Box<Endpoint>),
    Switch(Box<Switch>),
}

impl AnyMember {
    fn member(&mut self) -> &mut dyn Inspect {
        match self {
            Self::Endpoint(endpoint) => &mut **endpoint,
            Self::Switch(switch) => &mut **switch,
        }
    }
}

#[derive(Default)]
struct Cables {
    frame_buffer: Vec<u8>,
    sent: Vec<(PortId, Vec<u8>)>,
    leased: BTreeMap<u32, Vec<u8>>,
    next_lease: u32,
}

impl Wires for Cables {
    fn slot(&mut self, _port: PortId) -> Option<&mut [u8]> {
        self.frame_buffer.resize(16 << 10, 0);
        Some(&mut self.frame_buffer)
    }
    fn copy_lease(&mut self, _port: PortId, lease: LeaseId, at: usize, length: usize) {
        self.frame_buffer[at..at + length].copy_from_slice(&self.leased[&lease.0][at..at + length]);
    }
    fn commit(&mut self, port: PortId, length: usize, _doorbell: bool) {
        self.sent.push((port, self.frame_buffer[..length].to_vec()));
    }
    fn leased(&self, lease: LeaseId) -> &[u8] {
        &self.leased[&lease.0]
    }
    fn release(&mut self, lease: LeaseId) {
        self.leased.remove(&lease.0);
    }
}

impl BatchedWires for Cables {}

impl KeptFrames for Cables {}

impl PinnedFrames for Cables {}

struct Seat {
    member: AnyMember,
    cables: Cables,
    memory: VectorMemory,
    job: Option<Box<dyn Job>>,
    wake: Option<Instant>,
    is_finished: bool,
    is_dead: bool,
    events: EventLog,
}

/// A frame in flight: time of arrival, member, port, and bytes.
type Flight = (Instant, usize, PortId, Vec<u8>);

pub struct Rig {
    pub plan: Plan,
    pub now: Instant,
    seats: Vec<Seat>,
    flights: VecDeque<Flight>,
    names: Vec<String>,
}

impl Rig {
    pub fn new(rack: &str, seed: u64) -> Self {
        Self::with(rack, |plan, rank| rackloom_jobs::build(plan, rank, seed))
    }

    /// Returns a rack with jobs of the test.
    pub fn with(rack: &str, mut job: impl FnMut(&Plan, NodeId) -> Box<dyn Job>) -> Self {
        let plan = Plan::parse(rack, "test").unwrap();
        let nodes = 0..plan.members.len();
        let seats = nodes.map(|node| Seat::new(&plan, NodeId(node as u16), &mut job)).collect();
        let names = plan.members.iter().map(|member| member.name.clone()).collect();
        Self { plan, now: Instant::ZERO, seats, flights: VecDeque::new(), names }
    }

    pub fn memory(&mut self, rank: usize, region: u32) -> &mut [u8] {
        self.seats[rank].memory.bytes_mut(RegionId(region))
    }

    pub fn waiting_for(&self, rank: usize) -> String {
        self.seats[rank].job.as_ref().map_or_else(String::new, |job| job.waiting_for())
    }

    pub fn result(&mut self, rank: usize) -> JobResult {
        self.seats[rank].job.as_mut().expect("a rank has a job").result()
    }

    /// Returns the bytes of the result of a rank's job.
    pub fn output(&self, rank: usize) -> Option<Vec<u8>> {
        let seat = &self.seats[rank];
        let output = seat.job.as_ref()?.output()?;
        Some(seat.memory.bytes(output.region)[..output.bytes() as usize].to_vec())
    }

    pub fn kill(&mut self, member: usize) {
        self.seats[member].is_dead = true;
        self.flights.retain(|flight| flight.1 != member);
    }

    pub fn run(&mut self) {
        self.run_until(|_| false);
    }

    /// Runs until every live rank is over, or until `stop` returns `true`.
    pub fn run_until(&mut self, mut stop: impl FnMut(&mut Self) -> bool) {
        while !self.seats.iter().all(|seat| seat.is_finished || seat.is_dead || seat.job.is_none()) {
            if stop(self) {
                return;
            }
            assert!(self.now.0 < LIMIT_NS, "no end: {:#?}", self.who_waits());
            self.step();
        }
    }

    fn who_waits(&self) -> Vec<String> {
        (0..self.seats.len())
            .map(|rank| format!("{}: {}", self.names[rank], self.waiting_for(rank)))
            .collect()
    }

    fn step(&mut self) {
        let flight = self.flights.front().map_or(Instant::NEVER, |flight| flight.0);
        let living = self.seats.iter_mut().filter(|seat| !seat.is_dead);
        let next = living.map(Seat::next_time).fold(flight, Instant::min);
        assert_ne!(next, Instant::NEVER, "nothing will ever happen: {:#?}", self.who_waits());
        self.now = self.now.max(next);
        while self.flights.front().is_some_and(|flight| flight.0 <= self.now) {
            let Some((_, member, port, bytes)) = self.flights.pop_front() else { break };
            self.deliver(member, port, bytes);
        }
        for member in 0..self.seats.len() {
            let now = self.now;
            let seat = &mut self.seats[member];
            if seat.is_dead || seat.next_time() > now {
                continue;
            }
            if seat.member.member().poll_timeout() <= now {
                seat.member.member().handle_timeout(now);
            }
            seat.wake = None;
            self.settle(member);
        }
    }

    fn deliver(&mut self, member: usize, port: PortId, bytes: Vec<u8>) {
        let seat = &mut self.seats[member];
        if seat.is_dead {
            return;
        }
        let lease = LeaseId(seat.cables.next_lease);
        seat.cables.next_lease = seat.cables.next_lease.wrapping_add(1);
        seat.cables.leased.insert(lease.0, bytes.clone());
        seat.member.member().handle_frame(self.now, port, lease, &bytes);
        self.settle(member);
    }

    /// Polls a job and its member until neither has anything more to do. Commands of the last poll are sent too.
    fn settle(&mut self, member: usize) {
        let now = self.now;
        let seat = &mut self.seats[member];
        loop {
            if let (Some(job), AnyMember::Endpoint(endpoint)) = (&mut seat.job, &mut seat.member) {
                match job.advance(now, &mut **endpoint, &mut seat.memory) {
                    Progress::Running(wake) => seat.wake = wake,
                    Progress::Finished => (seat.is_finished, seat.wake) = (true, None),
                }
            }
            let mut events: Vec<Event> = Vec::new();
            let moved = drain(seat.member.member(), now, &mut seat.cables, &mut seat.memory, &mut |event| {
                events.push(event)
            });
            for event in &events {
                seat.events.push_event(now, NodeId(member as u16), event, &self.names);
                seat.job.iter_mut().for_each(|job| job.handle_event(now, event));
            }
            if !moved {
                break;
            }
        }
        self.launch(member);
    }

    fn launch(&mut self, member: usize) {
        let graph = self.plan.graph();
        for (port, bytes) in std::mem::take(&mut self.seats[member].cables.sent) {
            let edge = graph.ports(NodeId(member as u16))[port.index()].edge;
            let ends = graph.edges[usize::from(edge)];
            let is_forward = ends.a.index() == member && ends.a_port == port;
            let (to, to_port) = if is_forward { (ends.b, ends.b_port) } else { (ends.a, ends.a_port) };
            self.flights.push_back((self.now + DELAY_NS, to.index(), to_port, bytes));
        }
    }

    pub fn report(&mut self) -> Report {
        let context = Context {
            members: self
                .plan
                .members
                .iter()
                .map(|member| MemberSeat {
                    name: member.name.clone(),
                    has_job: member.role == MemberRole::Endpoint,
                })
                .collect(),
            links: self.plan.links.iter().map(|link| (link.edge.a.0, link.edge.b.0)).collect(),
            clock: "virtual".into(),
            elapsed_ns: self.now.0,
            ..Context::default()
        };
        let graph = self.plan.graph();
        let members: Vec<_> = (0..self.seats.len())
            .map(|member| {
                let seat = &mut self.seats[member];
                if seat.is_dead {
                    return MemberReport::silent(&self.names[member], None, MemberState::Killed);
                }
                let edges = graph.ports(NodeId(member as u16)).into_iter().map(|port| port.edge);
                MemberReport {
                    name: self.names[member].clone(),
                    pid: None,
                    state: MemberState::Finished,
                    job: seat.job.as_mut().map(|job| job.result()),
                    ports: PortReport::of_member(seat.member.member(), edges),
                    events: seat.events.clone(),
                    waiting: Vec::new(),
                    timer_late_max_ns: 0,
                    shortage: rackloom_jobs::report::HostShortage::default(),
                    series: None,
                }
            })
            .collect();
        Report::assemble(context, &members)
    }
}

impl Seat {
    fn new(plan: &Plan, node: NodeId, job: &mut impl FnMut(&Plan, NodeId) -> Box<dyn Job>) -> Self {
        let config = plan.member_config(node, Incarnation(u64::from(node.0) + 1));
        let mut memory = VectorMemory::default();
        let (member, job) = if plan.members[node.index()].role == MemberRole::Switch {
            (AnyMember::Switch(Box::new(Switch::new(config))), None)
        } else {
            let job = job(plan, node);
            let mut endpoint = Endpoint::new(config);
            for region in job.regions() {
                memory.add(region.region, region.length as usize);
                endpoint.register(region).unwrap();
            }
            (AnyMember::Endpoint(Box::new(endpoint)), Some(job))
        };
        let cables = Cables::default();
        let events = EventLog::default();
        let wake = job.is_some().then_some(Instant::ZERO);
        Self { member, cables, memory, job, wake, is_finished: false, is_dead: false, events }
    }

    fn next_time(&mut self) -> Instant {
        self.member.member().poll_timeout().min(self.wake.unwrap_or(Instant::NEVER))
    }
}
