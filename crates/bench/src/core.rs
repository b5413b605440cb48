//! One side of our own runs over wires of the kernel: a core, its memory and a device, and nothing else of a node.
//!
//! The library's racks within one process know rings only, and the job runner has few operations under way and makes test data.
//! Commands are handed to the core itself; its checks, acknowledgements and credits are those of any rack. Two sides are two
//! processes, held to a processor each, as the two sides of the raw loops are.

use std::io;
use std::os::unix::net::UnixStream;

use rackloom::namespaces::enter_supervisor_namespaces;
use rackloom::wires::{Device, Ports, packet, udp};
use rackloom::{Clock, HostMemory, Runtime, WaitPolicy};
use rackloom_calibrate::Pair;
use rackloom_plan::Plan;
use rackloom_protocol::{
    Access, Command, CommandRefused, Endpoint, Event, Incarnation, Instant, Key, Member, MemberConfig,
    NodeId, RegionConfig, RegionId, RemoteAddress,
};

use super::cable;
use super::obstacle::Obstacle;

/// The only region of each side.
pub(super) const REGION: RegionId = RegionId(1);
const KEY: Key = Key(0x5eed);
/// What operations write to, and read from.
pub(super) const DATA_BYTES: u64 = 1 << 20;
/// Behind it the word that says that all is over.
pub(super) const WORD_AT: u64 = DATA_BYTES;
const REGION_BYTES: u64 = DATA_BYTES + 64;
const PATIENCE_NS: u64 = 60_000_000_000;
/// Longest sleep of a side that has nothing to do.
const NAP_NS: u64 = 100_000_000;

/// One side, begun.
pub(super) struct Core {
    runtime: Runtime<Endpoint>,
    completed: u64,
}

/// Both sides as processes of their own over a cable of the packet wire: what `near` says. `more` are lines of the rack file.
pub(super) fn on_packet<T>(
    pair: Pair,
    more: &str,
    near: impl FnOnce(Core) -> io::Result<T>,
    far: impl FnOnce(Core) -> io::Result<()>,
) -> Result<T, Obstacle> {
    enter_supervisor_namespaces().map_err(cable::forbidden)?;
    let plan = plan("packet", more)?;
    let (hear, tell) = UnixStream::pair()?;
    let open = |interface: &str, config: &MemberConfig| -> io::Result<Box<dyn Device>> {
        let MemberConfig { ether_type, frame_bytes_max, .. } = *config;
        let (credits, reception) = (config.ports[0].credits, plan.reception);
        let settings = packet::Settings { ether_type, frame_bytes_max, credits, reception };
        Ok(Box::new(packet::open(interface, &settings)?))
    };
    let near = || {
        let config = config(&plan, 0);
        let device = cable::plug_in_near(&hear, |interface| open(interface, &config))?;
        near(Core::new(config, device)?)
    };
    let far = || {
        let config = config(&plan, 1);
        let device = cable::plug_in_far(&tell, |interface| open(interface, &config))?;
        far(Core::new(config, device)?)
    };
    Ok(pair.run_processes(near, far)?)
}

/// The same over the loopback interface, on the udp wire.
pub(super) fn on_udp<T>(
    pair: Pair,
    more: &str,
    near: impl FnOnce(Core) -> io::Result<T>,
    far: impl FnOnce(Core) -> io::Result<()>,
) -> Result<T, Obstacle> {
    let plan = plan("udp", more)?;
    let (near_end, far_end) = udp::create()?;
    let open = |end: udp::End, config: MemberConfig| -> io::Result<Core> {
        let credits = config.ports[0].credits;
        let device = end.open(&udp::Settings { frame_bytes_max: config.frame_bytes_max, credits })?;
        Core::new(config, Box::new(device))
    };
    let near = || near(open(near_end, config(&plan, 0))?);
    let far = || far(open(far_end, config(&plan, 1))?);
    Ok(pair.run_processes(near, far)?)
}

fn plan(wire: &str, more: &str) -> Result<Plan, Obstacle> {
    let text = format!(
        "name: calibrate-two\nshape: {{ring: {{nodes: 2}}}}\nwire: {wire}\ntimers: {{heartbeat_interval: 1s}}\n{more}"
    );
    Plan::parse(&text, "calibrate").map_err(|error| Obstacle::Failed(error.to_string()))
}

fn config(plan: &Plan, node: u16) -> MemberConfig {
    plan.member_config(NodeId(node), Incarnation(1))
}

/// A place in the far side's memory.
pub(super) const fn there(offset: u64) -> RemoteAddress {
    RemoteAddress { node: NodeId(1), region: REGION, offset, key: KEY }
}

impl Core {
    fn new(config: MemberConfig, device: Box<dyn Device>) -> io::Result<Self> {
        let ports = Ports::new(vec![device], config.frame_bytes_max).map_err(io::Error::other)?;
        let mut memory = HostMemory::default();
        memory.allocate(REGION, REGION_BYTES).map_err(io::Error::other)?;
        let tenant = config.tenants[config.node.index()];
        let mut endpoint = Endpoint::new(config);
        let region =
            RegionConfig { region: REGION, length: REGION_BYTES, key: KEY, access: Access::ALL, tenant };
        endpoint.register(region).map_err(|error| io::Error::other(format!("{error:?}")))?;
        // Each side has a processor of its own; being held to it must not look like sharing the only one.
        let runtime = Runtime::new(endpoint, ports, memory, Clock::begin(), WaitPolicy::EAGER);
        Ok(Self { runtime, completed: 0 })
    }

    pub(super) fn now(&self) -> Instant {
        self.runtime.now()
    }

    /// How many operations have ended.
    pub(super) const fn completed(&self) -> u64 {
        self.completed
    }

    pub(super) fn reaches_the_far_side(&self) -> bool {
        self.runtime.member().is_reachable(NodeId(1))
    }

    /// One turn. Returns whether anything happened; an operation that failed, and a rack that gets nowhere, are errors.
    pub(super) fn turn(&mut self) -> io::Result<bool> {
        let (completed, mut failed) = (&mut self.completed, None);
        let now = self.runtime.now();
        let progress = self.runtime.turn(now, &mut |event| {
            if let Event::Completed { result, .. } = event {
                *completed += 1;
                failed = result.err();
            }
        });
        if let Some(error) = failed {
            return Err(io::Error::other(format!("our own run: {error:?}")));
        }
        if now >= Instant(PATIENCE_NS) {
            let waiting = self.runtime.member().waiting_for().join("; ");
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("our own run: {waiting}")));
        }
        Ok(progress)
    }

    /// Turns until something is so.
    pub(super) fn until(&mut self, mut is_so: impl FnMut(&Self) -> bool) -> io::Result<()> {
        while !is_so(self) {
            if !self.turn()? {
                self.runtime.wait(self.runtime.now() + NAP_NS);
            }
        }
        Ok(())
    }

    /// Hand the core a command at a time that the caller has read; `false` if its queue is full. Who hands over many does not
    /// read the clock for each: that takes longer than some commands.
    pub(super) fn command(&mut self, now: Instant, command: Command<'_>) -> io::Result<bool> {
        match self.runtime.member_mut().handle_command(now, command) {
            Ok(()) => Ok(true),
            Err(CommandRefused::Busy) => Ok(false),
            Err(other) => Err(io::Error::other(format!("our own run: {other}"))),
        }
    }

    /// The same for one command, as soon as the queue takes it, and until it has ended.
    pub(super) fn complete(&mut self, command: Command<'_>) -> io::Result<()> {
        while !self.command(self.now(), command)? {
            self.turn()?;
        }
        let before = self.completed;
        self.until(|core| core.completed > before)
    }
}
