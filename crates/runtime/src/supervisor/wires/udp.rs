//! Udp wire of a rack: a pair of connected sockets per link, each end inherited by the seat that uses it. Of
//! a link to another host, this host makes its own end, at the address in the rack file.

use std::io;
use std::net::SocketAddrV4;

use rackloom::hosts::open_routed_link;
use rackloom::seat::UdpOutlet;
use rackloom::wires::udp::{self, Route};
use rackloom_control::grant::{Grant, NewCable};
use rackloom_plan::Plan;
use rackloom_protocol::{NodeId, PortId};

use super::contract::{SeatWires, TO_OTHER_HOST, Takeover, Wiring, duplicates};
use super::joints::joints;
use crate::machine::here::Here;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;

/// Ends of links that have not been taken.
pub(crate) struct UdpWiring {
    /// Ends by member, with port and neighbour; empty once taken.
    ends: Vec<Vec<(PortId, NodeId, UdpEnd)>>,
    /// Part of the rack that this host runs.
    here: Here,
}

/// End of the link at one port.
enum UdpEnd {
    /// The other end is on this host.
    Local(udp::End),
    /// The other end is on another host, at this address.
    Remote(udp::End, SocketAddrV4),
    /// No process holds the neighbour's seat.
    Vacant,
}

/// Ends of one member, in port order.
type UdpEnds = Vec<UdpEnd>;

impl Wiring for UdpWiring {
    fn seat_wires(&mut self, _plan: &Plan, node: NodeId, is_vacant: &dyn Fn(NodeId) -> bool) -> SeatWires {
        let ends = self.take(node, is_vacant);
        SeatWires::new(grant(&ends), self.without_wires(), ends)
    }

    fn takeover(
        &mut self,
        plan: &Plan,
        node: NodeId,
        _pid: u32,
        pids: &[Option<u32>],
    ) -> Result<Takeover, String> {
        if self.here.has_link_to_other_host(plan, node) {
            return Err(TO_OTHER_HOST.to_owned());
        }
        new_sockets(plan, node, pids)
            .map_err(|error| format!("cannot make its sockets for the udp wire: {error}"))
    }
}

impl UdpWiring {
    pub(crate) fn new(plan: &Plan, here: &Here) -> Result<Self, Failure> {
        let mut ends: Vec<Vec<_>> = plan.members.iter().map(|_| Vec::new()).collect();
        for (index, edge) in plan.links.iter().map(|link| link.edge).enumerate() {
            let [mine_a, mine_b] = [edge.a, edge.b].map(|member| here.runs(plan, member));
            if plan.is_process_link(&edge) {
                // Its process takes the seat later, and gets a new cable.
                ends[edge.a.index()].push((edge.a_port, edge.b, UdpEnd::Vacant));
                ends[edge.b.index()].push((edge.b_port, edge.a, UdpEnd::Vacant));
            } else if mine_a && mine_b {
                let (a, b) = udp::create().map_err(|error| {
                    Failure::could_not_start("cannot make the sockets of the udp wire", error)
                })?;
                ends[edge.a.index()].push((edge.a_port, edge.b, UdpEnd::Local(a)));
                ends[edge.b.index()].push((edge.b_port, edge.a, UdpEnd::Local(b)));
            } else if mine_a {
                ends[edge.a.index()].push((edge.a_port, edge.b, remote_end(plan, index, [edge.a, edge.b])?));
            } else if mine_b {
                ends[edge.b.index()].push((edge.b_port, edge.a, remote_end(plan, index, [edge.b, edge.a])?));
            }
        }
        ends.iter_mut().for_each(|ends| ends.sort_by_key(|(port, ..)| *port));
        Ok(Self { ends, here: here.clone() })
    }

    /// Takes the ends of one member. Call it once per member.
    fn take(&mut self, node: NodeId, is_vacant: impl Fn(NodeId) -> bool) -> UdpEnds {
        let ends = std::mem::take(&mut self.ends[node.index()]).into_iter();
        ends.map(|(_, neighbour, end)| match end {
            UdpEnd::Local(_) if is_vacant(neighbour) => UdpEnd::Vacant,
            end => end,
        })
        .collect()
    }
}

/// Opens the local end of a link to another host.
fn remote_end(plan: &Plan, edge: usize, [local, remote]: [NodeId; 2]) -> Result<UdpEnd, Failure> {
    let address = |member: NodeId| plan.udp_address(plan.host_of(member)?, edge);
    let (Some(mine), Some(theirs)) = (address(local), address(remote)) else {
        // The checked plan has an address for each.
        return Err(Failure::bad_input(format!("{} has no address on a host", plan.links[edge].name)));
    };
    let end = open_routed_link(&Route { mine, theirs }, plan.wire_bytes_max());
    let end = end.map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string()))?;
    Ok(UdpEnd::Remote(end, theirs))
}

/// New links of a process that takes a seat.
struct NewLinks {
    /// Ends of the process.
    mine: UdpEnds,
    /// Ends of its neighbours, with their ports.
    theirs: Vec<(NodeId, u16, udp::End)>,
}

/// Makes new links to all neighbours whose seats are held.
fn new_links(plan: &Plan, node: NodeId, is_there: impl Fn(NodeId) -> bool) -> io::Result<NewLinks> {
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    for joint in joints(plan, node) {
        if !is_there(joint.neighbour) {
            mine.push(UdpEnd::Vacant);
            continue;
        }
        let (mine_end, their_end) = udp::create()?;
        mine.push(UdpEnd::Local(mine_end));
        theirs.push((joint.neighbour, joint.neighbour_port.0, their_end));
    }
    Ok(NewLinks { mine, theirs })
}

/// Returns the grant of these ends.
fn grant(ends: &UdpEnds) -> Grant {
    let local = |end: &UdpEnd| match end {
        UdpEnd::Local(end) => Some(end.fds()),
        UdpEnd::Remote(..) | UdpEnd::Vacant => None,
    };
    let outlet = |(port, end): (usize, &UdpEnd)| match end {
        UdpEnd::Remote(end, there) => Some(UdpOutlet { port, to: there.to_string(), sockets: end.fds() }),
        UdpEnd::Local(_) | UdpEnd::Vacant => None,
    };
    let outlets = ends.iter().enumerate().filter_map(outlet).collect();
    Grant::Udp { ports: ends.iter().map(local).collect(), outlets }
}

/// Makes the cables of a process that takes a seat.
pub(super) fn new_sockets(plan: &Plan, node: NodeId, pids: &[Option<u32>]) -> io::Result<Takeover> {
    let NewLinks { mine, theirs } = new_links(plan, node, |neighbour| pids[neighbour.index()].is_some())?;
    let grant = grant(&mine);
    let wires = duplicates(&grant.descriptors())?;
    let neighbours = theirs.into_iter().map(|(neighbour, port, end)| {
        Ok((neighbour.index(), NewCable::Udp { port }, duplicates(&end.fds())?))
    });
    let neighbours = neighbours.collect::<io::Result<_>>()?;
    Ok(Takeover { grant, wires, neighbours })
}
