//! Tests of two GPU nodes, each with its own thread, memory and clock reading, joined by a shared-memory link. A put with a signal arrives intact, on
//! a clean link and on one that drops, corrupts, duplicates and reorders frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rackloom::wires::impaired::Impaired;
use rackloom::wires::shared_memory::{self, Doorbell, End};
use rackloom::wires::{DeviceCounters, Ports};
use rackloom::{Clock, HostMemory, Runtime, WaitPolicy};
use rackloom_plan::Plan;
use rackloom_plan::impair::{Direction, Judge};
use rackloom_protocol::{
    Access, Command, Condition, Endpoint, Event, Incarnation, Instant, JobMemory, Key, LocalRange, Member,
    Memory, NodeId, OperationId, PortId, RegionConfig, RegionId, RemoteAddress, Signal, SignalKind,
};

const REGION: RegionId = RegionId(1);
const KEY: Key = Key(0x1234);
const DATA_BYTES: u64 = 1 << 20;
const SIGNAL_AT: u64 = DATA_BYTES;
const TIMEOUT_NS: u64 = 60_000_000_000;
const PUT: OperationId = OperationId(1);
const WAIT: OperationId = OperationId(2);

/// One node of a rack of two.
struct Node {
    runtime: Runtime<Endpoint>,
    completed: Vec<OperationId>,
    /// Number of nodes that have finished.
    over: Arc<AtomicUsize>,
}

impl Node {
    fn new(plan: &Plan, node: u16, end: End, bells: (&Doorbell, &Doorbell), over: &Arc<AtomicUsize>) -> Self {
        let link = &plan.links[0];
        let direction = if node == 0 { Direction::Forward } else { Direction::Backward };
        let judge = Judge::new(plan.settings.seed, &link.name, direction, &link.profile);
        let device = Impaired::new(end.open(bells.0, bells.1).unwrap(), judge, None);
        let ports = Ports::new(vec![Box::new(device)], plan.settings.frame_bytes_max).unwrap();
        let mut memory = HostMemory::default();
        memory.allocate(REGION, DATA_BYTES + 64).unwrap();
        let config = plan.member_config(NodeId(node), Incarnation(7));
        let tenant = config.tenants[usize::from(node)];
        let mut endpoint = Endpoint::new(config);
        endpoint
            .register(RegionConfig {
                region: REGION,
                length: DATA_BYTES + 64,
                key: KEY,
                access: Access::ALL,
                tenant,
            })
            .unwrap();
        let runtime = Runtime::new(endpoint, ports, memory, Clock::begin(), WaitPolicy::for_members(2));
        Self { runtime, completed: Vec::new(), over: Arc::clone(over) }
    }

    /// Polls until `done` returns true.
    fn drive(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        while !done(self) {
            self.poll();
            assert!(self.runtime.now() < Instant(TIMEOUT_NS), "{:?}", self.runtime.member().waiting_for());
        }
    }

    /// Polls until both nodes have finished, because the other one may still need an acknowledgement.
    fn finish(&mut self) -> DeviceCounters {
        self.over.fetch_add(1, Ordering::AcqRel);
        self.drive(|node| node.over.load(Ordering::Acquire) == 2);
        self.runtime.ports().counters(PortId(0))
    }

    fn poll(&mut self) {
        let completed = &mut self.completed;
        let progress = self.runtime.poll(self.runtime.now(), &mut |event| {
            if let Event::Completed { operation, result } = event {
                result.unwrap();
                completed.push(operation);
            }
        });
        if !progress {
            self.runtime.wait(self.runtime.now() + 10_000_000);
        }
    }

    fn command(&mut self, command: Command<'_>) {
        let now = self.runtime.now();
        self.runtime.member_mut().handle_command(now, command).unwrap();
    }
}

fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Node 0 puts a megabyte into node 1 and sends a signal. Node 1 waits for it and checks its own memory.
fn put_with_signal(rack: &str) -> [DeviceCounters; 2] {
    let plan = Plan::parse(rack, "test").unwrap();
    let (first, second) = shared_memory::create(1 << 18).unwrap();
    let bells = (Doorbell::create().unwrap(), Doorbell::create().unwrap());
    let over = Arc::new(AtomicUsize::new(0));
    let mut source = Node::new(&plan, 0, first, (&bells.0, &bells.1), &over);
    let mut target = Node::new(&plan, 1, second, (&bells.1, &bells.0), &over);
    let sending = thread::spawn(move || {
        let data: Vec<u8> = (0..DATA_BYTES).map(byte).collect();
        source.runtime.memory_mut().write(REGION, 0, &data).unwrap();
        source.drive(|node| node.runtime.member().is_reachable(NodeId(1)));
        source.command(Command::Put {
            operation: PUT,
            target: RemoteAddress { node: NodeId(1), region: REGION, offset: 0, key: KEY },
            source: LocalRange { region: REGION, offset: 0, length: DATA_BYTES },
            signal: Some(Signal {
                region: REGION,
                offset: SIGNAL_AT,
                key: KEY,
                kind: SignalKind::Set,
                value: 1,
            }),
        });
        source.drive(|node| node.completed.contains(&PUT));
        source.finish()
    });
    target.command(Command::WaitUntil {
        operation: WAIT,
        region: REGION,
        offset: SIGNAL_AT,
        condition: Condition::Equal,
        value: 1,
        depends_on: None,
    });
    target.drive(|node| node.completed.contains(&WAIT));
    let mut data = vec![0; DATA_BYTES as usize];
    target.runtime.memory_mut().read(REGION, 0, &mut data).unwrap();
    assert!(data.into_iter().eq((0..DATA_BYTES).map(byte)), "all data is there when the signal is");
    let counters = target.finish();
    [sending.join().unwrap(), counters]
}

#[test]
fn a_put_with_signal_arrives_whole() {
    let counters = put_with_signal("name: two\nshape: {ring: {nodes: 2}}\n");
    for counters in counters {
        assert_eq!(counters.injected_drops + counters.injected_corruptions, 0);
    }
}

#[test]
fn a_put_with_signal_arrives_whole_through_faults() {
    let faults = "loss: 5%, corrupt: 5%, duplicate: 5%, reorder: 5%";
    let [source, _] =
        put_with_signal(&format!("name: two\nshape: {{ring: {{nodes: 2}}}}\nlink: {{{faults}}}\n"));
    assert!(source.injected_drops > 0 && source.injected_corruptions > 0);
    assert!(source.injected_duplicates > 0 && source.injected_reorders > 0);
}
