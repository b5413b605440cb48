//! Joining a rack of other processes: [`Node::join`] takes a vacant seat.
//!
//! The rack's control socket grants the seat to the first process that requests it: the rack file, the seat's index, and the wires as
//! descriptors (`docs/control-socket.md`). The plan is built again from the text, so identity, tenant and neighbours come from the plan and
//! never from the message. The endpoint, its memory and its event loop then run in this process, and the death of the process is the
//! death of the node.
//!
//! The packet wire is not supported for the seats of GPU nodes. Its interfaces are in a network namespace, which only a whole process can enter,
//! before its first thread; a library must not do that. The link of a process seat is a pair of sockets there, which any process can use.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rackloom_control::grant::Grant;
use rackloom_control::order::{Joined, Start};
use rackloom_control::request::{Answer, Join, RackStatus, Refusal, Request, StatusOptions};
use rackloom_control::source::Source;
use rackloom_plan::{Plan, WireKind, is_process_number};
use rackloom_protocol::{Endpoint, Incarnation, NodeId, PortId};

use super::wake_thread::WakeThread;
use crate::clock::Clock;
use crate::fabric::engine::node_engine::Engine;
use crate::fabric::error::Error;
use crate::fabric::local::{LocalPaths, Place};
use crate::fabric::memory::bytes::RegionMemory;
use crate::fabric::node::Node;
use crate::fabric::seat_control::SeatControl;
use crate::fabric::switches::Switches;
use crate::runtime::Runtime;
use crate::seat::{answer, run_directory, wires};
use crate::waiting::WaitPolicy;
use crate::wires::{Doorbell, Ports};

/// Longest time that the rack may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Error of an answer to another request.
const UNEXPECTED: &str = "the rack answers another request; hint: is it of another version?";

/// Reason for not taking the seat of a GPU node on the packet wire.
const ON_PACKET_WIRE: &str = "the rack is on the packet wire, whose interfaces lie in a network namespace that only a process as a \
                              whole can enter, before its first thread; hint: `rackloom up --wire udp` or `--wire shared-memory`, or \
                              `rackloom seat --join`";

/// Reason, for the user, why a seat cannot be taken.
type JoinError = String;

impl Node {
    /// Takes a vacant seat of a running rack (`rackloom up --vacant SEAT`), or a seat whose process has died. `rack` is the rack's name, or
    /// the path of its directory. `seat` is the seat's name in the rack file. Returns as soon as the seat is taken. Neighbours are
    /// reached a little later ([`Node::wait_until_reached`]).
    ///
    /// The node runs in this process: it ends with its last handle, or with the process. When the rack ends, the node ends, and
    /// every operation ends with [`Error::Closed`]. One process may take any number of seats.
    ///
    /// # Errors
    /// [`Error::Join`] with a reason: there is no such rack or seat, the seat is taken, or the rack uses the packet wire, whose
    /// seats of GPU nodes are for whole processes (`rackloom seat --join`).
    pub fn join(rack: &str, seat: &str) -> Result<Self, Error> {
        take(rack, seat, &Request::Join(Join { seat: seat.to_owned() }))
    }

    /// Takes the first vacant process seat of the GPU node `seat`, such as `n0.p0` of `n0`, in a rack for programs
    /// (`rackloom up --seats programs`), on any wire. A program that `rackloom exec` has started finds the names in the environment:
    /// `RACKLOOM_RACK` and `RACKLOOM_SEAT`. The node is an endpoint of its own behind the GPU node: it has memory, regions and operations, and no rank
    /// ([`Group::of_rack`](crate::fabric::Group::of_rack)). It ends with its last handle, with the process, and with the program of the GPU node. One
    /// process may take several seats. Do not `fork` without `exec` afterwards: the child would keep the links open after the end of this process.
    ///
    /// # Errors
    /// [`Error::Join`] with a reason: there is no such rack or GPU node, no process holds its seat, or all its process seats are taken.
    pub fn join_process(rack: &str, seat: &str) -> Result<Self, Error> {
        take(rack, seat, &Request::JoinProcess(Join { seat: seat.to_owned() }))
    }

    /// Takes the seats of the first vacant process of the GPU node `seat`, as [`Self::join_process`] does: one node per plane in a rack with
    /// `ports: per-plane`, in the order of the planes, and a single one otherwise. Each of them reaches only the processes of its plane, over the links of
    /// that plane.
    ///
    /// # Errors
    /// Those of [`Self::join_process`].
    pub fn join_process_ports(rack: &str, seat: &str) -> Result<Vec<Self>, Error> {
        let (first, plan) =
            take_with_plan(rack, seat, &Request::JoinProcess(Join { seat: seat.to_owned() }))?;
        let processes = plan.node_of_process(first.id()).map(|node| plan.process_ports_of(node));
        let own =
            processes.into_iter().flatten().find(|ports| ports.contains(&first.id())).unwrap_or_default();
        let others = own.into_iter().filter(|port| *port != first.id()).collect::<Vec<_>>();
        let others = others.into_iter().map(|port| Self::join(rack, &plan.members[port.index()].name));
        std::iter::once(Ok(first)).chain(others).collect()
    }
}

fn take(rack: &str, seat: &str, request: &Request) -> Result<Node, Error> {
    take_with_plan(rack, seat, request).map(|(node, _)| node)
}

fn take_with_plan(rack: &str, seat: &str, request: &Request) -> Result<(Node, Plan), Error> {
    take_seat(rack, request).map_err(|what| Error::Join {
        rack: rack.to_owned(),
        seat: seat.to_owned(),
        what,
    })
}

fn take_seat(rack: &str, seat_request: &Request) -> Result<(Node, Plan), JoinError> {
    let stream = connect(rack)?;
    let Answer::Status(status) = request(&stream, &Request::Status(StatusOptions { brief: true }))?.0 else {
        return Err(UNEXPECTED.to_owned());
    };
    let wire = wire_named(&status.wire)?;
    if let Request::Join(Join { seat }) = seat_request
        && wire == WireKind::Packet
        && !is_process_seat(&status, seat)
    {
        return Err(ON_PACKET_WIRE.to_owned());
    }
    let (Answer::Joined(joined), came) = request(&stream, seat_request)? else {
        return Err(UNEXPECTED.to_owned());
    };
    let Came { mut wires, rest } = came;
    let later = wires.split_off(wires.len().min(joined.descriptors.len()));
    let Joined { descriptors, mut start } = *joined;
    let unwatched = |error: std::io::Error| format!("its wires cannot be listened to: {error}");
    let has_sockets = matches!(start.grant, Grant::Udp { .. });
    let wake_thread = has_sockets.then(|| watch_wires(&wires)).transpose().map_err(unwatched)?;
    start.grant =
        answer::renumber(&start.grant, &descriptors, wires).ok_or("some of its wires are missing")?;
    let plan = plan(&start.source, wire, status.epoch)?;
    let node = start_node(&plan, start, wake_thread, Connection { stream, rest, later })?;
    Ok((node, plan))
}

/// Returns true if a name is that of a process seat of one of the rack's members. A status has those only that a process holds.
fn is_process_seat(status: &RackStatus, seat: &str) -> bool {
    let node = seat.rsplit_once(".p").filter(|(_, number)| is_process_number(number));
    node.is_some_and(|(node, _)| status.members.iter().any(|member| member.name == node))
}

/// Returns the kind of the rack's wire.
fn wire_named(name: &str) -> Result<WireKind, JoinError> {
    WireKind::from_name(name).ok_or_else(|| {
        format!("the rack is on the {name} wire, which is not known here; hint: is it of another version?")
    })
}

/// Makes a doorbell for this process, which is rung when data arrives on these wires.
fn watch_wires(wires: &[OwnedFd]) -> std::io::Result<(Doorbell, WakeThread)> {
    let bell = Doorbell::create()?;
    let wake_thread = WakeThread::open(bell.clone())?;
    wires.iter().try_for_each(|wire| wake_thread.listen_to(wire))?;
    Ok((bell, wake_thread))
}

fn connect(rack: &str) -> Result<UnixStream, JoinError> {
    let directory = if rack.contains('/') {
        PathBuf::from(rack)
    } else {
        let run = run_directory::run_directory();
        run_directory::check_private(&run)
            .map_err(|error| format!("{}: {error}; hint: no rack is up", run.display()))?;
        run.join(rack)
    };
    run_directory::connect(&directory)
        .map_err(|error| format!("no rack at {}: {error}; hint: `rackloom up`", directory.display()))
}

/// Descriptors received with an answer.
struct Came {
    wires: Vec<OwnedFd>,
    rest: Vec<u8>,
}

/// Sends a request. Returns the answer, and what came with it.
fn request(stream: &UnixStream, request: &Request) -> Result<(Answer, Came), JoinError> {
    let mut request_line = serde_json::to_vec(request).map_err(|error| error.to_string())?;
    request_line.push(b'\n');
    let answer::Answer { line, descriptors, rest } =
        answer::request(stream, &request_line, ANSWER_TIMEOUT)
            .map_err(|error| format!("the rack does not answer: {error}"))?;
    let unread = |error: serde_json::Error| {
        format!("the rack's answer is not understood: {error}; hint: is it of another version?")
    };
    match serde_json::from_slice(&line).map_err(unread)? {
        Answer::Error(Refusal { what, hint, .. }) => {
            Err(hint.map_or(what.clone(), |hint| format!("{what}; hint: {hint}")))
        }
        answer => Ok((answer, Came { wires: descriptors, rest })),
    }
}

/// Builds the rack's plan again, as far as a seat without a job needs it.
fn plan(source: &Source, wire: WireKind, epoch: u16) -> Result<Plan, JoinError> {
    let mut plan =
        Plan::parse_for_another_job(&source.text, &source.name).map_err(|error| error.to_string())?;
    source.apply(&mut plan);
    plan.set_wire(wire);
    source
        .take_faults(&mut plan)
        .map_err(|error| format!("the rack's fault script is not understood: {error}"))?;
    // The job is part of the epoch, and is not built again here: the rack sends the resulting epoch.
    plan.epoch = epoch;
    Ok(plan)
}

/// Connection to the supervisor after it has given the seat away.
struct Connection {
    stream: UnixStream,
    /// Bytes that have been received after the answer.
    rest: Vec<u8>,
    /// Descriptors that came with the answer and belong to later messages.
    later: Vec<OwnedFd>,
}

/// Opens the wires and starts the node.
fn start_node(
    plan: &Plan,
    start: Start,
    listening: Option<(Doorbell, WakeThread)>,
    connection: Connection,
) -> Result<Node, JoinError> {
    let Connection { stream, rest, later } = connection;
    let id = NodeId(start.member);
    let member = plan.members.get(id.index()).ok_or("the rack's file has no such member")?;
    if !member.role.is_endpoint() {
        return Err("it is a switch; hint: programs take seats of GPU nodes".to_owned());
    }
    let config = plan.member_config(id, Incarnation(start.incarnation));
    let clock = Clock::with_origin(start.origin_monotonic_ns);
    let policy = WaitPolicy::for_members(plan.count_without_processes());
    let edges: Vec<_> = config.ports.iter().map(|port| port.edge).collect();
    let (devices, cabling) = wires::open(plan, &config, &start.grant, true, None, &edges)?;
    let (own, wake_thread) = listening.unzip();
    let bell = own.or_else(|| cabling.doorbell().cloned()).ok_or("the seat came without a doorbell")?;
    let ports = Ports::new(devices, config.frame_bytes_max).map_err(|error| error.to_string())?;
    let neighbours: Vec<_> = config.ports.iter().map(|port| port.neighbour).collect();
    let expected = neighbours.iter().map(|neighbour| !start.vacant.contains(&neighbour.0)).collect();
    let mut runtime = Runtime::new(Endpoint::new(config.clone()), ports, RegionMemory::new(), clock, policy);
    for (port, neighbour) in neighbours.iter().enumerate() {
        let process = start.processes.get(neighbour.index()).copied().flatten();
        runtime.watch_process(PortId(port as u16), process);
    }
    let local = match &start.server {
        Some(server) => {
            let place = Place {
                plan,
                node: id,
                directory: &server.directory,
                processes: &start.processes,
                doorbell: &bell,
                clock,
            };
            LocalPaths::open(&place).map_err(|error| format!("its memory cannot be offered: {error}"))?
        }
        None => None,
    };
    let mut engine = Engine::new(id, runtime, bell, clock, policy);
    engine.set_servers(plan);
    let engine = Arc::new(engine);
    {
        let mut held = engine.hold();
        let core = held.core();
        core.local = local.map(Box::new);
        core.memory_max_bytes = start.memory_max_bytes.unwrap_or(u64::MAX);
    }
    let memory_bytes = start.memory_max_bytes.unwrap_or(member.memory_bytes);
    let (name, plan) = (member.name.clone(), plan.clone());
    let control = SeatControl {
        name,
        cabling,
        wake_thread,
        plan,
        config,
        neighbours,
        memory_bytes,
        expected,
        rest,
        later,
    };
    let seat_control = control.begin(stream, &engine).map_err(|error| error.to_string())?;
    Node::seated(engine, &Arc::new(Switches::default()), Some(seat_control))
        .map_err(|error| error.to_string())
}
