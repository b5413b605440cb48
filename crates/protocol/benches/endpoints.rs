//! Benchmark: cost of one operation in the core, with two endpoints in one thread and plain buffers between them.
//!
//! The time of one iteration is the work of *both* ends, acknowledgements included, divided by the operations of a
//! batch. It includes no wire, no second thread and no clock. The benchmarks of wires measure what they add.
//!
//! `RACKLOOM_LAYERS=llr,pfc,channels,undivided,checks` enables the named parts of the link layer. Without it links
//! only have credits.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group};
use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::*;

const REGION: RegionId = RegionId(1);
const KEY: Key = Key(77);
const REGION_BYTES: u64 = 1 << 20;
const FRAME_BYTES_MAX: u16 = 4352;
const BATCH: u64 = 32;

const RETRY: RetryConfig = RetryConfig {
    sequence_bits: 20,
    outstanding_frames: 1_024,
    outstanding_bytes: 256 << 10,
    ack_spacing_bytes: 2_048,
    ack_delay_ns: 2_500,
    replay_timer_ns: 10_000,
    replay_timer_max_ns: 10_000,
    replay_count_max: RetryConfig::REPLAYS_UNLIMITED,
    flush: FlushPolicy::Block,
};
const PAUSE: PauseConfig = PauseConfig {
    xoff_bytes: 64 << 10,
    xon_bytes: 32 << 10,
    headroom_bytes: 64 << 10,
    quanta: 65_535,
    quantum_ps: 5_120,
    response_delay_ns: 0,
    watchdog_ns: 200_000_000,
};

/// Returns true if a part of the link layer is enabled.
fn has_layer(name: &str) -> bool {
    std::env::var("RACKLOOM_LAYERS").is_ok_and(|layers| layers.split(',').any(|layer| layer == name))
}

/// Wires that hand buffers over without copying them.
#[derive(Default)]
struct Buffers {
    outbox: Vec<Box<[u8]>>,
    lengths: Vec<usize>,
    inbox: Vec<Box<[u8]>>,
    spare: Vec<Box<[u8]>>,
    free: Vec<u32>,
}

impl Buffers {
    fn new() -> Self {
        let buffers = |count: usize| {
            (0..count).map(|_| vec![0; FRAME_BYTES_MAX.into()].into_boxed_slice()).collect::<Vec<_>>()
        };
        Self { spare: buffers(512), inbox: buffers(512), free: (0..512).collect(), ..Self::default() }
    }
}

impl Wires for Buffers {
    fn slot(&mut self, _port: PortId) -> Option<&mut [u8]> {
        self.spare.last_mut().map(|buffer| &mut buffer[..])
    }
    fn copy_lease(&mut self, _port: PortId, _lease: LeaseId, _at: usize, _length: usize) {}
    fn commit(&mut self, _port: PortId, length: usize, _doorbell: bool) {
        let Some(buffer) = self.spare.pop() else { return };
        self.outbox.push(buffer);
        self.lengths.push(length);
    }
    fn leased(&self, lease: LeaseId) -> &[u8] {
        &self.inbox[lease.0 as usize]
    }
    fn release(&mut self, lease: LeaseId) {
        self.free.push(lease.0);
    }
}

impl BatchedWires for Buffers {}

impl KeptFrames for Buffers {}

impl PinnedFrames for Buffers {}

struct Side {
    endpoint: Endpoint,
    wires: Buffers,
    memory: VectorMemory,
}

impl Side {
    fn new(node: u16, packing: PackingMode) -> Self {
        let edge = Edge { a: NodeId(0), a_port: PortId(0), b: NodeId(1), b_port: PortId(0), plane: Plane(0) };
        let credits = CreditConfig { unit_bytes: 128, overhead_bytes: 16, limit: 16_000 };
        let mut endpoint = Endpoint::new(MemberConfig {
            node: NodeId(node),
            incarnation: Incarnation(u64::from(node) + 1),
            epoch: 1,
            tenants: [Tenant(0); 2].into(),
            ether_type: 0x88b5,
            ports: vec![PortConfig {
                edge: 0,
                neighbour: NodeId(1 - node),
                plane: Plane(0),
                dimension: 0,
                credits,
                channel_limits: Vec::new(),
                is_undivided: has_layer("undivided"),
                is_dateline: false,
                updates: credits.usual_updates(),
                retry: has_layer("llr").then_some(RETRY),
                pause: has_layer("pfc").then_some(PAUSE),
            }],
            graph: Graph { members: vec![MemberRole::Endpoint; 2], edges: vec![edge] }.into(),
            timers: LinkTimers {
                heartbeat_rest: 1,
                heartbeat_interval_ns: 1_000_000,
                heartbeat_miss_max: 5,
                hold_down_ns: 1_000_000,
                up_count: 3,
                hello_interval_ns: 10_000,
            },
            transport: TransportConfig {
                mode: RetransmissionMode::Selective,
                window_packets: 256,
                reorder_packets: 256,
                timeout_initial_ns: 10_000_000,
                timeout_min_ns: 10_000_000,
                timeout_max_ns: 100_000_000,
                retry_count_max: 0,
                ack_every_packets: 16,
                ack_delay_ns: 5_000,
                congestion: CongestionControl::Off,
                grant_packets: None,
            },
            packing: PackingConfig { mode: packing, operations_max: 64 },
            paths: PathConfig::default(),
            forwarding: ForwardingConfig::default(),
            channels: if has_layer("channels") {
                ChannelConfig::by_class()
            } else {
                ChannelConfig::default()
            },
            end_to_end_check: has_layer("checks"),
            outstanding_loads_max: 64,
            frame_bytes_max: FRAME_BYTES_MAX,
        });
        let (region, length, key, access) = (REGION, REGION_BYTES, KEY, Access::ALL);
        endpoint
            .register(RegionConfig { region, length, key, access, tenant: Tenant(0) })
            .expect("registers");
        let mut memory = VectorMemory::default();
        memory.add(REGION, REGION_BYTES as usize);
        Self { endpoint, wires: Buffers::new(), memory }
    }

    fn settle(&mut self, now: Instant) -> u64 {
        if self.endpoint.poll_timeout() <= now {
            self.endpoint.handle_timeout(now);
        }
        let mut completed = 0;
        let mut count = |event| {
            if let Event::Completed { result, .. } = event {
                result.expect("nothing fails here");
                completed += 1;
            }
        };
        drain(&mut self.endpoint, now, &mut self.wires, &mut self.memory, &mut count);
        completed
    }

    fn receive(&mut self, now: Instant, from: &mut Self) {
        for (buffer, length) in from.wires.outbox.drain(..).zip(from.wires.lengths.drain(..)) {
            if self.endpoint.take_at_once(now, PortId(0), &buffer[..length], &mut self.memory) {
                from.wires.spare.push(buffer);
                continue;
            }
            let lease = self.wires.free.pop().expect("leases come back");
            let slot = &mut self.wires.inbox[lease as usize];
            from.wires.spare.push(std::mem::replace(slot, buffer));
            self.endpoint.handle_frame(now, PortId(0), LeaseId(lease), &slot[..length]);
        }
    }
}

struct Pair {
    now: Instant,
    left: Side,
    right: Side,
}

impl Pair {
    fn up(packing: PackingMode) -> Self {
        let mut pair = Self { now: Instant::ZERO, left: Side::new(0, packing), right: Side::new(1, packing) };
        while !(pair.left.endpoint.is_reachable(NodeId(1)) && pair.right.endpoint.is_reachable(NodeId(0))) {
            pair.turn();
        }
        pair
    }

    fn turn(&mut self) -> u64 {
        self.now = self.now + 1_000;
        let mut completed = self.left.settle(self.now);
        self.right.receive(self.now, &mut self.left);
        completed += self.right.settle(self.now);
        self.left.receive(self.now, &mut self.right);
        completed
    }

    /// Issues a batch and polls until all of it is visible.
    fn batch(&mut self, script: Script) {
        for index in 0..BATCH {
            if let Some(far) = script.far {
                self.right.endpoint.handle_command(self.now, far(index)).expect("space for a batch");
            }
            self.left.endpoint.handle_command(self.now, (script.near)(index)).expect("space for a batch");
        }
        let end = if script.far.is_some() { 2 * BATCH } else { BATCH };
        let mut completed = 0;
        while completed < end {
            completed += self.turn();
        }
    }
}

const DATA: [u8; 64] = [5; 64];

fn target(index: u64, bytes: u64) -> RemoteAddress {
    RemoteAddress { node: NodeId(1), region: REGION, offset: index * bytes, key: KEY }
}

fn store(index: u64) -> Command<'static> {
    let operation = OperationId(index);
    Command::Store { operation, target: target(index, 64), data: &DATA, completion: Completion::Visible }
}

fn load(index: u64) -> Command<'static> {
    let into = LocalRange { region: REGION, offset: index * 64, length: 64 };
    Command::Load { operation: OperationId(index), target: target(index, 64), into }
}

fn put(index: u64) -> Command<'static> {
    let source = LocalRange { region: REGION, offset: index * 4096, length: 4096 };
    Command::Put { operation: OperationId(index), target: target(index, 4096), source, signal: None }
}

fn get(index: u64) -> Command<'static> {
    let into = LocalRange { region: REGION, offset: index * 4096, length: 4096 };
    Command::Get { operation: OperationId(index), target: target(index, 4096), into }
}

fn fetch_add(index: u64) -> Command<'static> {
    let atomic = Atomic { kind: AtomicKind::FetchAdd, width: Width::Eight, operand: 1, compare: 0 };
    Command::Atomic { operation: OperationId(index), target: target(index, 64), atomic }
}

fn send(index: u64) -> Command<'static> {
    let source = LocalRange { region: REGION, offset: index * 64, length: 64 };
    Command::Send { operation: OperationId(index), target: NodeId(1), tag: index, source }
}

fn receive(index: u64) -> Command<'static> {
    let into = LocalRange { region: REGION, offset: index * 64, length: 64 };
    let (operation, source) = (OperationId(index), Some(NodeId(0)));
    Command::Receive { operation, source, tag: index, ignore: 0, into }
}

/// Commands of the initiator, and those that the target must have issued before.
#[derive(Clone, Copy)]
struct Script {
    near: fn(u64) -> Command<'static>,
    far: Option<fn(u64) -> Command<'static>>,
}

const fn alone(near: fn(u64) -> Command<'static>) -> Script {
    Script { near, far: None }
}

type Case = (&'static str, PackingMode, Script);

const CASES: [Case; 7] = [
    ("store-64-single", PackingMode::Off, alone(store)),
    ("store-64-packed", PackingMode::Opportunistic, alone(store)),
    ("load-64-single", PackingMode::Off, alone(load)),
    ("put-4096", PackingMode::Opportunistic, alone(put)),
    ("get-4096", PackingMode::Opportunistic, alone(get)),
    ("fetch-add-single", PackingMode::Off, alone(fetch_add)),
    ("send-64-single", PackingMode::Off, Script { near: send, far: Some(receive) }),
];

fn operations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("core");
    group.throughput(Throughput::Elements(BATCH));
    for (name, packing, script) in CASES {
        let mut pair = Pair::up(packing);
        group.bench_function(name, |bencher| bencher.iter(|| black_box(&mut pair).batch(script)));
    }
    group.finish();
}

/// A fixed number of batches of one case, for a tool that counts instructions: the difference between two counts,
/// divided by the operations between them, is exact where a time is not.
fn count(case: &str, batches: u64) {
    let (_, packing, script) = CASES.into_iter().find(|(name, ..)| *name == case).expect("a case's name");
    let mut pair = Pair::up(packing);
    (0..batches).for_each(|_| black_box(&mut pair).batch(script));
    println!("{case}: {} operations", batches * BATCH);
}

criterion_group!(benches, operations);

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
