//! Our own packed stores over wires of the kernel: two processes, a core, a device each, and nothing else of a node.
//!
//! The library's racks within one process know rings only, and the job runner has too few operations under way to fill a frame. So
//! posted stores are handed to the core itself, which packs what waits for one destination; the time ends when a flush says that all
//! are visible. Checks and acknowledgements are those of any rack on these wires.

use std::io;
use std::os::unix::net::UnixStream;

use rackloom::namespaces::enter_supervisor_namespaces;
use rackloom::wires::{Device, Ports, packet, udp};
use rackloom::{Clock, HostMemory, Runtime, WaitPolicy};
use rackloom_calibrate::Pair;
use rackloom_plan::Plan;
use rackloom_protocol::{
    Access, Command, CommandRefused, Completion, Condition, Endpoint, Event, Incarnation, Instant, Key,
    Member, MemberConfig, NodeId, OperationId, RegionConfig, RegionId, RemoteAddress,
};

use super::cable;
use super::row::Obstacle;

/// Stores of 64 B that fill a frame of 1500 B: what a raw frame counts for.
pub(super) const STORES_PER_FRAME: f64 = 18.0;
const STORE_BYTES: u64 = 64;
const REGION: RegionId = RegionId(1);
const KEY: Key = Key(0x5eed);
/// The stores' place, and behind it the word that says that all is over.
const TARGET_BYTES: u64 = 1 << 20;
const REGION_BYTES: u64 = TARGET_BYTES + 64;
/// Stores between two turns: more than fill the frames of a batch.
const STORES_PER_TURN: u64 = 256;
const PATIENCE_NS: u64 = 60_000_000_000;
/// How long the far side stays for who may need an acknowledgement again.
const FAREWELL_NS: u64 = 100_000_000;
const FLUSH: OperationId = OperationId(1);
const LAST: OperationId = OperationId(2);
const WAIT: OperationId = OperationId(3);

/// Packed stores per second on the packet wire.
pub(super) fn on_packet(pair: Pair, count: u64) -> Result<f64, Obstacle> {
    enter_supervisor_namespaces().map_err(cable::forbidden)?;
    let plan = plan("packet")?;
    let (hear, tell) = UnixStream::pair()?;
    let open = |interface: &str, config: &MemberConfig| -> io::Result<Box<dyn Device>> {
        let MemberConfig { ether_type, frame_bytes_max, .. } = *config;
        let settings = packet::Settings { ether_type, frame_bytes_max, credits: config.ports[0].credits };
        Ok(Box::new(packet::open(interface, &settings)?))
    };
    let near = || {
        let config = config(&plan, 0);
        let device = cable::plug_in_near(&hear, |interface| open(interface, &config))?;
        send(Node::new(config, device)?, count)
    };
    let far = || {
        let config = config(&plan, 1);
        let device = cable::plug_in_far(&tell, |interface| open(interface, &config))?;
        serve(Node::new(config, device)?)
    };
    Ok(pair.run_processes(near, far)?)
}

/// Packed stores per second on the udp wire.
pub(super) fn on_udp(pair: Pair, count: u64) -> Result<f64, Obstacle> {
    let plan = plan("udp")?;
    let (near, far) = udp::create()?;
    let open = |end: udp::End, config: &MemberConfig| -> io::Result<Box<dyn Device>> {
        let credits = config.ports[0].credits;
        Ok(Box::new(end.open(&udp::Settings { frame_bytes_max: config.frame_bytes_max, credits })?))
    };
    let near = || {
        let config = config(&plan, 0);
        let device = open(near, &config)?;
        send(Node::new(config, device)?, count)
    };
    let far = || {
        let config = config(&plan, 1);
        let device = open(far, &config)?;
        serve(Node::new(config, device)?)
    };
    Ok(pair.run_processes(near, far)?)
}

fn plan(wire: &str) -> Result<Plan, Obstacle> {
    let text = format!(
        "name: packed\nshape: {{ring: {{nodes: 2}}}}\nwire: {wire}\nframe_bytes_max: 1514B\n\
         timers: {{heartbeat_interval: 1s}}\n"
    );
    Plan::parse(&text, "calibrate").map_err(|error| Obstacle::Failed(error.to_string()))
}

fn config(plan: &Plan, node: u16) -> MemberConfig {
    plan.member_config(NodeId(node), Incarnation(1))
}

/// One side: a core, its memory and its port.
struct Node {
    runtime: Runtime<Endpoint>,
    completed: Vec<OperationId>,
}

impl Node {
    fn new(config: MemberConfig, device: Box<dyn Device>) -> io::Result<Self> {
        let ports = Ports::new(vec![device], config.frame_bytes_max).map_err(io::Error::other)?;
        let mut memory = HostMemory::default();
        memory.allocate(REGION, REGION_BYTES).map_err(io::Error::other)?;
        let tenant = config.tenants[config.node.index()];
        let mut endpoint = Endpoint::new(config);
        let region =
            RegionConfig { region: REGION, length: REGION_BYTES, key: KEY, access: Access::ALL, tenant };
        endpoint.register(region).map_err(|error| io::Error::other(format!("{error:?}")))?;
        let runtime = Runtime::new(endpoint, ports, memory, Clock::begin(), WaitPolicy::for_members(2));
        Ok(Self { runtime, completed: Vec::new() })
    }

    fn turn(&mut self) -> io::Result<bool> {
        let (completed, mut failed) = (&mut self.completed, None);
        let now = self.runtime.now();
        let progress = self.runtime.turn(now, &mut |event| {
            if let Event::Completed { operation, result } = event {
                completed.push(operation);
                failed = result.err();
            }
        });
        if let Some(error) = failed {
            return Err(io::Error::other(format!("packed stores: {error:?}")));
        }
        if now >= Instant(PATIENCE_NS) {
            let waiting = self.runtime.member().waiting_for().join("; ");
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("packed stores: {waiting}")));
        }
        Ok(progress)
    }

    fn until(&mut self, mut is_so: impl FnMut(&Self) -> bool) -> io::Result<()> {
        while !is_so(self) {
            if !self.turn()? {
                self.runtime.wait(self.runtime.now() + FAREWELL_NS);
            }
        }
        Ok(())
    }

    /// Hand the core a command; `false` if its queue is full.
    fn command(&mut self, command: Command<'_>) -> io::Result<bool> {
        self.command_at(self.runtime.now(), command)
    }

    /// The same, for who hands over many at one time: reading the clock takes longer than some commands.
    fn command_at(&mut self, now: Instant, command: Command<'_>) -> io::Result<bool> {
        match self.runtime.member_mut().handle_command(now, command) {
            Ok(()) => Ok(true),
            Err(CommandRefused::Busy) => Ok(false),
            Err(other) => Err(io::Error::other(format!("packed stores: {other}"))),
        }
    }
}

fn send(mut node: Node, count: u64) -> io::Result<f64> {
    node.until(|node| node.runtime.member().is_reachable(NodeId(1)))?;
    let (data, begun) = ([0x5a; STORE_BYTES as usize], std::time::Instant::now());
    let address = |offset| RemoteAddress { node: NodeId(1), region: REGION, offset, key: KEY };
    let mut stored = 0;
    while stored < count {
        let now = node.runtime.now();
        for _ in 0..STORES_PER_TURN.min(count - stored) {
            let target = address(stored % (TARGET_BYTES / STORE_BYTES) * STORE_BYTES);
            let completion = Completion::Accepted;
            let store = Command::Store { operation: OperationId(0), target, data: &data, completion };
            if !node.command_at(now, store)? {
                break;
            }
            stored += 1;
        }
        node.turn()?;
    }
    while !node.command(Command::Flush { operation: FLUSH, target: None })? {
        node.turn()?;
    }
    node.until(|node| node.completed.contains(&FLUSH))?;
    let per_s = count as f64 / begun.elapsed().as_secs_f64().max(1e-9);
    let (target, data) = (address(TARGET_BYTES), 1_u64.to_le_bytes());
    node.command(Command::Store { operation: LAST, target, data: &data, completion: Completion::Visible })?;
    node.until(|node| node.completed.contains(&LAST))?;
    Ok(per_s)
}

fn serve(mut node: Node) -> io::Result<()> {
    let (offset, condition) = (TARGET_BYTES, Condition::Equal);
    let wait =
        Command::WaitUntil { operation: WAIT, region: REGION, offset, condition, value: 1, depends_on: None };
    node.command(wait)?;
    node.until(|node| node.completed.contains(&WAIT))?;
    let end = node.runtime.now() + FAREWELL_NS;
    node.until(|node| node.runtime.now() >= end)
}
