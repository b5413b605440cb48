//! Benchmark of one operation between two whole nodes on a shared-memory link, and of one frame on the link alone.
//!
//! `polls`: both event loops run alternately in one thread, so the time is the work of *both* ends with rings, leases and memory, and no waiting.
//! `threads`: a thread for each node, as two processes would run; the time is that of the slower end. `ring`: frames through one device to another,
//! without a node: the upper limit for both.
//!
//! The benchmark judges nothing. Compare its results with others of the same machine at the same time.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant as WallInstant};

use criterion::{Criterion, Throughput, criterion_group};
use rackloom::wires::exchangeable_port::{ExchangeablePort, Idle};
use rackloom::wires::impaired::Impaired;
use rackloom::wires::shared_memory::{self, Doorbell, SharedMemoryDevice};
use rackloom::wires::{Device, Ports, WakeSource};
use rackloom::{Clock, HostMemory, Runtime, WaitPolicy};
use rackloom_plan::Plan;
use rackloom_plan::impair::{Direction, Judge};
use rackloom_protocol::{
    Access, Command, CommandRefused, Completion, Endpoint, Event, Incarnation, Instant, Key, LocalRange,
    Member, NodeId, OperationId, RegionConfig, RegionId, RemoteAddress,
};

const REGION: RegionId = RegionId(1);
const REGION_BYTES: u64 = 1 << 18;
const KEY: Key = Key(0x1234);
const RING_BYTES: u32 = 1 << 20;
/// Number of operations in flight at the same time.
const BATCH: u64 = 32;
/// Suffix of a case's name: with the port wrappers of a rack that stays.
const STAYING: &str = "-staying";
const DATA: [u8; 64] = [5; 64];

struct Node {
    runtime: Runtime<Endpoint>,
    now: Instant,
    completed: u64,
}

impl Node {
    fn new(plan: &Plan, node: u16, device: Box<dyn Device>) -> Self {
        let ports = Ports::new(vec![device], plan.settings.frame_bytes_max).expect("ports");
        let mut memory = HostMemory::default();
        memory.allocate(REGION, REGION_BYTES).expect("memory");
        let config = plan.member_config(NodeId(node), Incarnation(7));
        let tenant = config.tenants[usize::from(node)];
        let mut endpoint = Endpoint::new(config);
        let (region, length, key, access) = (REGION, REGION_BYTES, KEY, Access::ALL);
        endpoint.register(RegionConfig { region, length, key, access, tenant }).expect("registers");
        let runtime = Runtime::new(endpoint, ports, memory, Clock::begin(), WaitPolicy::EAGER);
        Self { runtime, now: Instant::ZERO, completed: 0 }
    }

    fn poll(&mut self, now: Instant) -> bool {
        self.now = now;
        let completed = &mut self.completed;
        self.runtime.poll(now, &mut |event| {
            if let Event::Completed { result, .. } = event {
                result.expect("nothing fails here");
                *completed += 1;
            }
        })
    }

    /// Polls in wall time, and waits if there was nothing to do.
    fn live(&mut self) {
        if !self.poll(self.runtime.now()) {
            self.runtime.wait(self.runtime.now() + 10_000_000);
        }
    }

    /// Returns whether the node accepted the command.
    fn accepts(&mut self, command: Command<'_>) -> bool {
        match self.runtime.member_mut().handle_command(self.now, command) {
            Ok(()) => true,
            Err(CommandRefused::Busy) => false,
            Err(refused) => panic!("{refused}"),
        }
    }
}

/// Wraps a device as a port of a rack that stays does: with dormant fault injection, and an exchangeable cable.
fn staying(plan: &Plan, device: SharedMemoryDevice, direction: Direction) -> Box<dyn Device> {
    let WakeSource::Doorbell(bell) = device.wake_source() else { panic!("rings wake by doorbells") };
    let idle = Idle::Doorbell(bell.clone());
    let link = &plan.links[0];
    let judge = Judge::new(plan.settings.seed, &link.name, direction, &link.profile);
    let impaired = Impaired::new(device, judge, None).dormant();
    Box::new(ExchangeablePort::new(Some(Box::new(impaired)), idle).0)
}

fn pair(packing: &str) -> [Node; 2] {
    pair_with(packing, |_, device, _| Box::new(device))
}

fn pair_with(
    packing: &str,
    port: impl Fn(&Plan, SharedMemoryDevice, Direction) -> Box<dyn Device>,
) -> [Node; 2] {
    let rack = format!("name: two\nshape: {{ring: {{nodes: 2}}}}\npacking: {{mode: {packing}}}\n");
    let plan = Plan::parse(&rack, "bench").expect("a rack");
    let bells = (Doorbell::create().expect("a doorbell"), Doorbell::create().expect("a doorbell"));
    let (first, second) = shared_memory::pair(RING_BYTES, &bells.0, &bells.1).expect("a link");
    let devices = [port(&plan, first, Direction::Forward), port(&plan, second, Direction::Backward)];
    let [first, second] = devices;
    [Node::new(&plan, 0, first), Node::new(&plan, 1, second)]
}

fn target(index: u64, bytes: u64) -> RemoteAddress {
    RemoteAddress { node: NodeId(1), region: REGION, offset: index * bytes, key: KEY }
}

fn store(index: u64) -> Command<'static> {
    let operation = OperationId(index);
    Command::Store { operation, target: target(index, 64), data: &DATA, completion: Completion::Visible }
}

fn put(index: u64) -> Command<'static> {
    let source = LocalRange { region: REGION, offset: index * 4096, length: 4096 };
    Command::Put { operation: OperationId(index), target: target(index, 4096), source, signal: None }
}

type Case = (&'static str, &'static str, fn(u64) -> Command<'static>);

const CASES: [Case; 3] = [
    ("store-64-single", "off", store),
    ("store-64-packed", "opportunistic", store),
    ("put-4096", "opportunistic", put),
];

/// Two nodes in one thread, with simulated time.
struct Polls {
    nodes: [Node; 2],
    now: Instant,
}

impl Polls {
    fn up(packing: &str) -> Self {
        Self::of(pair(packing))
    }

    fn of(nodes: [Node; 2]) -> Self {
        let mut polls = Self { nodes, now: Instant::ZERO };
        while !polls.nodes.iter().all(|node| node.runtime.member().reaches_all()) {
            polls.poll();
        }
        polls
    }

    fn poll(&mut self) {
        self.now = self.now + 1_000;
        for node in &mut self.nodes {
            node.poll(self.now);
        }
    }

    /// Issues a batch and polls until all of it is visible.
    fn batch(&mut self, command: fn(u64) -> Command<'static>) {
        let end = self.nodes[0].completed + BATCH;
        for index in 0..BATCH {
            assert!(self.nodes[0].accepts(command(index)), "space for a batch");
        }
        while self.nodes[0].completed < end {
            self.poll();
        }
    }
}

/// The local one of two nodes that run in threads. The remote node runs until this value is dropped.
struct Threads {
    near: Node,
    over: Arc<AtomicBool>,
    far: Option<thread::JoinHandle<()>>,
}

impl Threads {
    fn up(packing: &str) -> Self {
        let [mut near, mut far] = pair(packing);
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let far = thread::spawn(move || {
            while !seen.load(Ordering::Acquire) {
                far.live();
            }
        });
        while !near.runtime.member().reaches_all() {
            near.live();
        }
        Self { near, over, far: Some(far) }
    }

    /// Returns the duration of `operations` operations with at most `window` of them in flight.
    fn time(&mut self, operations: u64, window: u64, command: fn(u64) -> Command<'static>) -> Duration {
        let begin = WallInstant::now();
        let (mut issued, end) = (self.near.completed, self.near.completed + operations);
        while self.near.completed < end {
            while issued < end.min(self.near.completed + window) && self.near.accepts(command(issued % BATCH))
            {
                issued += 1;
            }
            self.near.live();
        }
        begin.elapsed()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(far) = self.far.take() {
            let _ = far.join();
        }
    }
}

fn polls(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("polls");
    group.throughput(Throughput::Elements(BATCH));
    for (name, packing, command) in CASES {
        let mut polls = Polls::up(packing);
        group.bench_function(name, |bencher| bencher.iter(|| black_box(&mut polls).batch(command)));
        let mut polls = Polls::of(pair_with(packing, staying));
        let name = format!("{name}{STAYING}");
        group.bench_function(name, |bencher| bencher.iter(|| black_box(&mut polls).batch(command)));
    }
    group.finish();
}

fn threads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("threads");
    group.throughput(Throughput::Elements(1));
    let round_trip: Case = ("store-64-round-trip", "opportunistic", store);
    for (name, packing, command) in CASES.into_iter().chain([round_trip]) {
        let window = if name == round_trip.0 { 1 } else { 4 * BATCH };
        let mut threads = Threads::up(packing);
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|operations| threads.time(operations, window, command));
        });
    }
    group.finish();
}

/// Sends a batch of frames from one device to the other. Each frame is released as soon as it was read.
fn exchange(sender: &mut dyn Device, receiver: &mut dyn Device, frame_bytes: usize) {
    for _ in 0..BATCH {
        let slot = sender.slot().expect("the ring has space for a batch");
        slot[..frame_bytes].fill(7);
        sender.commit(frame_bytes, false);
    }
    sender.flush(Instant::ZERO);
    while let Some(lease) = receiver.receive() {
        black_box(receiver.leased(lease).first());
        receiver.release(lease);
    }
    receiver.flush(Instant::ZERO);
}

fn ring(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ring");
    group.throughput(Throughput::Elements(BATCH));
    for frame_bytes in [64, 1500, 4096] {
        let bells = (Doorbell::create().expect("a doorbell"), Doorbell::create().expect("a doorbell"));
        let (mut first, mut second) = shared_memory::pair(RING_BYTES, &bells.0, &bells.1).expect("a link");
        group.bench_function(format!("frame-{frame_bytes}"), |bencher| {
            bencher.iter(|| exchange(&mut first, &mut second, frame_bytes));
        });
    }
    group.finish();
}

/// Runs a fixed number of batches of one case in one thread, for a tool that counts instructions.
fn count(case: &str, batches: u64) {
    let plain = case.strip_suffix(STAYING).unwrap_or(case);
    let (_, packing, command) = CASES.into_iter().find(|(name, ..)| *name == plain).expect("a case's name");
    let mut polls = if plain == case { Polls::up(packing) } else { Polls::of(pair_with(packing, staying)) };
    (0..batches).for_each(|_| black_box(&mut polls).batch(command));
    println!("{case}: {} operations", batches * BATCH);
}

criterion_group!(benches, polls, threads, ring);

fn main() {
    let counted = std::env::var("RACKLOOM_COUNT").ok();
    match counted.as_deref().and_then(|text| text.split_once(':')) {
        Some((case, batches)) => count(case, batches.parse().expect("CASE:BATCHES")),
        None => {
            benches();
            Criterion::default().configure_from_args().final_summary();
        }
    }
}
