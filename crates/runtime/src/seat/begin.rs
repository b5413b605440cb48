//! Start of a seat: from the start order to a member that can run, with plan, wires, memory and job.
//!
//! Identity, tenant and regions come from the plan. The order says which seat of the plan this is, and which
//! descriptors the inherited wires have.

use rackloom::ip::Interface;
use rackloom::seat::{FaultPlayer, wires};
use rackloom::{Clock, HostMemory, Ports, Runtime, WaitPolicy};
use rackloom_control::order::Start;
use rackloom_control::recorder::Recording;
use rackloom_jobs::Seeds;
use rackloom_jobs::collective::Inputs;
use rackloom_jobs::collective::snapshot::Checkpoints;
use rackloom_plan::JobKind;
use rackloom_protocol::{Endpoint, Incarnation, MemberRole, NodeId, Switch};

use super::captured::Captured;
use super::incarnations::IncarnationChecks;
use super::ip::{self, IpPort};
use super::memory;
use super::observe::Observer;
use super::publisher::Publisher;
use super::serve::{Body, Seat};
use super::sharing::{Own, Sharing};
use super::stop::StopAt;
use super::work::{Results, Work};
use crate::request::snapshots;
use crate::request::work::{RackRequest, Work as CheckedWork};

/// Opens the wires and registers the memory. Sends nothing.
pub(super) fn begin(start: Start, interface: Option<Interface>) -> Result<Seat, String> {
    let CheckedWork { mut plan, mut faults, mut inputs, mut result_shapes, mut workload } =
        RackRequest::from(start.source.clone()).work().map_err(|failure| failure.to_string())?;
    // Cables can be replaced in a rack in which a member may get a successor.
    let begins_anew = faults.as_ref().is_some_and(|script| script.followed().next().is_some());
    let exchanges = start.stays || begins_anew;
    if start.is_successor {
        // The fields that identify the rack on the wire keep the values of the complete plan.
        (plan.job.kind, inputs) = (JobKind::None, Inputs::Pattern);
        (faults, workload) = (None, None);
    }
    let compute = start.source.workload.as_ref().map(|file| file.compute).unwrap_or_default();
    let seeds = Seeds { data: plan.settings.seed, keys: start.key_seed };
    let node = NodeId(start.member);
    let member = plan.members.get(node.index()).ok_or("the plan has no such member")?;
    let config = plan.member_config(node, Incarnation(start.incarnation));
    let clock = Clock::with_origin(start.origin_monotonic_ns);
    let policy = WaitPolicy::for_members(plan.count_without_processes());
    let captured = Captured::begin(&plan, &config, &start)?;
    let drops = captured.as_ref().map(Captured::drop_watch);
    let watch_port = captured.map(Captured::port_watch);
    let faults = FaultPlayer::new(faults.as_ref(), &plan, &config, &start.vacant);
    // Faults can be injected later into a standing rack.
    let scripted = if start.stays { faults.edges().to_vec() } else { faults.scripted_edges() };
    let (devices, cabling) = wires::open(&plan, &config, &start.grant, exchanges, watch_port, &scripted)?;
    let mut ports = Ports::new(devices, config.frame_bytes_max).map_err(|error| error.to_string())?;
    let mut observer = Observer::new(&plan, node, &config, &start.vacant);
    observer.has_link_to_other_host(&plan, &config, &start.grant);
    let neighbours: Vec<_> = config.ports.iter().map(|port| port.neighbour).collect();
    let mut body = match member.role {
        // No job of processes uses reduction units (`must_not_reduce_in_switches` in `request/work.rs`).
        MemberRole::Switch | MemberRole::ReducingSwitch => {
            let mut runtime = Runtime::new(Switch::new(config), ports, HostMemory::default(), clock, policy);
            drops.into_iter().for_each(|watch| runtime.watch_arrivals(watch));
            Body::Switch(Box::new(runtime))
        }
        MemberRole::Process | MemberRole::PinnedProcess => {
            return Err("processes take it through the library".to_owned());
        }
        MemberRole::Endpoint => {
            let checkpoints = if start.is_successor {
                Checkpoints::default()
            } else {
                snapshots::of_rank(&start.source.snapshots, &plan, node)?
            };
            let job = if let Some(workload) = &workload {
                rackloom_jobs::perform_workload(&plan, node, seeds, workload, compute)
            } else if plan.job.kind == JobKind::None {
                // A vacant seat is not waited for: it may stay vacant until the rack ends.
                rackloom_jobs::wait_for(&plan, |other| observer.is_awaited(other))
            } else {
                rackloom_jobs::build_from(&plan, node, seeds, &inputs, checkpoints)
            };
            let beside = interface.as_ref().map_or_else(Vec::new, |_| ip::regions(member.tenant));
            let bytes = beside.iter().fold(0, |sum, region| sum + region.length);
            let (mut endpoint, mut memory) =
                memory::allocate(&plan, node, Endpoint::new(config), &*job, bytes)?;
            memory::allocate_beside(&mut memory, &mut endpoint, &beside)?;
            let ip = interface.map(|interface| IpPort::new(interface, node, plan.endpoint_count()));
            if let Some(ip) = &ip {
                let watched = ip.descriptor().and_then(|descriptor| ports.watch(descriptor));
                watched.map_err(|error| format!("cannot wait for frames of the program: {error}"))?;
            }
            for reason in memory.take_frames_in_place(&mut ports) {
                tracing::info!("{}: frames are copied once more on their path: {reason}", member.name);
            }
            // No job uses the memory of a successor.
            let server = start.server.as_ref().filter(|_| !start.is_successor);
            let (doorbell, regions) = (cabling.doorbell(), job.regions());
            let own = Own { node, server, processes: &start.processes, doorbell, regions };
            let regions_of = |peer: NodeId| match &workload {
                Some(workload) => {
                    rackloom_jobs::perform_workload(&plan, peer, seeds, workload, compute).regions()
                }
                None => rackloom_jobs::build_on(&plan, peer, seeds, &inputs).regions(),
            };
            let sharing = Sharing::begin(&plan, &regions_of, own, &mut memory)?;
            let mut runtime = Runtime::new(endpoint, ports, memory, clock, policy);
            drops.into_iter().for_each(|watch| runtime.watch_arrivals(watch));
            let shape = result_shapes.get_mut(node.index()).and_then(Option::take);
            let results = start.source.arrays.output.zip(shape);
            let results = results.map(|(directory, shape)| Results { directory, shape });
            let nodes: Vec<_> =
                plan.members[..plan.endpoint_count()].iter().map(|node| node.name.clone()).collect();
            let stop_at = StopAt::of_environment(&member.name, &nodes)?;
            let mut work = Work::new(runtime, sharing, job, node, results, stop_at).with_ip(ip);
            if begins_anew {
                work.watch_incarnations(IncarnationChecks::of(
                    node,
                    Incarnation(start.incarnation),
                    start.is_successor,
                ));
            }
            Body::Endpoint(Box::new(work))
        }
    };
    body.watch_processes(&neighbours, &start.processes);
    let recording = if start.is_successor { Recording::default() } else { start.source.recording };
    if let Body::Endpoint(work) = &mut body {
        work.job.observe(recording.of_operations(plan.endpoint_count()));
    }
    let recorder = recording.recorder(false, neighbours.len(), plan.links.len());
    let publisher = Publisher::open(start.status_page, neighbours.len());
    let seat = Seat::new(body, observer, faults, cabling, start.stays, neighbours, seeds);
    Ok(seat.recorded_by(recorder).published_by(publisher))
}
