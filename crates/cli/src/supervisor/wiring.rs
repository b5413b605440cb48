//! The cables of a rack: made once, before the first process, and handed out one seat at a time.
//!
//! A seat's ends are dropped here as soon as its process has inherited them. That matters: a neighbour learns of a
//! death because the dead one's socket has no other owner, and the supervisor must not be one.

use std::io;
use std::os::fd::RawFd;

use rackloom::wires::{Doorbell, shared_memory};
use rackloom_plan::{Plan, WireKind};
use rackloom_protocol::NodeId;

use crate::control::{Grant, SharedMemoryPort};
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
}

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
    /// Keeps the descriptors open until the process has them.
    _ends: Vec<(NodeId, shared_memory::End)>,
}

impl Wiring {
    /// Make every cable. For the packet wire this must come before the first thread.
    pub(super) fn lay(plan: &Plan) -> Result<Self, Failure> {
        raise_descriptor_limit();
        match plan.wire {
            WireKind::SharedMemory => SharedMemoryWiring::lay(plan)
                .map(Self::SharedMemory)
                .map_err(|error| Failure::could_not_start("cannot make the shared-memory wires", error)),
            WireKind::Packet => Err(Failure::could_not_start("cannot make the packet wire", "not yet")),
        }
    }

    /// The ends of one member. To be asked once per member.
    pub(super) fn plugs(&mut self, node: NodeId) -> Plugs {
        match self {
            Self::SharedMemory(wiring) => wiring.plugs(node),
        }
    }

    /// Wake a seat that sleeps, so that it looks at its control socket.
    pub(super) fn wake(&self, member: usize) {
        match self {
            Self::SharedMemory(wiring) => wiring.doorbells[member].ring(),
        }
    }
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
        let neighbour_doorbells: Vec<_> = neighbours.iter().map(|node| self.doorbells[node.index()].fd()).collect();
        let mut inherited = vec![doorbell];
        inherited.extend(&neighbour_doorbells);
        inherited.extend(ports.iter().flat_map(|port| port.end));
        Plugs { grant: Grant::SharedMemory { doorbell, neighbour_doorbells, ports }, inherited, _ends: ends }
    }
}
