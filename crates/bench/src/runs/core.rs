//! One side of a run over wires of the kernel: a core with its memory and a device, without the rest of a
//! node.
//!
//! The library's racks within one process have rings only, and the job runner has few operations in flight
//! and makes test data. Commands go to the core directly. Its checks, acknowledgements and credits are those
//! of every rack. The two sides are two processes, each held to one processor, as the two sides of the raw
//! loops are.

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

use crate::measure_error::MeasureError;
use crate::runs::cable;

/// The only region of each side.
pub(crate) const REGION: RegionId = RegionId(1);
const KEY: Key = Key(0x5eed);
/// Part of the region that operations read and write.
pub(crate) const DATA_BYTES: u64 = 1 << 20;
/// Offset of the word behind the data. It ends the run.
pub(crate) const END_WORD_AT: u64 = DATA_BYTES;
const REGION_BYTES: u64 = DATA_BYTES + 64;
const TIMEOUT_NS: u64 = 60_000_000_000;
/// Longest sleep of an idle side.
const IDLE_WAIT_NS: u64 = 100_000_000;

/// One side of a run.
pub(crate) struct Core {
    runtime: Runtime<Endpoint>,
    completed: u64,
}

/// Runs both sides as processes over a cable of the packet wire. Returns the result of `initiator`. `more`:
/// lines of the rack file.
pub(crate) fn on_packet<T>(
    pair: Pair,
    more: &str,
    initiator: impl FnOnce(Core) -> io::Result<T>,
    target: impl FnOnce(Core) -> io::Result<()>,
) -> Result<T, MeasureError> {
    enter_supervisor_namespaces().map_err(cable::forbidden)?;
    let plan = plan("packet", more)?;
    let (receive, send) = UnixStream::pair()?;
    let open = |interface: &str, config: &MemberConfig| -> io::Result<Box<dyn Device>> {
        let MemberConfig { ether_type, frame_bytes_max, .. } = *config;
        let (credits, reception) = (config.ports[0].credits, plan.settings.reception);
        let settings = packet::Settings { ether_type, frame_bytes_max, credits, reception };
        Ok(Box::new(packet::open(interface, &settings)?))
    };
    let initiator = || {
        let config = config(&plan, 0);
        let device = cable::open_initiator(&receive, |interface| open(interface, &config))?;
        initiator(Core::new(config, device)?)
    };
    let target = || {
        let config = config(&plan, 1);
        let device = cable::open_target(&send, |interface| open(interface, &config))?;
        target(Core::new(config, device)?)
    };
    Ok(pair.run_processes(initiator, target)?)
}

/// Runs both sides as processes over the loopback interface, on the udp wire. Returns the result of
/// `initiator`.
pub(crate) fn on_udp<T>(
    pair: Pair,
    more: &str,
    initiator: impl FnOnce(Core) -> io::Result<T>,
    target: impl FnOnce(Core) -> io::Result<()>,
) -> Result<T, MeasureError> {
    let plan = plan("udp", more)?;
    let (initiator_end, target_end) = udp::create()?;
    let open = |end: udp::End, config: MemberConfig| -> io::Result<Core> {
        let credits = config.ports[0].credits;
        let device = end.open(&udp::Settings { frame_bytes_max: config.frame_bytes_max, credits })?;
        Core::new(config, Box::new(device))
    };
    let initiator = || initiator(open(initiator_end, config(&plan, 0))?);
    let target = || target(open(target_end, config(&plan, 1))?);
    Ok(pair.run_processes(initiator, target)?)
}

fn plan(wire: &str, more: &str) -> Result<Plan, MeasureError> {
    let text = format!(
        "name: calibrate-two\nshape: {{ring: {{nodes: 2}}}}\nwire: {wire}\ntimers: {{heartbeat_interval: 1s}}\n{more}"
    );
    Plan::parse(&text, "calibrate").map_err(|error| MeasureError::Failed(error.to_string()))
}

fn config(plan: &Plan, node: u16) -> MemberConfig {
    plan.member_config(NodeId(node), Incarnation(1))
}

/// Returns an address in the target's memory.
pub(crate) const fn target_address(offset: u64) -> RemoteAddress {
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
        // Each side has a processor of its own. The default policy would take the restriction to it for a
        // machine with one processor.
        let runtime = Runtime::new(endpoint, ports, memory, Clock::begin(), WaitPolicy::EAGER);
        Ok(Self { runtime, completed: 0 })
    }

    pub(crate) fn now(&self) -> Instant {
        self.runtime.now()
    }

    /// Returns the number of operations that have completed.
    pub(crate) const fn completed(&self) -> u64 {
        self.completed
    }

    pub(crate) fn reaches_target(&self) -> bool {
        self.runtime.member().is_reachable(NodeId(1))
    }

    /// Polls the runtime once. Returns true if anything happened.
    ///
    /// # Errors
    /// An operation failed, or the run takes longer than [`TIMEOUT_NS`].
    pub(crate) fn poll(&mut self) -> io::Result<bool> {
        let (completed, mut failed) = (&mut self.completed, None);
        let now = self.runtime.now();
        let progress = self.runtime.poll(now, &mut |event| {
            if let Event::Completed { result, .. } = event {
                *completed += 1;
                failed = result.err();
            }
        });
        if let Some(error) = failed {
            return Err(io::Error::other(format!("our own run: {error:?}")));
        }
        if now >= Instant(TIMEOUT_NS) {
            let waiting = self.runtime.member().waiting_for().join("; ");
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("our own run: {waiting}")));
        }
        Ok(progress)
    }

    /// Polls until a condition holds.
    pub(crate) fn until(&mut self, mut condition: impl FnMut(&Self) -> bool) -> io::Result<()> {
        while !condition(self) {
            if !self.poll()? {
                self.runtime.wait(self.runtime.now() + IDLE_WAIT_NS);
            }
        }
        Ok(())
    }

    /// Gives the core a command at a time that the caller has read. Returns false if the core's queue is
    /// full. A caller with many commands does not read the clock for each: that takes longer than some
    /// commands.
    pub(crate) fn command(&mut self, now: Instant, command: Command<'_>) -> io::Result<bool> {
        match self.runtime.member_mut().handle_command(now, command) {
            Ok(()) => Ok(true),
            Err(CommandRefused::Busy) => Ok(false),
            Err(other) => Err(io::Error::other(format!("our own run: {other}"))),
        }
    }

    /// Gives the core a command as soon as its queue has space, and waits for its completion.
    pub(crate) fn complete(&mut self, command: Command<'_>) -> io::Result<()> {
        while !self.command(self.now(), command)? {
            self.poll()?;
        }
        let before = self.completed;
        self.until(|core| core.completed > before)
    }
}
