//! From a start message to a member that can run: the plan once more, wires, memory, job.
//!
//! Identity, tenant and regions come from the plan. The message only says which seat of the plan this is and under which
//! numbers the wires were inherited.

use std::io;
use std::time::Duration;

use rackloom::namespaces::bring_up;
use rackloom::wires::impaired::{Impaired, Timing};
use rackloom::wires::{Doorbell, packet, shared_memory};
use rackloom::{Clock, Device, HostMemory, Ports, Runtime, WaitPolicy};
use rackloom_jobs::Job;
use rackloom_plan::Plan;
use rackloom_plan::impair::{Direction, Judge};
use rackloom_protocol::{Endpoint, Incarnation, MemberConfig, MemberRole, NodeId, Switch};

use super::observe::Observer;
use super::serve::{Body, Seat};
use super::sharing::{Own, Sharing};
use super::stop::StopAt;
use super::work::{Results, Work};
use crate::control::{Grant, SharedMemoryPort, Start};
use crate::source::Work as CheckedWork;

/// A modelled rate below this is slower than the wires are by themselves.
const FELT_RATE_BITS_PER_S: u64 = 20_000_000_000;
/// A modelled delay from this on is longer than software takes by itself.
const FELT_DELAY_NS: u64 = 10_000;
/// How long all neighbours may take to switch on their ends of the cables.
const CABLE_PATIENCE: Duration = Duration::from_secs(20);

/// Everything opened and registered; nothing sent yet.
pub(super) fn begin(start: Start) -> Result<Seat, String> {
    let CheckedWork { plan, inputs, mut result_shapes } =
        start.source.work().map_err(|failure| failure.to_string())?;
    let node = NodeId(start.member);
    let member = plan.members.get(node.index()).ok_or("the plan has no such member")?;
    let config = plan.member_config(node, Incarnation(start.incarnation));
    let clock = Clock::with_origin(start.origin_monotonic_ns);
    let policy = WaitPolicy::for_members(plan.members.len());
    let (devices, doorbell) = devices(&plan, &config, &start.grant)?;
    let ports = Ports::new(devices, config.frame_bytes_max).map_err(|error| error.to_string())?;
    let observer = Observer::new(&plan, node, &config, &start.vacant);
    let mut memory_used_bytes = 0;
    let body = match member.role {
        MemberRole::Switch => {
            let runtime = Runtime::new(Switch::new(config), ports, HostMemory::default(), clock, policy);
            Body::Switch(Box::new(runtime))
        }
        MemberRole::Endpoint => {
            let job = rackloom_jobs::build_on(&plan, node, plan.seed, &inputs);
            let (endpoint, mut memory) = furnish(Endpoint::new(config), &*job)?;
            memory_used_bytes = job.regions().iter().map(|region| region.length).sum();
            let (server, doorbell) = (start.server.as_ref(), doorbell.as_ref());
            let own = Own { node, server, doorbell, regions: job.regions() };
            let sharing = Sharing::begin(&plan, &inputs, own, &mut memory)?;
            let runtime = Runtime::new(endpoint, ports, memory, clock, policy);
            let shape = result_shapes.get_mut(node.index()).and_then(Option::take);
            let results = start.source.arrays.output.zip(shape);
            let results = results.map(|(directory, shape)| Results { directory, shape });
            let nodes: Vec<_> =
                plan.members[..plan.endpoint_count()].iter().map(|node| node.name.clone()).collect();
            let stop_at = StopAt::of_environment(&member.name, &nodes)?;
            Body::Endpoint(Box::new(Work::new(runtime, sharing, job, node, results, stop_at)))
        }
    };
    Ok(Seat::new(body, observer, memory_used_bytes, start.tell_events))
}

/// Allocate and register what the job asks for.
fn furnish(mut endpoint: Endpoint, job: &dyn Job) -> Result<(Endpoint, HostMemory), String> {
    let mut memory = HostMemory::default();
    for region in job.regions() {
        let length = region.length;
        memory
            .allocate(region.region, length)
            .map_err(|error| format!("cannot allocate {length} bytes for {}: {error}", region.region))?;
        endpoint.register(region).map_err(|error| format!("cannot register {}: {error}", region.region))?;
    }
    Ok((endpoint, memory))
}

/// One device per port, and what wakes this seat if it is not the devices themselves.
type Wires = (Vec<Box<dyn Device>>, Option<Doorbell>);

/// One device per port, with the link's faults around it where the plan has any.
fn devices(plan: &Plan, config: &MemberConfig, grant: &Grant) -> Result<Wires, String> {
    let (bare, doorbell) = match grant {
        Grant::SharedMemory { doorbell, neighbour_doorbells, ports } => {
            open_shared_memory(*doorbell, neighbour_doorbells, ports)
                .map_err(|error| format!("cannot open the shared-memory wires: {error}"))?
        }
        Grant::Packet { interfaces } => (open_packet(config, interfaces)?, None),
    };
    if bare.len() != config.ports.len() {
        return Err(format!("{} wires for {} ports", bare.len(), config.ports.len()));
    }
    let wrapped = bare
        .into_iter()
        .zip(&config.ports)
        .map(|(device, port)| impair(plan, config.node, port.edge, device));
    Ok((wrapped.collect(), doorbell))
}

fn open_shared_memory(
    doorbell: i32,
    neighbour_doorbells: &[i32],
    ports: &[SharedMemoryPort],
) -> io::Result<Wires> {
    let mine = Doorbell::from_fd(doorbell)?;
    let neighbours: Vec<_> =
        neighbour_doorbells.iter().map(|fd| Doorbell::from_fd(*fd)).collect::<io::Result<_>>()?;
    let open = |port: &SharedMemoryPort| {
        let theirs = neighbours.get(port.neighbour).ok_or(io::ErrorKind::InvalidData)?;
        let device = shared_memory::End::from_fds(port.end)?.open(&mine, theirs)?;
        Ok(Box::new(device) as Box<dyn Device>)
    };
    let devices = ports.iter().map(open).collect::<io::Result<_>>()?;
    Ok((devices, Some(mine)))
}

fn open_packet(config: &MemberConfig, interfaces: &[String]) -> Result<Vec<Box<dyn Device>>, String> {
    bring_up(interfaces, CABLE_PATIENCE).map_err(|error| format!("cannot use the packet wire: {error}"))?;
    let open = |interface: &String| {
        let device = packet::open(interface, config.ether_type, config.frame_bytes_max)
            .map_err(|error| format!("cannot open interface {interface}: {error}"))?;
        Ok(Box::new(device) as Box<dyn Device>)
    };
    interfaces.iter().map(open).collect()
}

/// The faults of a link are applied where a frame is sent, so each direction has one judge. Rate and delay are modelled
/// only where they would be felt: a model of what is faster than its own arithmetic only costs time.
fn impair(plan: &Plan, node: NodeId, edge: u16, device: Box<dyn Device>) -> Box<dyn Device> {
    let link = &plan.links[usize::from(edge)];
    let profile = &link.profile;
    let felt = profile.delay_ns >= FELT_DELAY_NS
        || profile.rate_bits_per_s.is_some_and(|rate_bits_per_s| rate_bits_per_s < FELT_RATE_BITS_PER_S);
    if !felt && !profile.has_faults() {
        return device;
    }
    let direction = if link.edge.a == node { Direction::Forward } else { Direction::Backward };
    let judge = Judge::new(plan.seed, &link.name, direction, profile);
    Box::new(Impaired::new(device, judge, felt.then(|| Timing::of(profile))))
}
