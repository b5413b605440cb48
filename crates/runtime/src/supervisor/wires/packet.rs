//! Cables between namespaces, and the names of their interfaces.
//!
//! An interface in a member's namespace is named after its port. A later cable for this port gets another
//! name, because the kernel removes the old one some time after the death of the process, with its namespace.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use rackloom::hosts::{HostLink, HostLinkError, open_link};
use rackloom::namespaces::{
    Cable, NamespaceError, connect_to_bridges, create_cables, network_namespace_of, switch_on_all,
};
use rackloom::seat::Outlet;
use rackloom_control::grant::{Grant, NewCable};
use rackloom_plan::Plan;
use rackloom_protocol::wire::address::mac;
use rackloom_protocol::{NodeId, Plane, PortId};

use super::bridges;
use super::contract::{Environment, SeatWires, TO_OTHER_HOST, Takeover, Wiring};
use super::interfaces::{cable_end, first_interface, later_interface, mtu};
use super::joints::joints;
use super::udp;
use super::unavailable::no_packet_wire;
use crate::machine::here::Here;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;

/// Bound of the numbers of takeovers, so that the name of an interface stays within the kernel's 15 bytes.
const TAKEOVERS_MAX: u32 = 1_000_000;
/// Longest time for the loopback interface of a namespace to appear. The kernel makes it with the namespace.
const LOOPBACK_TIMEOUT: Duration = Duration::from_millis(100);

/// State of the packet wire in the supervisor.
pub(crate) struct PacketWiring {
    /// Network namespace in which the rack was started. No member may be in it.
    outside: (u64, u64),
    /// Ends of links to other hosts that have not been taken, by member and port.
    outlets: Outlets,
    /// Part of the rack that this host runs.
    here: Here,
    /// Number of takeovers so far, modulo [`TAKEOVERS_MAX`].
    takeovers: u32,
    /// Number of the last takeover of each member's seat. Members of the start are absent.
    takeover_of: BTreeMap<NodeId, u32>,
}

impl Wiring for PacketWiring {
    fn seat_wires(&mut self, plan: &Plan, node: NodeId, is_vacant: &dyn Fn(NodeId) -> bool) -> SeatWires {
        let (mut interfaces, mut outlets, mut links) = (Vec::new(), Vec::new(), Vec::new());
        for joint in joints(plan, node) {
            let interface = || match plan.has_bridges() {
                true => bridges::interface(joint.plane, 0),
                false => first_interface(joint.port),
            };
            interfaces.push((!is_vacant(joint.neighbour)).then(interface));
            if let Some((interface, link)) = self.take_outlet(node, joint.port) {
                outlets.push(Outlet { port: joint.port.index(), interface, sockets: link.fds() });
                links.push(link);
            }
        }
        SeatWires::new(Grant::Packet { interfaces, outlets }, self.without_wires(), links)
    }

    fn takeover(
        &mut self,
        plan: &Plan,
        node: NodeId,
        pid: u32,
        pids: &[Option<u32>],
    ) -> Result<Takeover, String> {
        if plan.node_of_process(node).is_some() {
            return by_sockets(plan, node, pids);
        }
        must_be_alone(self, pid, pids)?;
        if self.here.has_link_to_other_host(plan, node) {
            return Err(TO_OTHER_HOST.to_owned());
        }
        if plan.has_bridges() {
            at_bridges(self, plan, node, pid, pids)
        } else {
            by_cables(self, plan, node, pid, pids)
        }
    }

    fn without_wires(&self) -> Environment {
        Environment { own_network: true, ..Environment::default() }
    }

    fn connect(&self, plan: &Plan, pids: &[Option<u32>]) -> Result<(), Failure> {
        if plan.has_bridges() {
            return bridges::connect(plan, pids);
        }
        create_cables(&cables(plan, pids)).map_err(|error| no_packet_wire(&error))
    }
}

impl PacketWiring {
    /// Opens the links to other hosts. Call it in the namespace in which the rack was started: only that one
    /// reaches other hosts.
    pub(crate) fn new(plan: &Plan, here: &Here) -> Result<Self, Failure> {
        let outside = network_namespace_of(std::process::id())
            .map_err(|error| Failure::could_not_start("cannot distinguish network namespaces", error))?;
        let outlets = here.host.map_or(Ok(BTreeMap::new()), |host| outlets(plan, host));
        let outlets = outlets.map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string()))?;
        Ok(Self { outside, outlets, here: here.clone(), takeovers: 0, takeover_of: BTreeMap::new() })
    }

    /// Takes the end of a link to another host, with the name of its interface. Call it once per port.
    fn take_outlet(&mut self, node: NodeId, port: PortId) -> Option<(String, HostLink)> {
        self.outlets.remove(&(node, port))
    }

    /// Returns a number for the interfaces of the next takeover.
    fn next_takeover(&mut self) -> u32 {
        self.takeovers = (self.takeovers + 1) % TAKEOVERS_MAX;
        self.takeovers
    }

    /// Records the number of the takeover by which a member got its seat.
    fn set_takeover(&mut self, node: NodeId, takeover: u32) {
        self.takeover_of.insert(node, takeover);
    }

    /// Returns the number of the takeover by which a member got its seat; 0 for a member of the start.
    fn takeover_of(&self, node: NodeId) -> u32 {
        self.takeover_of.get(&node).copied().unwrap_or_default()
    }
}

type Outlets = BTreeMap<(NodeId, PortId), (String, HostLink)>;

fn outlets(plan: &Plan, host: usize) -> Result<Outlets, HostLinkError> {
    let host = &plan.hosts[host];
    let mut outlets = BTreeMap::new();
    for (index, edge) in plan.links.iter().map(|link| link.edge).enumerate() {
        let Some(interface) = host.interface_of(index).filter(|_| plan.joins_hosts(&edge)) else { continue };
        for (node, port, neighbour) in [(edge.a, edge.a_port, edge.b), (edge.b, edge.b_port, edge.a)] {
            if host.nodes.contains(&node) {
                let (mine, theirs) = (mac(node, edge.plane), mac(neighbour, edge.plane));
                let link = open_link(interface, plan.wire_bytes_max(), mine, theirs)?;
                outlets.insert((node, port), (interface.to_owned(), link));
            }
        }
    }
    Ok(outlets)
}

/// Returns the cables of a rack that starts. There is no cable to a vacant seat.
pub(crate) fn cables(plan: &Plan, pids: &[Option<u32>]) -> Vec<Cable> {
    let end = |node: NodeId, port: PortId, plane: Plane| {
        Some(cable_end(pids[node.index()]?, first_interface(port), node, plane))
    };
    let edges = plan.links.iter().map(|link| link.edge);
    edges
        .filter_map(|edge| {
            let ends = [end(edge.a, edge.a_port, edge.plane)?, end(edge.b, edge.b_port, edge.plane)?];
            Some(Cable { ends, mtu: mtu(plan) })
        })
        .collect()
}

/// Makes a pair of datagram sockets between a process and its GPU node, over the loopback interface of the supervisor's namespace.
/// Sockets stay in the namespace in which they were made, so both ends may be used in any other.
fn by_sockets(plan: &Plan, process: NodeId, pids: &[Option<u32>]) -> Result<Takeover, String> {
    switch_on_all(&["lo".to_owned()], LOOPBACK_TIMEOUT)
        .and_then(|()| udp::new_sockets(plan, process, pids))
        .map_err(|error| format!("cannot make its sockets: {error}"))
}

/// Makes a new cable to every neighbour whose seat is held.
fn by_cables(
    wiring: &mut PacketWiring,
    plan: &Plan,
    node: NodeId,
    pid: u32,
    pids: &[Option<u32>],
) -> Result<Takeover, String> {
    let takeover = wiring.next_takeover();
    let (mut interfaces, mut neighbours, mut cables) = (Vec::new(), Vec::new(), Vec::new());
    for joint in joints(plan, node) {
        // A process of an earlier holder ends with that one, and others get sockets.
        let is_process = plan.node_of_process(joint.neighbour).is_some();
        let Some(neighbour_pid) = pids[joint.neighbour.index()].filter(|_| !is_process) else {
            interfaces.push(None);
            continue;
        };
        let (mine, theirs) =
            (later_interface(joint.port, takeover), later_interface(joint.neighbour_port, takeover));
        let ends = [
            cable_end(pid, mine.clone(), node, joint.plane),
            cable_end(neighbour_pid, theirs.clone(), joint.neighbour, joint.plane),
        ];
        cables.push(Cable { ends, mtu: mtu(plan) });
        interfaces.push(Some(mine));
        let cable = NewCable::Packet { port: joint.neighbour_port.0, interface: theirs };
        neighbours.push((joint.neighbour.index(), cable, Vec::new()));
    }
    on_own_thread(|| create_cables(&cables))?;
    Ok(Takeover { grant: Grant::Packet { interfaces, outlets: Vec::new() }, wires: Vec::new(), neighbours })
}

/// Makes new cables to the bridges. Neighbours keep theirs, except at ports that were never connected.
fn at_bridges(
    wiring: &mut PacketWiring,
    plan: &Plan,
    node: NodeId,
    pid: u32,
    pids: &[Option<u32>],
) -> Result<Takeover, String> {
    let takeover = wiring.next_takeover();
    let cables = bridges::later_cables(plan, node, pid, takeover);
    let (mut interfaces, mut neighbours) = (Vec::new(), Vec::new());
    for joint in joints(plan, node) {
        let is_process = plan.node_of_process(joint.neighbour).is_some();
        let is_there = pids[joint.neighbour.index()].is_some() && !is_process;
        interfaces.push(is_there.then(|| bridges::interface(joint.plane, takeover)));
        if is_there {
            let interface = bridges::interface(joint.plane, wiring.takeover_of(joint.neighbour));
            let cable = NewCable::Packet { port: joint.neighbour_port.0, interface };
            neighbours.push((joint.neighbour.index(), cable, Vec::new()));
        }
    }
    on_own_thread(|| connect_to_bridges(&cables))?;
    wiring.set_takeover(node, takeover);
    Ok(Takeover { grant: Grant::Packet { interfaces, outlets: Vec::new() }, wires: Vec::new(), neighbours })
}

/// Checks that the process has a network namespace that neither the system nor another member uses.
fn must_be_alone(wiring: &PacketWiring, pid: u32, pids: &[Option<u32>]) -> Result<(), String> {
    const RULE: &str = "on the packet wire, a process that takes a seat needs a network namespace of its own";
    let namespace = |pid: u32| network_namespace_of(pid);
    let its = namespace(pid).map_err(|error| match error.kind() {
        // An ordinary user's supervisor sees only processes of its own user namespace.
        io::ErrorKind::PermissionDenied => {
            format!("{RULE}, made in the user namespace of the rack; process {pid} is outside of that")
        }
        _ => format!("{RULE}; the namespace of process {pid} cannot be read: {error}"),
    })?;
    let ours = namespace(std::process::id()).map_err(|error| format!("the supervisor's own: {error}"))?;
    let taken = pids.iter().flatten().filter_map(|member| namespace(*member).ok()).any(|other| other == its);
    if its == wiring.outside || its == ours || taken { Err(RULE.to_owned()) } else { Ok(()) }
}

/// Makes cables on another thread: the call starts a runtime, which fails on a thread that already runs one.
fn on_own_thread(create: impl FnOnce() -> Result<(), NamespaceError> + Send) -> Result<(), String> {
    std::thread::scope(|scope| scope.spawn(create).join())
        .map_err(|_| "the thread that makes cables ended early".to_owned())?
        .map_err(|error| error.to_string())
}
