//! The cables of a rack, and who gets which end.
//!
//! Rings are made before the first process and inherited; interfaces are made after the last one, because each end is
//! born in the namespace of the process that uses it. A seat's ends of a ring are dropped here as soon as its process has inherited them. That matters: a neighbour learns of a
//! death because the dead one's socket has no other owner, and the supervisor must not be one.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rackloom::namespaces::{Cable, CableEnd, enter_supervisor_namespaces, lay_cables};
use rackloom::wires::{Doorbell, shared_memory};
use rackloom_plan::{Plan, WireKind};
use rackloom_protocol::wire::address::mac;
use rackloom_protocol::{NodeId, Plane, PortId};

use crate::control::{Grant, SharedMemoryPort};
use crate::exit::Exit;
use crate::failure::Failure;

/// Descriptors that one rack may need in the supervisor beyond the usual handful.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Small racks do without; large ones fail later with the kernel's own words.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// All wires of a rack.
pub(super) enum Wiring {
    SharedMemory(SharedMemoryWiring),
    Packet,
}

/// Ethernet header, which does not count towards an interface's MTU.
const ETHERNET_HEADER_BYTES: u32 = 14;

pub(super) struct SharedMemoryWiring {
    /// By member.
    doorbells: Vec<Doorbell>,
    /// By member, in port order; empty once handed out.
    ends: Vec<Vec<(NodeId, shared_memory::End)>>,
}

/// What one seat gets: the message, and the descriptors that must survive its exec.
pub(super) struct Plugs {
    pub(super) grant: Grant,
    pub(super) inherited: Vec<RawFd>,
    /// Whether the process needs a network namespace of its own.
    pub(super) own_network: bool,
    /// Keeps the descriptors open until the process has them.
    _ends: Vec<(NodeId, shared_memory::End)>,
}

impl Plugs {
    /// Descriptors of one's own for the same wires, in the order in which the grant names them.
    pub(super) fn duplicates(&self) -> io::Result<Vec<OwnedFd>> {
        let duplicate = |fd: &RawFd| {
            // SAFETY: needed because a grant names its wires by number. All are open: ends of links belong to `self`, and
            // doorbells to the wiring, which outlives every plug that it gives. The borrow ends with the line.
            let wire = unsafe { BorrowedFd::borrow_raw(*fd) };
            wire.try_clone_to_owned()
        };
        self.inherited.iter().map(duplicate).collect()
    }
}

impl Wiring {
    /// Make what can be made before there are processes. For the packet wire this must come before the first thread.
    pub(super) fn prepare(plan: &Plan) -> Result<Self, Failure> {
        raise_descriptor_limit();
        match plan.wire {
            WireKind::SharedMemory => SharedMemoryWiring::lay(plan)
                .map(Self::SharedMemory)
                .map_err(|error| Failure::could_not_start("cannot make the shared-memory wires", error)),
            WireKind::Packet => enter_supervisor_namespaces()
                .map(|()| Self::Packet)
                .map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string())),
        }
    }

    /// The ends of one member. To be asked once per member.
    pub(super) fn plugs(&mut self, plan: &Plan, node: NodeId) -> Plugs {
        match self {
            Self::SharedMemory(wiring) => wiring.plugs(node),
            Self::Packet => {
                let interfaces =
                    (0..plan.graph().ports(node).len()).map(|port| interface(PortId(port as u16)));
                let grant = Grant::Packet { interfaces: interfaces.collect() };
                Plugs { grant, inherited: Vec::new(), own_network: true, _ends: Vec::new() }
            }
        }
    }

    /// Make what can only be made once every member has its process. Not to be called from asynchronous code.
    pub(super) fn connect(&self, plan: &Plan, pids: &[u32]) -> Result<(), Failure> {
        match self {
            Self::SharedMemory(_) => Ok(()),
            Self::Packet => lay_cables(&cables(plan, pids))
                .map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string())),
        }
    }

    /// Wake a seat that sleeps, so that it looks at its control socket. One without a doorbell wakes by itself soon.
    pub(super) fn wake(&self, member: usize) {
        if let Self::SharedMemory(wiring) = self {
            wiring.doorbells[member].ring();
        }
    }
}

/// The name of a port's interface within its member's namespace.
fn interface(port: PortId) -> String {
    format!("port{}", port.0)
}

fn cables(plan: &Plan, pids: &[u32]) -> Vec<Cable> {
    let mtu = u32::from(plan.frame_bytes_max) - ETHERNET_HEADER_BYTES;
    let end = |node: NodeId, port: PortId, plane: Plane| CableEnd {
        process: pids[node.index()],
        interface: interface(port),
        address: mac(node, plane),
    };
    let edges = plan.links.iter().map(|link| link.edge);
    edges
        .map(|edge| {
            let ends = [end(edge.a, edge.a_port, edge.plane), end(edge.b, edge.b_port, edge.plane)];
            Cable { ends, mtu }
        })
        .collect()
}

impl SharedMemoryWiring {
    fn lay(plan: &Plan) -> io::Result<Self> {
        let doorbells = plan.members.iter().map(|_| Doorbell::create()).collect::<io::Result<_>>()?;
        let mut ends: Vec<Vec<_>> = plan.members.iter().map(|_| Vec::new()).collect();
        for link in &plan.links {
            let (a, b) = shared_memory::create(plan.ring_bytes)?;
            ends[link.edge.a.index()].push((link.edge.a_port, (link.edge.b, a)));
            ends[link.edge.b.index()].push((link.edge.b_port, (link.edge.a, b)));
        }
        let in_port_order = |mut ends: Vec<(_, _)>| {
            ends.sort_by_key(|(port, _)| *port);
            ends.into_iter().map(|(_, end)| end).collect()
        };
        Ok(Self { doorbells, ends: ends.into_iter().map(in_port_order).collect() })
    }

    fn plugs(&mut self, node: NodeId) -> Plugs {
        let ends = std::mem::take(&mut self.ends[node.index()]);
        let mut neighbours: Vec<NodeId> = ends.iter().map(|(neighbour, _)| *neighbour).collect();
        neighbours.sort_unstable();
        neighbours.dedup();
        let ports: Vec<_> = ends
            .iter()
            .map(|(neighbour, end)| SharedMemoryPort {
                end: end.fds(),
                neighbour: neighbours.partition_point(|other| other < neighbour),
            })
            .collect();
        let doorbell = self.doorbells[node.index()].fd();
        let neighbour_doorbells: Vec<_> =
            neighbours.iter().map(|node| self.doorbells[node.index()].fd()).collect();
        let grant = Grant::SharedMemory { doorbell, neighbour_doorbells, ports };
        Plugs { inherited: grant.descriptors(), grant, own_network: false, _ends: ends }
    }
}
