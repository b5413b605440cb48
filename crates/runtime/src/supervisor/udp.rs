//! Udp wire of a rack: a pair of connected sockets per link, each end inherited by the seat that uses it. Of a link to another host, this host makes
//! its own end, at the address in the rack file.

use std::io;
use std::net::SocketAddrV4;

use rackloom::hosts::open_routed_link;
use rackloom::seat::UdpOutlet;
use rackloom::wires::udp::{self, Route};
use rackloom_control::grant::Grant;
use rackloom_plan::Plan;
use rackloom_protocol::{NodeId, PortId};

use super::joints::joints;
use crate::machine::here::Here;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;

/// Ends of links that have not been handed out.
pub(super) struct UdpWiring {
    /// By member, with port and neighbour; empty once handed out.
    ends: Vec<Vec<(PortId, NodeId, UdpEnd)>>,
    /// Whose share this is.
    pub(super) here: Here,
}

/// What one port is plugged into.
pub(super) enum UdpEnd {
    /// The other end is here.
    Near(udp::End),
    /// The other end is on another host, found there.
    Abroad(udp::End, SocketAddrV4),
    /// Nobody sits at the other end.
    Nobody,
}

/// One end per port, in order.
pub(super) type UdpEnds = Vec<UdpEnd>;

impl UdpWiring {
    pub(super) fn lay(plan: &Plan, here: &Here) -> Result<Self, Failure> {
        let mut ends: Vec<Vec<_>> = plan.members.iter().map(|_| Vec::new()).collect();
        for (index, edge) in plan.links.iter().map(|link| link.edge).enumerate() {
            let [mine_a, mine_b] = [edge.a, edge.b].map(|member| here.runs(plan, member));
            if mine_a && mine_b {
                let (a, b) = udp::create().map_err(|error| {
                    Failure::could_not_start("cannot make the sockets of the udp wire", error)
                })?;
                ends[edge.a.index()].push((edge.a_port, edge.b, UdpEnd::Near(a)));
                ends[edge.b.index()].push((edge.b_port, edge.a, UdpEnd::Near(b)));
            } else if mine_a {
                ends[edge.a.index()].push((edge.a_port, edge.b, abroad(plan, index, [edge.a, edge.b])?));
            } else if mine_b {
                ends[edge.b.index()].push((edge.b_port, edge.a, abroad(plan, index, [edge.b, edge.a])?));
            }
        }
        ends.iter_mut().for_each(|ends| ends.sort_by_key(|(port, ..)| *port));
        Ok(Self { ends, here: here.clone() })
    }

    /// The ends of one member. To be asked once per member.
    pub(super) fn take(&mut self, node: NodeId, is_vacant: impl Fn(NodeId) -> bool) -> UdpEnds {
        let ends = std::mem::take(&mut self.ends[node.index()]).into_iter();
        ends.map(|(_, neighbour, end)| match end {
            UdpEnd::Near(_) if is_vacant(neighbour) => UdpEnd::Nobody,
            end => end,
        })
        .collect()
    }
}

/// The end of a link that begins here and ends on another host.
fn abroad(plan: &Plan, edge: usize, [near, far]: [NodeId; 2]) -> Result<UdpEnd, Failure> {
    let place = |member: NodeId| plan.udp_address(plan.host_of(member)?, edge);
    let (Some(mine), Some(theirs)) = (place(near), place(far)) else {
        // The plan has been checked for this.
        return Err(Failure::bad_input(format!("{} has no address on a host", plan.links[edge].name)));
    };
    let end = open_routed_link(&Route { mine, theirs }, plan.wire_bytes_max());
    let end = end.map_err(|error| Failure::new(Exit::CouldNotStart, error.to_string()))?;
    Ok(UdpEnd::Abroad(end, theirs))
}

/// New links of somebody who takes a seat.
pub(super) struct NewLinks {
    /// The taker's ends.
    pub(super) mine: UdpEnds,
    /// Its neighbours' ends, with their ports.
    pub(super) theirs: Vec<(NodeId, u16, udp::End)>,
}

/// New links to everybody who is there.
pub(super) fn new_links(
    plan: &Plan,
    node: NodeId,
    is_there: impl Fn(NodeId) -> bool,
) -> io::Result<NewLinks> {
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    for joint in joints(plan, node) {
        if !is_there(joint.neighbour) {
            mine.push(UdpEnd::Nobody);
            continue;
        }
        let (near, far) = udp::create()?;
        mine.push(UdpEnd::Near(near));
        theirs.push((joint.neighbour, joint.neighbour_port.0, far));
    }
    Ok(NewLinks { mine, theirs })
}

/// The message about these ends.
pub(super) fn grant(ends: &UdpEnds) -> Grant {
    let near = |end: &UdpEnd| match end {
        UdpEnd::Near(end) => Some(end.fds()),
        UdpEnd::Abroad(..) | UdpEnd::Nobody => None,
    };
    let outlet = |(port, end): (usize, &UdpEnd)| match end {
        UdpEnd::Abroad(end, there) => Some(UdpOutlet { port, to: there.to_string(), sockets: end.fds() }),
        UdpEnd::Near(_) | UdpEnd::Nobody => None,
    };
    let outlets = ends.iter().enumerate().filter_map(outlet).collect();
    Grant::Udp { ports: ends.iter().map(near).collect(), outlets }
}
