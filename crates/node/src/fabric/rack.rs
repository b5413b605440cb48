//! A whole rack inside one process: every node and every switch of a plan.
//!
//! Core, rings and frames are those of a rack of several processes. Link faults of the plan apply. Each node has a background thread, each
//! switch a thread. It serves tests, examples and first steps: all members end with the process and share its CPUs.

use std::sync::Arc;

use rackloom_plan::Plan;
use rackloom_plan::impair::{Direction, Judge};
use rackloom_protocol::{Endpoint, Incarnation, MemberConfig, MemberRole, NodeId, Switch};
use tempfile::TempDir;

use super::error::{Error, Invalid};
use super::local::{LocalPaths, Place};
use super::node::Node;
use super::switches::Switches;
use crate::clock::Clock;
use crate::fabric::engine::node_engine::Engine;
use crate::fabric::memory::bytes::RegionMemory;
use crate::memory::HostMemory;
use crate::runtime::Runtime;
use crate::waiting::WaitPolicy;
use crate::wires::impaired::{Impaired, Timing};
use crate::wires::{Device, Doorbell, Ports, shared_memory};

/// Rate below which a modelled link is slower than the rings.
const SLOW_RATE_BITS_PER_S: u64 = 20_000_000_000;
/// Delay from which a modelled link is slower than the software.
const LONG_DELAY_NS: u64 = 10_000;
/// Longest time that the links may take to come up.
const UP_TIMEOUT_NS: u64 = 20_000_000_000;

/// Rack inside this process.
///
/// `Send` and `Sync`. Fabrics share nothing: one process may have any number of them. Nodes remain valid after the `Fabric` is dropped, and
/// may be dropped in any order.
#[derive(Debug)]
pub struct Fabric {
    nodes: Vec<Node>,
}

impl Fabric {
    /// Starts all nodes and switches of a plan. Returns when every node reaches every other node.
    ///
    /// ```
    /// use rackloom::fabric::{Fabric, RegionOptions};
    /// let plan = rackloom::fabric::Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "example")?;
    /// let fabric = Fabric::local(&plan)?;
    /// let [initiator, target] = fabric.nodes() else { unreachable!("the plan has two nodes") };
    /// let region = target.allocate(RegionOptions::new(1, 0x5eed), 4096)?;
    /// initiator.store(region.address(8), b"hello").wait()?;
    /// let mut seen = [0; 5];
    /// region.read(8, &mut seen)?;
    /// assert_eq!(&seen, b"hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::System`] if the system has no memory, descriptors or threads for it; [`Error::NotUp`].
    pub fn local(plan: &Plan) -> Result<Self, Error> {
        let clock = Clock::begin();
        let policy = WaitPolicy::for_members(plan.members.len());
        let (bells, mut devices) = wires(plan).map_err(Error::system("cannot make the wires"))?;
        let directory = plan.has_local_paths().then(private_directory).transpose()?;
        let processes: Vec<_> = plan.members.iter().map(|_| Some(std::process::id())).collect();
        let mut switches = Switches::default();
        let mut engines = Vec::new();
        for (index, member) in plan.members.iter().enumerate() {
            let config = plan.member_config(NodeId(index as u16), Incarnation(clock.origin_ns()));
            let ports = ports(&config, std::mem::take(&mut devices[index]))?;
            let bell = bells[index].clone();
            match member.role {
                // Members of a program have no job, so no switch reduces.
                MemberRole::Switch | MemberRole::ReducingSwitch => {
                    let runtime =
                        Runtime::new(Switch::new(config), ports, HostMemory::default(), clock, policy);
                    switches.start(runtime, bell)?;
                }
                MemberRole::Endpoint | MemberRole::Process | MemberRole::PinnedProcess => {
                    let node = config.node;
                    let member =
                        Runtime::new(Endpoint::new(config), ports, RegionMemory::new(), clock, policy);
                    let mut engine = Engine::new(node, member, bell, clock, policy);
                    engine.set_servers(plan);
                    if let Some(directory) = &directory {
                        let (directory, processes, doorbell) =
                            (directory.path(), &processes[..], &engine.bell);
                        let place = Place { plan, node, directory, processes, doorbell, clock };
                        let local = LocalPaths::open(&place).map_err(Error::system("cannot share memory"))?;
                        engine.hold().core().local = local.map(Box::new);
                    }
                    engines.push(engine);
                }
            }
        }
        switches.keep(directory);
        let switches = Arc::new(switches);
        let nodes =
            engines.into_iter().map(|engine| Node::start(engine, &switches)).collect::<Result<_, _>>()?;
        let fabric = Self { nodes };
        fabric.wait_until_up(clock)?;
        Ok(fabric)
    }

    fn wait_until_up(&self, clock: Clock) -> Result<(), Error> {
        for node in &self.nodes {
            if !node.wait_for(clock.now() + UP_TIMEOUT_NS, |endpoint| endpoint.reaches_all()) {
                return Err(Error::NotUp {
                    node: node.id(),
                    waited_ms: UP_TIMEOUT_NS / 1_000_000,
                    waiting_for: node.waiting_for().join("; "),
                });
            }
        }
        Ok(())
    }

    /// Returns the GPU nodes, in the order of their numbers in the plan.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Takes the nodes out, for example to move each to a thread or to let each end by itself.
    #[must_use]
    pub fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }
}

/// Makes a directory that only this user can enter, for the sockets through which nodes map each other's memory.
fn private_directory() -> Result<TempDir, Error> {
    tempfile::Builder::new()
        .prefix("rackloom-")
        .tempdir()
        .map_err(Error::system("cannot make a directory for shared memory"))
}

type Wires = (Vec<Doorbell>, Vec<Vec<Option<Box<dyn Device>>>>);

/// Makes a doorbell per member and a device per port. Each link is a pair of rings.
fn wires(plan: &Plan) -> std::io::Result<Wires> {
    let bells = plan.members.iter().map(|_| Doorbell::create()).collect::<std::io::Result<Vec<_>>>()?;
    let graph = plan.graph();
    let port_count = |member: usize| graph.ports(NodeId(member as u16)).len();
    let mut devices: Vec<Vec<Option<Box<dyn Device>>>> =
        (0..plan.members.len()).map(|member| (0..port_count(member)).map(|_| None).collect()).collect();
    for link in &plan.links {
        let (a, b) = (link.edge.a.index(), link.edge.b.index());
        let (first, second) = shared_memory::pair(plan.settings.ring_bytes, &bells[a], &bells[b])?;
        let judge = |direction| Judge::new(plan.settings.seed, &link.name, direction, &link.profile);
        let profile = &link.profile;
        let has_delay = profile.latency_ns() >= LONG_DELAY_NS
            || profile.rate_bits_per_s.is_some_and(|rate_bits_per_s| rate_bits_per_s < SLOW_RATE_BITS_PER_S);
        let timing = has_delay.then(|| Timing::of(profile));
        let mut assign = |member: usize, port: usize, device, direction| {
            let is_plain = !has_delay && !profile.has_faults();
            let device: Box<dyn Device> = if is_plain {
                Box::new(device)
            } else {
                Box::new(Impaired::new(device, judge(direction), timing))
            };
            devices[member][port] = Some(device);
        };
        assign(a, link.edge.a_port.index(), first, Direction::Forward);
        assign(b, link.edge.b_port.index(), second, Direction::Backward);
    }
    Ok((bells, devices))
}

fn ports(config: &MemberConfig, devices: Vec<Option<Box<dyn Device>>>) -> Result<Ports, Error> {
    let devices: Option<Vec<_>> = devices.into_iter().collect();
    let devices = devices.ok_or(Error::Invalid(Invalid::PortWithoutLink))?;
    Ports::new(devices, config.frame_bytes_max)
        .map_err(|cause| Error::System { what: "cannot make the ports", cause: std::io::Error::other(cause) })
}
