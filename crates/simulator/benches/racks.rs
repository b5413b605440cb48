//! Frames per second of the engine: every node of a rack puts two megabytes into one other node, payload kept.
//!
//! The time does not include bringing the rack up, nor touching its memory for the first time. Elements are data frames that reach their final node: 4096 bytes each,
//! and one hop more on a star than on the ring, where the target is the next neighbour.
//!
//! `RACKLOOM_PAYLOAD=elided` does it without moving payload, `RACKLOOM_LLR=on` with link-level retry on every link.
//!
//! `RACKLOOM_RAW=on` adds to what `RACKLOOM_COUNT` prints how long copying the same bytes takes in a plain loop: between as many memories, frame
//! by frame as nodes in step send them, and in runs as long as the engine's.
//!
//! `RACKLOOM_COUNT=CASE:ROUNDS` brings the rack of one case up once and prints what the engine did for so many permutations: for
//! profilers, and for racks that are too large to be brought up again and again.

use std::time::{Duration, Instant as WallInstant};

use criterion::{Criterion, Throughput, criterion_group};
use rackloom_plan::Plan;
use rackloom_protocol::{
    Access, Command, Key, LocalRange, NodeId, OperationId, RegionConfig, RegionId, RemoteAddress, Signal,
    SignalKind, Tenant,
};
use rackloom_simulator::Simulation;

const REGION: RegionId = RegionId(1);
const KEY: Key = Key(0x5eed);
const PUT_BYTES: u64 = 2 << 20;
/// For cases that compare the cost per frame by the size of the rack: large racks must fit into memory.
const SHORT_PUT_BYTES: u64 = 256 << 10;
const FRAME_PAYLOAD_BYTES: u64 = 4096;
/// Length of the word of a put's signal, behind source and target.
const WORD_BYTES: u64 = 8;
const STEP_NS: u64 = 50_000;

/// A case: its name, its rack, and the distance to the target of each node.
struct Case {
    name: &'static str,
    shape: &'static str,
    nodes: u16,
    distance: u16,
    put_bytes: u64,
}

impl Case {
    const fn new(name: &'static str, shape: &'static str, nodes: u16, distance: u16, put_bytes: u64) -> Self {
        Self { name, shape, nodes, distance, put_bytes }
    }

    /// Data frames that reach their final node.
    const fn frames(&self) -> u64 {
        self.nodes as u64 * self.put_bytes / FRAME_PAYLOAD_BYTES
    }
}

/// Run by criterion.
const CASES: [Case; 2] =
    [Case::new("star-128", "star", 128, 65, PUT_BYTES), Case::new("ring-128", "ring", 128, 1, PUT_BYTES)];

/// Run by hand only: a large rack takes long to come up, and a small one is over at once.
const OTHER_CASES: [Case; 6] = [
    Case::new("star-16-short", "star", 16, 9, SHORT_PUT_BYTES),
    Case::new("star-64-short", "star", 64, 33, SHORT_PUT_BYTES),
    Case::new("star-128-short", "star", 128, 65, SHORT_PUT_BYTES),
    Case::new("star-256-short", "star", 256, 129, SHORT_PUT_BYTES),
    Case::new("star-1024-short", "star", 1024, 513, SHORT_PUT_BYTES),
    Case::new("ring-1024-short", "ring", 1024, 1, SHORT_PUT_BYTES),
];

/// A rack in which every node can reach every other.
struct Rack {
    simulation: Simulation,
    nodes: u16,
    put_bytes: u64,
    round: u32,
}

impl Rack {
    fn up(case: &Case) -> Self {
        let setting = |name, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
        let (payload, llr) = (setting("RACKLOOM_PAYLOAD", "full"), setting("RACKLOOM_LLR", "off"));
        let rack = format!(
            "name: bench\nshape: {{{}: {{nodes: {}}}}}\nlink: {{rate: 400Gbit/s, llr: {llr}}}\npayload: {payload}\njob: none\n",
            case.shape, case.nodes
        );
        let plan = Plan::parse(&rack, "bench").expect("a rack");
        let mut simulation = Simulation::new(&plan, 1, Vec::new());
        let nodes = case.nodes;
        let (region, length, key, access) = (REGION, 2 * case.put_bytes + WORD_BYTES, KEY, Access::ALL);
        for node in (0..nodes).map(NodeId) {
            simulation.memory_mut(node).add(REGION, length as usize);
            simulation.memory_mut(node).bytes_mut(REGION).fill(0x5a);
            let config = RegionConfig { region, length, key, access, tenant: Tenant(0) };
            simulation.endpoint_mut(node).register(config).expect("registers");
        }
        let mut rack = Self { simulation, nodes, put_bytes: case.put_bytes, round: 0 };
        while !(0..nodes).all(|node| rack.simulation.endpoint(NodeId(node)).reaches_all()) {
            rack.pass();
        }
        rack
    }

    fn pass(&mut self) {
        let until = self.simulation.now() + STEP_NS;
        self.simulation.step_until(until).expect("time advances");
    }

    /// One put from every node, and on until the signal of each has come, which follows its bytes.
    fn permute(&mut self, distance: u16) {
        self.round = self.round.wrapping_add(1);
        for node in 0..self.nodes {
            let (region, key) = (REGION, KEY);
            let target = RemoteAddress {
                node: NodeId((node + distance) % self.nodes),
                region,
                offset: self.put_bytes,
                key,
            };
            let source = LocalRange { region, offset: 0, length: self.put_bytes };
            let (offset, kind, value) = (2 * self.put_bytes, SignalKind::Set, u64::from(self.round));
            let signal = Some(Signal { region, offset, key, kind, value });
            let put = Command::Put { operation: OperationId(0), target, source, signal };
            self.simulation.command(NodeId(node), put).expect("takes a put");
        }
        let mut served = 0;
        while served < self.nodes {
            match self.simulation.memory(NodeId(served)).bytes(REGION).last_chunk::<{ WORD_BYTES as usize }>()
            {
                Some(word) if u64::from_le_bytes(*word) == u64::from(self.round) => served += 1,
                _ => self.pass(),
            }
        }
    }

    /// Runs this number of permutations and returns the time they took.
    fn timed(&mut self, distance: u16, rounds: u32) -> Duration {
        let begin = WallInstant::now();
        (0..rounds).for_each(|_| self.permute(distance));
        begin.elapsed()
    }
}

fn permutations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("permutation");
    group.sample_size(10);
    for case in &CASES {
        group.throughput(Throughput::Elements(case.frames()));
        group.bench_function(case.name, |bencher| {
            bencher.iter_custom(|rounds| (0..rounds).map(|_| Rack::up(case).timed(case.distance, 1)).sum());
        });
    }
    group.finish();
}

/// Runs permutations of one rack and prints one line. All hops and acknowledgements count as frames here too.
fn count(what: &str) {
    let (name, rounds) = what.split_once(':').unwrap_or((what, "1"));
    let rounds: u32 = rounds.parse().expect("a number of rounds");
    let case = CASES.iter().chain(&OTHER_CASES).find(|case| case.name == name).expect("a case's name");
    let mut rack = Rack::up(case);
    let before = rack.simulation.statistics();
    let seconds = rack.timed(case.distance, rounds).as_secs_f64();
    let after = rack.simulation.statistics();
    let frames = case.frames() * u64::from(rounds);
    let (hops, events_handled, polls) = (
        after.frames_delivered - before.frames_delivered,
        after.events_handled - before.events_handled,
        after.polls - before.polls,
    );
    let millions = |count: u64| count as f64 / seconds / 1e6;
    println!(
        "{name}: {frames} frames at their final node ({:.3} M/s), {hops} frames over all hops ({:.3} M/s), {events_handled} \
         events ({:.3} M/s) in {polls} polls, {seconds:.3} s, {} frames alive at most, trace {:016x}",
        millions(frames),
        millions(hops),
        millions(events_handled),
        after.frames_alive_max,
        rack.simulation.trace_hash(),
    );
    if std::env::var("RACKLOOM_RAW").is_ok_and(|raw| raw == "on") {
        drop(rack);
        print_raw(case);
    }
}

/// Time per frame to copy what one permutation moves, so many frames of a node behind one another.
fn raw_copy_ns(case: &Case, frames_at_a_time: u64) -> f64 {
    let (half, step) = (case.put_bytes as usize, (frames_at_a_time * FRAME_PAYLOAD_BYTES) as usize);
    let mut memories: Vec<_> = (0..case.nodes).map(|_| vec![0x5a_u8; 2 * half]).collect();
    let begin = WallInstant::now();
    for at in (0..half).step_by(step) {
        for node in 0..case.nodes {
            let target = (node + case.distance) % case.nodes;
            let pair = memories.get_disjoint_mut([usize::from(node), usize::from(target)]);
            let [source, target] = pair.expect("two nodes");
            let end = half.min(at + step);
            target[half + at..half + end].copy_from_slice(&source[at..end]);
        }
    }
    begin.elapsed().as_secs_f64() * 1e9 / case.frames() as f64
}

/// Prints the duration of plain copies: a frame at a time, and as many as the engine copies at once.
fn print_raw(case: &Case) {
    let of_engine = (32 << 20) / FRAME_PAYLOAD_BYTES / u64::from(case.nodes);
    for frames_at_a_time in [1, of_engine.max(1)] {
        let mut takes = [(); 3].map(|()| raw_copy_ns(case, frames_at_a_time));
        takes.sort_by(f64::total_cmp);
        println!("plain copy, {frames_at_a_time} frames of a node at a time: {:.0} ns per frame", takes[1]);
    }
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
