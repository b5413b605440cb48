//! Cables of a rack, and the ends of each seat.
//!
//! Rings and datagram sockets are made before the first process and inherited. Interfaces are made after the
//! last process, because each end is created in the namespace of the process that uses it. The supervisor
//! closes the ends of a seat as soon as its process has inherited them: a neighbour detects a death because
//! the socket of the dead process has no other owner.
//!
//! No ends are kept for later processes: a link to a vacant seat has no cable. A process that takes a seat
//! gets new cables, and its neighbours get the other ends ([`super::takeover`]).

use std::io;
use std::os::fd::RawFd;

use rackloom::hosts::HostLink;
use rackloom::namespaces::{create_cables, enter_supervisor_namespaces};
use rackloom::seat::Outlet;
use rackloom::wires::{Doorbell, shared_memory};
use rackloom_control::grant::{Grant, SharedMemoryPort};
use rackloom_plan::{Plan, WireKind};
use rackloom_protocol::NodeId;

use super::bridges;
use super::joints::joints;
use super::packet::{PacketWiring, cables, first_interface};
use super::udp::{UdpEnds, UdpWiring, grant};
use crate::machine::here::Here;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;

/// Raises the limit of open descriptors to its maximum: the supervisor of a large rack needs many.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Small racks do not need it. Large ones fail later with the kernel's error.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// All wires of a rack.
pub(crate) enum Wiring {
    SharedMemory(SharedMemoryWiring),
    Packet(PacketWiring),
    Udp(UdpWiring),
}

pub(crate) struct SharedMemoryWiring {
    /// Doorbells by member.
    pub(crate) doorbells: Vec<Doorbell>,
    /// Ends by member, in port order; empty once taken.
    ends: Vec<Vec<(NodeId, shared_memory::End)>>,
}

/// Properties that the process of a seat has from its start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    /// Descriptors that stay open across its `exec`.
    pub(crate) inherited: Vec<RawFd>,
    /// True if it needs a network namespace of its own.
    pub(crate) own_network: bool,
}

/// Wires of one seat: the grant, and the environment of its process.
pub(crate) struct SeatWires {
    pub(crate) grant: Grant,
    pub(crate) environment: Environment,
    /// Owners of the descriptors, until the process has inherited them.
    _ends: Ends,
}

/// Owners of the descriptors of a grant.
enum Ends {
    Rings(#[expect(dead_code, reason = "kept open only")] Vec<Option<(NodeId, shared_memory::End)>>),
    Sockets(#[expect(dead_code, reason = "kept open only")] UdpEnds),
    HostLinks(#[expect(dead_code, reason = "kept open only")] Vec<HostLink>),
}

impl Wiring {
    /// Makes the wires that need no process. For the packet wire this must precede the first thread.
    pub(crate) fn prepare(plan: &Plan, here: &Here) -> Result<Self, Failure> {
        raise_descriptor_limit();
        match plan.wire {
            WireKind::SharedMemory => SharedMemoryWiring::create(plan)
                .map(Self::SharedMemory)
                .map_err(|error| Failure::could_not_start("cannot make the shared-memory wires", error)),
            WireKind::Udp => UdpWiring::create(plan, here).map(Self::Udp),
            WireKind::Packet => {
                let wiring = PacketWiring::new(plan, here)?;
                enter_supervisor_namespaces()
                    .map(|()| Self::Packet(wiring))
                    .map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string()))
            }
        }
    }

    /// Takes the ends of one member, without those of links to vacant seats. Call it once per member.
    pub(crate) fn seat_wires(
        &mut self,
        plan: &Plan,
        node: NodeId,
        is_vacant: impl Fn(NodeId) -> bool,
    ) -> SeatWires {
        match self {
            Self::SharedMemory(wiring) => {
                let ends = std::mem::take(&mut wiring.ends[node.index()]);
                let ends = ends.into_iter().map(|end| (!is_vacant(end.0)).then_some(end)).collect();
                let (grant, ends) = wiring.grant(node, ends);
                SeatWires { environment: self.with_wires(&grant), grant, _ends: Ends::Rings(ends) }
            }
            Self::Packet(wiring) => {
                let (mut interfaces, mut outlets, mut links) = (Vec::new(), Vec::new(), Vec::new());
                for joint in joints(plan, node) {
                    let interface = || match plan.has_bridges() {
                        true => bridges::interface(joint.plane, 0),
                        false => first_interface(joint.port),
                    };
                    interfaces.push((!is_vacant(joint.neighbour)).then(interface));
                    if let Some((interface, link)) = wiring.take_outlet(node, joint.port) {
                        outlets.push(Outlet { port: joint.port.index(), interface, sockets: link.fds() });
                        links.push(link);
                    }
                }
                let grant = Grant::Packet { interfaces, outlets };
                SeatWires { environment: self.with_wires(&grant), grant, _ends: Ends::HostLinks(links) }
            }
            Self::Udp(wiring) => {
                let ends = wiring.take(node, is_vacant);
                let grant = grant(&ends);
                SeatWires { environment: self.with_wires(&grant), grant, _ends: Ends::Sockets(ends) }
            }
        }
    }

    /// Returns the environment of a process that inherits the wires of this grant.
    fn with_wires(&self, grant: &Grant) -> Environment {
        Environment { inherited: grant.descriptors(), ..self.without_wires() }
    }

    /// Returns the environment of a process that gets its wires later.
    pub(crate) fn without_wires(&self) -> Environment {
        Environment { inherited: Vec::new(), own_network: matches!(self, Self::Packet(_)) }
    }

    /// Makes the wires that need all processes. `pids`: process of each member; `None` for a vacant seat. It
    /// blocks: call it outside of asynchronous code.
    pub(crate) fn connect(&self, plan: &Plan, pids: &[Option<u32>]) -> Result<(), Failure> {
        match self {
            Self::SharedMemory(_) | Self::Udp(_) => Ok(()),
            Self::Packet(_) if plan.has_bridges() => bridges::connect(plan, pids),
            Self::Packet(_) => create_cables(&cables(plan, pids))
                .map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string())),
        }
    }

    /// Wakes a seat that sleeps, so that it polls its control socket. A seat without a doorbell wakes by
    /// itself soon.
    pub(crate) fn wake(&self, member: usize) {
        if let Self::SharedMemory(wiring) = self {
            wiring.doorbells[member].ring();
        }
    }
}

impl SharedMemoryWiring {
    fn create(plan: &Plan) -> io::Result<Self> {
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

    /// Returns the grant of these ends, and the ends.
    pub(crate) fn grant(
        &self,
        node: NodeId,
        ends: Vec<Option<(NodeId, shared_memory::End)>>,
    ) -> (Grant, Vec<Option<(NodeId, shared_memory::End)>>) {
        let mut neighbours: Vec<NodeId> = ends.iter().flatten().map(|(neighbour, _)| *neighbour).collect();
        neighbours.sort_unstable();
        neighbours.dedup();
        let port = |(neighbour, end): &(NodeId, shared_memory::End)| SharedMemoryPort {
            end: end.fds(),
            neighbour: neighbours.partition_point(|other| other < neighbour),
        };
        let ports: Vec<_> = ends.iter().map(|end| end.as_ref().map(port)).collect();
        let doorbell = self.doorbells[node.index()].fd();
        let neighbour_doorbells: Vec<_> =
            neighbours.iter().map(|node| self.doorbells[node.index()].fd()).collect();
        (Grant::SharedMemory { doorbell, neighbour_doorbells, ports }, ends)
    }
}
