//! Shared-memory wires: a ring in each direction of each link, and a doorbell for each member.

use std::io;

use rackloom::seat::SharedMemoryPort;
use rackloom::wires::{Doorbell, shared_memory};
use rackloom_control::grant::{Grant, NewCable};
use rackloom_plan::Plan;
use rackloom_protocol::NodeId;

use super::contract::{SeatWires, Takeover, Wiring, duplicates};
use super::joints::joints;
use crate::outcome::failure::Failure;

/// End of a link, with the neighbour.
type RingEnd = (NodeId, shared_memory::End);

pub(crate) struct SharedMemoryWiring {
    /// Doorbells by member.
    doorbells: Vec<Doorbell>,
    /// Ends by member, in port order; empty once taken. `None` on links to process seats, which are vacant at the start.
    ends: Vec<Vec<Option<RingEnd>>>,
}

impl Wiring for SharedMemoryWiring {
    fn seat_wires(&mut self, _plan: &Plan, node: NodeId, is_vacant: &dyn Fn(NodeId) -> bool) -> SeatWires {
        let ends = std::mem::take(&mut self.ends[node.index()]);
        let ends = ends.into_iter().map(|end| end.filter(|end| !is_vacant(end.0))).collect();
        let (grant, ends) = self.grant(node, ends);
        SeatWires::new(grant, self.without_wires(), ends)
    }

    fn takeover(
        &mut self,
        plan: &Plan,
        node: NodeId,
        _pid: u32,
        pids: &[Option<u32>],
    ) -> Result<Takeover, String> {
        self.new_rings(plan, node, pids)
            .map_err(|error| format!("cannot make its shared-memory wires: {error}"))
    }

    fn wake(&self, member: usize) {
        self.doorbells[member].ring();
    }
}

impl SharedMemoryWiring {
    /// Makes the rings and doorbells of a rack.
    pub(crate) fn new(plan: &Plan) -> Result<Self, Failure> {
        Self::create(plan)
            .map_err(|error| Failure::could_not_start("cannot make the shared-memory wires", error))
    }

    /// Makes new rings to all neighbours whose seats are held.
    fn new_rings(&self, plan: &Plan, node: NodeId, pids: &[Option<u32>]) -> io::Result<Takeover> {
        let (mut ends, mut neighbours) = (Vec::new(), Vec::new());
        for joint in joints(plan, node) {
            if pids[joint.neighbour.index()].is_none() {
                ends.push(None);
                continue;
            }
            let (mine, theirs) = shared_memory::create(plan.settings.ring_bytes)?;
            let [send, receive, carrier] = theirs.fds();
            let doorbell = self.doorbells[node.index()].fd();
            let wires = duplicates(&[send, receive, carrier, doorbell])?;
            let cable = NewCable::SharedMemory { port: joint.neighbour_port.0 };
            neighbours.push((joint.neighbour.index(), cable, wires));
            ends.push(Some((joint.neighbour, mine)));
        }
        let (grant, ends) = self.grant(node, ends);
        let wires = duplicates(&grant.descriptors())?;
        drop(ends);
        Ok(Takeover { grant, wires, neighbours })
    }

    fn create(plan: &Plan) -> io::Result<Self> {
        let doorbells = plan.members.iter().map(|_| Doorbell::create()).collect::<io::Result<_>>()?;
        let mut ends: Vec<Vec<_>> = plan.members.iter().map(|_| Vec::new()).collect();
        for link in &plan.links {
            let is_held = !plan.is_process_link(&link.edge);
            let made = is_held.then(|| shared_memory::create(plan.settings.ring_bytes)).transpose()?;
            let (a, b) = made.map(|(a, b)| ((link.edge.b, a), (link.edge.a, b))).unzip();
            ends[link.edge.a.index()].push((link.edge.a_port, a));
            ends[link.edge.b.index()].push((link.edge.b_port, b));
        }
        let in_port_order = |mut ends: Vec<(_, _)>| {
            ends.sort_by_key(|(port, _)| *port);
            ends.into_iter().map(|(_, end)| end).collect()
        };
        Ok(Self { doorbells, ends: ends.into_iter().map(in_port_order).collect() })
    }

    /// Returns the grant of these ends, and the ends.
    fn grant(&self, node: NodeId, ends: Vec<Option<RingEnd>>) -> (Grant, Vec<Option<RingEnd>>) {
        let mut neighbours: Vec<NodeId> = ends.iter().flatten().map(|(neighbour, _)| *neighbour).collect();
        neighbours.sort_unstable();
        neighbours.dedup();
        let port = |(neighbour, end): &RingEnd| SharedMemoryPort {
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
