//! Cables for a process that takes a seat of a running rack: a new cable to every neighbour whose seat is
//! held.
//!
//! The process gets all its ends at once. Each neighbour gets the other end of its link over its control
//! socket and replaces the cable at that port. A vacant neighbour gets no cable: its later holder gets a new
//! one. The supervisor keeps no end, so neighbours detect the death of the process on their links.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rackloom::namespaces::{Cable, NamespaceError, connect_to_bridges, create_cables, network_namespace_of};
use rackloom::wires::shared_memory;
use rackloom_control::grant::{Grant, NewCable};
use rackloom_plan::Plan;
use rackloom_protocol::NodeId;

use super::bridges;
use super::joints::joints;
use super::packet::{PacketWiring, cable_end, later_interface, mtu};
use super::udp;
use super::wiring::{SharedMemoryWiring, Wiring};

/// Cables of a takeover: the ends of the process, and those of its neighbours.
pub(crate) struct Takeover {
    /// Grant for the process.
    pub(crate) grant: Grant,
    /// Descriptors of the process, in the order in which the grant names them.
    pub(crate) wires: Vec<OwnedFd>,
    /// Cables for the neighbours, each with its member number and its descriptors.
    pub(crate) neighbours: Vec<(usize, NewCable, Vec<OwnedFd>)>,
}

/// Makes the cables for process `pid` in the seat of `node`. `pids`: current process of each member.
pub(crate) fn takeover(
    wiring: &mut Wiring,
    plan: &Plan,
    node: NodeId,
    pid: u32,
    pids: &[Option<u32>],
) -> Result<Takeover, String> {
    match wiring {
        Wiring::SharedMemory(wiring) => on_shared_memory(wiring, plan, node, pids)
            .map_err(|error| format!("cannot make its shared-memory wires: {error}")),
        Wiring::Packet(wiring) => on_packet(wiring, plan, node, pid, pids),
        Wiring::Udp(wiring) if wiring.here.has_link_to_other_host(plan, node) => {
            Err(TO_OTHER_HOST.to_owned())
        }
        Wiring::Udp(_) => on_udp(plan, node, pids)
            .map_err(|error| format!("cannot make its sockets for the udp wire: {error}")),
    }
}

const TO_OTHER_HOST: &str = "it has a link to another host, which is made only when the rack starts";

fn on_shared_memory(
    wiring: &SharedMemoryWiring,
    plan: &Plan,
    node: NodeId,
    pids: &[Option<u32>],
) -> io::Result<Takeover> {
    let (mut ends, mut neighbours) = (Vec::new(), Vec::new());
    for joint in joints(plan, node) {
        if pids[joint.neighbour.index()].is_none() {
            ends.push(None);
            continue;
        }
        let (mine, theirs) = shared_memory::create(plan.ring_bytes)?;
        let [send, receive, carrier] = theirs.fds();
        let doorbell = wiring.doorbells[node.index()].fd();
        let wires = duplicates(&[send, receive, carrier, doorbell])?;
        let cable = NewCable::SharedMemory { port: joint.neighbour_port.0 };
        neighbours.push((joint.neighbour.index(), cable, wires));
        ends.push(Some((joint.neighbour, mine)));
    }
    let (grant, ends) = wiring.grant(node, ends);
    let wires = duplicates(&grant.descriptors())?;
    drop(ends);
    Ok(Takeover { grant, wires, neighbours })
}

/// Returns new descriptors of the files.
fn duplicates(descriptors: &[RawFd]) -> io::Result<Vec<OwnedFd>> {
    let duplicate = |fd: &RawFd| {
        // SAFETY: needed because wires are named by number. All are open: the caller holds the ends of links
        // until it has the duplicates, and doorbells belong to the wiring. The borrow ends with the line.
        let wire = unsafe { BorrowedFd::borrow_raw(*fd) };
        wire.try_clone_to_owned()
    };
    descriptors.iter().map(duplicate).collect()
}

fn on_udp(plan: &Plan, node: NodeId, pids: &[Option<u32>]) -> io::Result<Takeover> {
    let udp::NewLinks { mine, theirs } =
        udp::new_links(plan, node, |neighbour| pids[neighbour.index()].is_some())?;
    let grant = udp::grant(&mine);
    let wires = duplicates(&grant.descriptors())?;
    let neighbours = theirs.into_iter().map(|(neighbour, port, end)| {
        Ok((neighbour.index(), NewCable::Udp { port }, duplicates(&end.fds())?))
    });
    let neighbours = neighbours.collect::<io::Result<_>>()?;
    Ok(Takeover { grant, wires, neighbours })
}

fn on_packet(
    wiring: &mut PacketWiring,
    plan: &Plan,
    node: NodeId,
    pid: u32,
    pids: &[Option<u32>],
) -> Result<Takeover, String> {
    must_be_alone(wiring, pid, pids)?;
    if wiring.here.has_link_to_other_host(plan, node) {
        return Err(TO_OTHER_HOST.to_owned());
    }
    if plan.has_bridges() {
        return at_bridges(wiring, plan, node, pid, pids);
    }
    let takeover = wiring.next_takeover();
    let (mut interfaces, mut neighbours, mut cables) = (Vec::new(), Vec::new(), Vec::new());
    for joint in joints(plan, node) {
        let Some(neighbour_pid) = pids[joint.neighbour.index()] else {
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
        let is_there = pids[joint.neighbour.index()].is_some();
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
