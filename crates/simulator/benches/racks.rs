//! Frames per second of the engine: every node of a rack puts two megabytes into one other node, payload kept.
//!
//! The time does not include bringing the rack up. Elements are data frames that reach their final node: 4096 bytes each,
//! and one hop more on a star than on the ring, where the target is the next neighbour.
//!
//! `RACKLOOM_COUNT=CASE` runs one case once and prints what the engine did: for instruction counters, and for racks that are
//! too large to be run again and again.

use std::time::{Duration, Instant as WallInstant};

use criterion::{Criterion, Throughput, criterion_group};
use rackloom_plan::Plan;
use rackloom_protocol::{
    Access, Command, Event, Key, LocalRange, NodeId, OperationId, RegionConfig, RegionId, RemoteAddress,
    Tenant,
};
use rackloom_simulator::Simulation;

const REGION: RegionId = RegionId(1);
const KEY: Key = Key(0x5eed);
const PUT_BYTES: u64 = 2 << 20;
const FRAME_PAYLOAD_BYTES: u64 = 4096;
const STEP_NS: u64 = 50_000;

/// A case: its name, the rack, and how far away the target of each node is.
struct Case {
    name: &'static str,
    shape: &'static str,
    nodes: u16,
    distance: u16,
}

impl Case {
    const fn new(name: &'static str, shape: &'static str, nodes: u16, distance: u16) -> Self {
        Self { name, shape, nodes, distance }
    }

    /// Data frames that reach their final node.
    const fn frames(&self) -> u64 {
        self.nodes as u64 * PUT_BYTES / FRAME_PAYLOAD_BYTES
    }
}

/// Run by criterion.
const CASES: [Case; 2] = [Case::new("star-128", "star", 128, 64), Case::new("ring-128", "ring", 128, 1)];

/// Run by hand only: a single run takes long.
const LARGE_CASES: [Case; 2] =
    [Case::new("star-1024", "star", 1024, 512), Case::new("ring-1024", "ring", 1024, 1)];

/// A rack in which every node can reach every other.
struct Rack {
    simulation: Simulation,
    nodes: u16,
    told: usize,
}

impl Rack {
    fn up(case: &Case) -> Self {
        let rack = format!("name: bench\nshape: {{{}: {{nodes: {}}}}}\n", case.shape, case.nodes);
        let plan = Plan::parse(&rack, "bench").expect("a rack");
        let mut simulation = Simulation::new(&plan, 1, Vec::new());
        let nodes = case.nodes;
        let (region, length, key, access) = (REGION, 2 * PUT_BYTES, KEY, Access::ALL);
        for node in (0..nodes).map(NodeId) {
            simulation.memory_mut(node).add(REGION, length as usize);
            let config = RegionConfig { region, length, key, access, tenant: Tenant(0) };
            simulation.endpoint_mut(node).register(config).expect("registers");
        }
        let mut rack = Self { simulation, nodes, told: 0 };
        while !(0..nodes).all(|node| rack.simulation.endpoint(NodeId(node)).reaches_everyone()) {
            rack.pass();
        }
        rack
    }

    fn pass(&mut self) {
        let until = self.simulation.now() + STEP_NS;
        self.simulation.step_until(until).expect("time goes on");
    }

    /// One put from every node, and on until the last of them has ended.
    fn permute(&mut self, distance: u16) {
        for node in 0..self.nodes {
            let (region, key) = (REGION, KEY);
            let target = RemoteAddress {
                node: NodeId((node + distance) % self.nodes),
                region,
                offset: PUT_BYTES,
                key,
            };
            let source = LocalRange { region, offset: 0, length: PUT_BYTES };
            let put = Command::Put { operation: OperationId(0), target, source, signal: None };
            self.simulation.command(NodeId(node), put).expect("takes a put");
        }
        let mut open = self.nodes;
        while open > 0 {
            self.pass();
            let news = &self.simulation.events()[self.told..];
            open -=
                news.iter().filter(|(_, _, event)| matches!(event, Event::Completed { .. })).count() as u16;
            self.told += news.len();
        }
    }

    /// One permutation: how long it took, and what the engine did for it.
    fn timed(&mut self, distance: u16) -> Duration {
        let begin = WallInstant::now();
        self.permute(distance);
        begin.elapsed()
    }
}

fn permutations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("permutation");
    group.sample_size(10);
    for case in &CASES {
        group.throughput(Throughput::Elements(case.frames()));
        group.bench_function(case.name, |bencher| {
            bencher.iter_custom(|rounds| (0..rounds).map(|_| Rack::up(case).timed(case.distance)).sum());
        });
    }
    group.finish();
}

/// One run of one case, told in a line. All hops and acknowledgements count as frames here too.
fn count(name: &str) {
    let case = CASES.iter().chain(&LARGE_CASES).find(|case| case.name == name).expect("a case's name");
    let mut rack = Rack::up(case);
    let before = rack.simulation.statistics();
    let seconds = rack.timed(case.distance).as_secs_f64();
    let after = rack.simulation.statistics();
    let (hops, occurrences) =
        (after.frames_delivered - before.frames_delivered, after.occurrences - before.occurrences);
    let millions = |count: u64| count as f64 / seconds / 1e6;
    println!(
        "{name}: {} frames at their final node ({:.3} M/s), {hops} frames over all hops ({:.3} M/s), {occurrences} \
         occurrences ({:.3} M/s) in {seconds:.3} s, trace {:016x}",
        case.frames(),
        millions(case.frames()),
        millions(hops),
        millions(occurrences),
        rack.simulation.trace_hash(),
    );
}

criterion_group!(benches, permutations);

fn main() {
    match std::env::var("RACKLOOM_COUNT") {
        Ok(name) => count(&name),
        Err(_) => {
            benches();
            Criterion::default().configure_from_args().final_summary();
        }
    }
}
