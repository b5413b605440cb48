//! The udp wire of a rack: a pair of connected sockets per link, each end inherited by the seat that uses it.

use std::io;

use rackloom::wires::udp;
use rackloom_plan::Plan;
use rackloom_protocol::NodeId;

use super::wiring::joints;
use crate::control::Grant;

/// Ends of links that have not been handed out.
pub(super) struct UdpWiring {
    /// By member, in port order, with the neighbour; empty once handed out.
    ends: Vec<Vec<(NodeId, udp::End)>>,
}

/// One end per port; nothing where nobody sits at the other end.
pub(super) type UdpEnds = Vec<Option<udp::End>>;

impl UdpWiring {
    pub(super) fn lay(plan: &Plan) -> io::Result<Self> {
        let mut ends: Vec<Vec<_>> = plan.members.iter().map(|_| Vec::new()).collect();
        for link in &plan.links {
            let (a, b) = udp::create()?;
            ends[link.edge.a.index()].push((link.edge.a_port, (link.edge.b, a)));
            ends[link.edge.b.index()].push((link.edge.b_port, (link.edge.a, b)));
        }
        let in_port_order = |mut ends: Vec<(_, _)>| {
            ends.sort_by_key(|(port, _)| *port);
            ends.into_iter().map(|(_, end)| end).collect()
        };
        Ok(Self { ends: ends.into_iter().map(in_port_order).collect() })
    }

    /// The ends of one member. To be asked once per member.
    pub(super) fn take(&mut self, node: NodeId, is_vacant: impl Fn(NodeId) -> bool) -> UdpEnds {
        let ends = std::mem::take(&mut self.ends[node.index()]).into_iter();
        ends.map(|(neighbour, end)| (!is_vacant(neighbour)).then_some(end)).collect()
    }
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
            mine.push(None);
            continue;
        }
        let (near, far) = udp::create()?;
        mine.push(Some(near));
        theirs.push((joint.neighbour, joint.neighbour_port.0, far));
    }
    Ok(NewLinks { mine, theirs })
}

/// The message about these ends.
pub(super) fn grant(ends: &UdpEnds) -> Grant {
    Grant::Udp { ports: ends.iter().map(|end| end.as_ref().map(udp::End::fds)).collect() }
}
