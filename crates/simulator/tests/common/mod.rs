//! Racks for tests: described in a few lines of a rack file, driven by commands or by a small job.
#![allow(dead_code, unreachable_pub)] // Each test binary compiles this file anew and uses a part of it.

pub mod counted;

use rackloom_jobs::{Job, JobResult, Progress, Seat};
use rackloom_plan::Plan;
use rackloom_protocol::{
    Access, Atomic, AtomicKind, Command, CommandRefused, Completion, Event, Instant, JobMemory, Key,
    LocalRange, NodeId, OperationError, OperationId, RegionConfig, RegionId, RemoteAddress, Tenant, Width,
};
use rackloom_simulator::Simulation;

pub const REGION: RegionId = RegionId(1);
pub const REGION_BYTES: u64 = 1 << 16;
pub const KEY: Key = Key(0x5eed);

/// Returns a plan from the text of a rack file.
pub fn plan(text: &str) -> Plan {
    Plan::parse(text, "test").unwrap_or_else(|error| panic!("{error}"))
}

pub fn region() -> RegionConfig {
    RegionConfig { region: REGION, length: REGION_BYTES, key: KEY, access: Access::ALL, tenant: Tenant(0) }
}

/// Returns an address in another node's only region.
pub fn at(node: u16, offset: u64) -> RemoteAddress {
    RemoteAddress { node: NodeId(node), region: REGION, offset, key: KEY }
}

pub fn local(offset: u64, length: u64) -> LocalRange {
    LocalRange { region: REGION, offset, length }
}

pub fn store(operation: u64, target: RemoteAddress, data: &[u8]) -> Command<'_> {
    Command::Store { operation: OperationId(operation), target, data, completion: Completion::Visible }
}

pub fn load(operation: u64, target: RemoteAddress, into: LocalRange) -> Command<'static> {
    Command::Load { operation: OperationId(operation), target, into }
}

pub fn put(operation: u64, target: RemoteAddress, source: LocalRange) -> Command<'static> {
    Command::Put { operation: OperationId(operation), target, source, signal: None }
}

pub fn fetch_add(operation: u64, target: RemoteAddress) -> Command<'static> {
    let atomic = Atomic { kind: AtomicKind::FetchAdd, width: Width::Eight, operand: 1, compare: 0 };
    Command::Atomic { operation: OperationId(operation), target, atomic }
}

/// A rack without jobs, one region at every endpoint, brought up until all nodes reach each other.
pub struct Rack {
    pub simulation: Simulation,
    pub nodes: u16,
}

impl Rack {
    pub fn new(plan: &Plan, seed: u64) -> Self {
        let mut simulation = Simulation::new(plan, seed, Vec::new());
        let nodes = plan.endpoint_count() as u16;
        for node in 0..nodes {
            simulation.memory_mut(NodeId(node)).add(REGION, REGION_BYTES as usize);
            simulation.endpoint_mut(NodeId(node)).register(region()).expect("the region is registered");
        }
        Self { simulation, nodes }
    }

    pub fn up(plan: &Plan, seed: u64) -> Self {
        let mut rack = Self::new(plan, seed);
        for _ in 0..10_000 {
            if rack.is_whole() {
                return rack;
            }
            rack.pass(1_000_000);
        }
        panic!("the rack does not come up: {:?}", rack.simulation.events());
    }

    fn is_whole(&self) -> bool {
        (0..self.nodes).all(|node| {
            let others = (0..self.nodes).filter(|other| *other != node);
            others.into_iter().all(|other| self.simulation.endpoint(NodeId(node)).is_reachable(NodeId(other)))
        })
    }

    /// Advances the time.
    pub fn pass(&mut self, nanoseconds: u64) {
        let until = self.simulation.now() + nanoseconds;
        self.simulation.step_until(until).expect("time advances");
    }

    /// Gives a command; while the node is busy, advances the time.
    pub fn command(&mut self, node: u16, command: Command<'_>) {
        for _ in 0..1_000_000 {
            match self.simulation.command(NodeId(node), command) {
                Ok(()) => return,
                Err(CommandRefused::Busy) => self.pass(1_000),
                Err(refused) => panic!("{refused}"),
            }
        }
        panic!("node {node} stays busy: {:?}", self.simulation.endpoint(NodeId(node)).waiting_for());
    }

    /// Advances the time until the node has reported this many completions, and returns them.
    pub fn completions(&mut self, node: u16, count: usize) -> Vec<Done> {
        for _ in 0..1_000_000 {
            let done = self.completed(node);
            if done.len() >= count {
                return done;
            }
            self.pass(10_000);
        }
        panic!("still waiting: {:?}", self.simulation.endpoint(NodeId(node)).waiting_for());
    }

    pub fn completed(&self, node: u16) -> Vec<Done> {
        let events = self.simulation.events().iter().filter(|recorded| recorded.node == NodeId(node));
        events
            .filter_map(|recorded| match recorded.event {
                Event::Completed { operation, result } => Some(Done { at: recorded.at, operation, result }),
                _ => None,
            })
            .collect()
    }

    /// Sum of a counter over all ports of a node.
    pub fn retransmitted(&self, node: u16, ports: u16) -> u64 {
        (0..ports)
            .map(|port| self.simulation.counters(NodeId(node), rackloom_protocol::PortId(port)).retransmitted)
            .sum()
    }
}

/// Completion of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub at: Instant,
    pub operation: OperationId,
    pub result: Result<u64, OperationError>,
}

/// A job of `rounds` fetch-adds on a word of every other node, a few at a time. It is over when all have ended.
#[derive(Debug)]
pub struct Counting {
    rank: u16,
    nodes: u16,
    rounds: u64,
    issued: u64,
    pub succeeded: u64,
    pub failed: u64,
    lost: Vec<NodeId>,
}

impl Counting {
    pub fn jobs(nodes: u16, rounds: u64) -> Vec<Box<dyn Job>> {
        let job = |rank| -> Box<dyn Job> {
            Box::new(Self { rank, nodes, rounds, issued: 0, succeeded: 0, failed: 0, lost: Vec::new() })
        };
        (0..nodes).map(job).collect()
    }

    fn total(&self) -> u64 {
        self.rounds * u64::from(self.nodes - 1)
    }

    fn target(&self, number: u64) -> u16 {
        let step = 1 + (number % u64::from(self.nodes - 1)) as u16;
        (self.rank + step) % self.nodes
    }
}

impl Job for Counting {
    fn regions(&self) -> Vec<RegionConfig> {
        vec![region()]
    }

    fn handle_event(&mut self, _now: Instant, event: &Event) {
        match event {
            Event::Completed { result: Ok(_), .. } => self.succeeded += 1,
            Event::Completed { result: Err(_), .. } => self.failed += 1,
            Event::NodeLost { node } => self.lost.push(*node),
            _ => {}
        }
    }

    fn advance(&mut self, now: Instant, seat: &mut dyn Seat, _memory: &mut dyn JobMemory) -> Progress {
        while self.issued < self.total() && self.issued - self.succeeded - self.failed < 16 {
            let target = self.target(self.issued);
            let command = fetch_add(self.issued, at(target, u64::from(self.rank) * 8));
            match seat.command(now, command) {
                Ok(_) => self.issued += 1,
                Err(CommandRefused::Unreachable(node)) if self.lost.contains(&node) => {
                    self.issued += 1;
                    self.failed += 1;
                }
                Err(_) => break,
            }
        }
        if self.succeeded + self.failed == self.total() {
            Progress::Finished
        } else {
            Progress::Running(None)
        }
    }

    fn waiting_for(&self) -> String {
        format!("{} of {} fetch-adds", self.total() - self.succeeded - self.failed, self.total())
    }

    fn result(&mut self) -> JobResult {
        JobResult::default()
    }

    fn progress_count(&self) -> u64 {
        self.succeeded + self.failed
    }
}

/// A job that never ends and gives no commands.
#[derive(Debug)]
pub struct Idle;

impl Job for Idle {
    fn regions(&self) -> Vec<RegionConfig> {
        Vec::new()
    }
    fn handle_event(&mut self, _now: Instant, _event: &Event) {}
    fn advance(&mut self, _now: Instant, _seat: &mut dyn Seat, _memory: &mut dyn JobMemory) -> Progress {
        Progress::Running(None)
    }
    fn waiting_for(&self) -> String {
        "the end of the world".into()
    }
    fn result(&mut self) -> JobResult {
        JobResult::default()
    }
    fn progress_count(&self) -> u64 {
        0
    }
}
