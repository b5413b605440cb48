//! Lockstep of the engines: with one script, the loop of real processes (its wires, its memory, a clock moved
//! by hand) and the simulator must put byte-identical frames on every link, in one order.
//!
//! Both sides move in ticks of one link delay: a frame that is sent in one tick is received in the next.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rackloom::wires::tapped::Tapped;
use rackloom::wires::{Device, Doorbell, Ports, shared_memory};
use rackloom::{Clock, HostMemory, Runtime, WaitPolicy};
use rackloom_jobs::{Job, JobResult, Progress};
use rackloom_plan::Plan;
use rackloom_plan::impair::Direction;
use rackloom_protocol::{
    Access, Atomic, AtomicKind, Command, CommandRefused, Completion, Endpoint, Event, Instant, JobMemory,
    Key, LocalRange, MemberRole, NodeId, OperationId, RegionConfig, RegionId, RemoteAddress, Signal,
    SignalKind, Switch, Tenant, Width,
};
use rackloom_simulator::{Simulation, incarnation};

const TICK_NS: u64 = 1_000;
const SEED: u64 = 11;
const REGION: RegionId = RegionId(1);
const REGION_BYTES: u64 = 1 << 20;
const STEPS: u64 = 400;

/// Frames per (edge, sent from its `a` end), in order.
type Frames = BTreeMap<(u16, bool), Vec<Vec<u8>>>;

/// Issues a reproducible mix of operations, one at every fifth tick, and stops.
struct Script {
    node: NodeId,
    ranks: u16,
    step: u64,
    state: u64,
}

impl Script {
    fn new(node: NodeId, ranks: u16) -> Self {
        Self { node, ranks, step: 0, state: 1 + u64::from(node.0) }
    }

    fn random(&mut self, bound: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % bound
    }

    fn issue(&mut self, now: Instant, seat: &mut dyn rackloom_jobs::Seat) {
        let other = (self.node.0 + 1 + self.random(u64::from(self.ranks) - 1) as u16) % self.ranks;
        let offset = self.random(REGION_BYTES / 2) & !7;
        let target = RemoteAddress { node: NodeId(other), region: REGION, offset, key: Key(5) };
        let operation = OperationId(self.step);
        let length = 1 + self.random(9000);
        let own = LocalRange { region: REGION, offset: REGION_BYTES / 2, length };
        let data = [self.step as u8; 300];
        let small = 1 + self.random(300) as usize;
        let command = match self.random(6) {
            0 => Command::Store { operation, target, data: &data[..small], completion: Completion::Visible },
            1 => Command::Store { operation, target, data: &data[..small], completion: Completion::Accepted },
            2 => Command::Load { operation, target, into: LocalRange { length: 1 + length % 600, ..own } },
            3 => {
                let atomic =
                    Atomic { kind: AtomicKind::FetchAdd, width: Width::Eight, operand: 3, compare: 0 };
                Command::Atomic { operation, target, atomic }
            }
            4 => Command::Get { operation, target, into: own },
            _ => {
                let signal =
                    Signal { region: REGION, offset: 0, key: Key(5), kind: SignalKind::Add, value: 1 };
                Command::Put { operation, target, source: own, signal: Some(signal) }
            }
        };
        match seat.command(now, command) {
            Ok(_) | Err(CommandRefused::Busy) => {}
            Err(refused) => panic!("{} step {}: {refused}", self.node, self.step),
        }
    }
}

impl Job for Script {
    fn regions(&self) -> Vec<RegionConfig> {
        let (key, access, tenant) = (Key(5), Access::ALL, Tenant(0));
        vec![RegionConfig { region: REGION, length: REGION_BYTES, key, access, tenant }]
    }
    fn handle_event(&mut self, _now: Instant, _event: &Event) {}
    fn advance(
        &mut self,
        now: Instant,
        seat: &mut dyn rackloom_jobs::Seat,
        _memory: &mut dyn JobMemory,
    ) -> Progress {
        // The first steps wait until the rack is up; both engines see the same ticks.
        let due = Instant(1_000_000 + self.step * 5 * TICK_NS);
        if self.step == STEPS {
            return Progress::Finished;
        }
        if now >= due {
            self.issue(now, seat);
            self.step += 1;
        }
        Progress::Running(Some(Instant(1_000_000 + self.step * 5 * TICK_NS)))
    }
    fn waiting_for(&self) -> String {
        String::from("its next step")
    }
    fn result(&mut self) -> JobResult {
        JobResult::default()
    }
    fn progress_count(&self) -> u64 {
        self.step
    }
}

/// Every timer is a multiple of a tick: nothing happens between ticks in either engine.
const TIMERS: &str = "
timers: {heartbeat_interval: 100ms, heartbeat_rest: 10, hello_interval: 2ms}
transport: {timeout_initial: 50ms, timeout_min: 10ms, timeout_max: 1s, ack_delay: 200us}
";

fn plan(file: &str) -> Plan {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topologies").join(file);
    let text = std::fs::read_to_string(path).expect("a shipped rack");
    let mut plan = Plan::parse(&format!("{text}{TIMERS}"), file).expect("a shipped rack with timers");
    plan.override_links(|link| {
        link.rate_bits_per_s = None;
        link.delay_ns = TICK_NS;
    });
    plan
}

fn simulate(plan: &Plan, until: Instant) -> Frames {
    let ranks = plan.endpoint_count() as u16;
    let jobs = (0..ranks).map(|rank| Box::new(Script::new(NodeId(rank), ranks)) as Box<dyn Job>).collect();
    let mut simulation = Simulation::new(plan, SEED, jobs);
    let frames = Arc::new(Mutex::new(Frames::new()));
    let sink = frames.clone();
    simulation.on_frame(move |_, edge, direction, bytes| {
        let key = (edge, direction == Direction::Forward);
        sink.lock().expect("one thread").entry(key).or_default().push(bytes.to_vec());
    });
    simulation.step_until(until).expect("no stall");
    std::mem::take(&mut frames.lock().expect("one thread"))
}

enum Seat {
    Endpoint(Box<Runtime<Endpoint>>, Script),
    Switch(Box<Runtime<Switch>>),
}

impl Seat {
    fn receive(&mut self, now: Instant) {
        match self {
            Self::Endpoint(runtime, _) => while runtime.receive(now) {},
            Self::Switch(runtime) => while runtime.receive(now) {},
        }
    }

    fn finish(&mut self, now: Instant) {
        match self {
            Self::Endpoint(runtime, script) => loop {
                let (endpoint, memory) = runtime.parts_mut();
                script.advance(now, endpoint, memory);
                if !runtime.finish(now, &mut |_| {}) {
                    return;
                }
            },
            Self::Switch(runtime) => while runtime.finish(now, &mut |_| {}) {},
        }
    }
}

fn run(plan: &Plan, until: Instant) -> Frames {
    let frames = Arc::new(Mutex::new(Frames::new()));
    let mut seats = build(plan, &frames);
    let mut now = Instant::ZERO;
    while now <= until {
        seats.iter_mut().for_each(|seat| seat.receive(now));
        seats.iter_mut().for_each(|seat| seat.finish(now));
        now = now + TICK_NS;
    }
    std::mem::take(&mut frames.lock().expect("one thread"))
}

fn build(plan: &Plan, frames: &Arc<Mutex<Frames>>) -> Vec<Seat> {
    let graph = plan.graph();
    let bells: Vec<_> = graph.members.iter().map(|_| Doorbell::create().expect("a doorbell")).collect();
    let mut devices: Vec<Vec<(u16, Box<dyn Device>)>> = graph.members.iter().map(|_| Vec::new()).collect();
    for (index, edge) in graph.edges.iter().enumerate() {
        let (a, b) =
            shared_memory::pair(plan.settings.ring_bytes, &bells[edge.a.index()], &bells[edge.b.index()])
                .expect("a shared-memory link");
        for (node, port, device, forward) in [(edge.a, edge.a_port, a, true), (edge.b, edge.b_port, b, false)]
        {
            let sink = frames.clone();
            let watch = move |bytes: &[u8]| {
                let key = (index as u16, forward);
                sink.lock().expect("one thread").entry(key).or_default().push(bytes.to_vec());
            };
            devices[node.index()].push((port.0, Box::new(Tapped::new(device, watch))));
        }
    }
    devices.into_iter().enumerate().map(|(index, ports)| seat(plan, NodeId(index as u16), ports)).collect()
}

fn seat(plan: &Plan, node: NodeId, mut devices: Vec<(u16, Box<dyn Device>)>) -> Seat {
    devices.sort_by_key(|(port, _)| *port);
    let devices = devices.into_iter().map(|(_, device)| device).collect();
    let ports = Ports::new(devices, plan.settings.frame_bytes_max).expect("devices of one kind");
    let config = plan.member_config_on(rackloom_plan::Clock::Virtual, node, incarnation(SEED, node));
    if plan.members[node.index()].role == MemberRole::Switch {
        let runtime = Runtime::new(
            Switch::new(config),
            ports,
            HostMemory::default(),
            Clock::begin(),
            WaitPolicy::CROWDED,
        );
        return Seat::Switch(Box::new(runtime));
    }
    let script = Script::new(node, plan.endpoint_count() as u16);
    let (mut endpoint, mut memory) = (Endpoint::new(config), HostMemory::default());
    for region in script.regions() {
        memory.allocate(region.region, region.length).expect("memory");
        endpoint.register(region).expect("a fresh endpoint");
    }
    let runtime = Runtime::new(endpoint, ports, memory, Clock::begin(), WaitPolicy::CROWDED);
    Seat::Endpoint(Box::new(runtime), script)
}

fn compare(file: &str) {
    let plan = plan(file);
    let until = Instant(1_000_000 + (STEPS * 5 + 2_000) * TICK_NS);
    let (virtual_frames, real_frames) = (simulate(&plan, until), run(&plan, until));
    assert_eq!(virtual_frames.len(), 2 * plan.links.len(), "{file}: every link direction carries something");
    for (key, ours) in &virtual_frames {
        let theirs = &real_frames[key];
        for (number, (left, right)) in ours.iter().zip(theirs).enumerate() {
            assert!(left == right, "{file}: edge {key:?} differs at frame {number} of {}", ours.len());
        }
        // The last tick's frames are delivered in one engine and only sent in the other.
        assert!(
            ours.len().abs_diff(theirs.len()) <= 2,
            "{file}: edge {key:?}: {} and {}",
            ours.len(),
            theirs.len()
        );
        // A plane without flows still carries its heartbeats.
        assert!(ours.len() > 20, "{file}: edge {key:?} carried only {} frames", ours.len());
    }
}

#[test]
fn a_ring_sends_the_same_bytes_in_both_engines() {
    compare("ring-4.yaml");
}

#[test]
fn a_star_sends_the_same_bytes_in_both_engines() {
    compare("star-4.yaml");
}

#[test]
fn a_mesh_sends_the_same_bytes_in_both_engines() {
    compare("full-mesh-4.yaml");
}
