//! Transport of messages between hosts: frames on shared segments, or datagrams from each host to each other.

use std::collections::BTreeSet;
use std::net::SocketAddrV4;

use rackloom::hosts::{HostLinkError, RoutedWords, WordSocket};
use rackloom_plan::{HostPlan, Plan, WireKind};

use super::message::GROUP;

/// Sockets for messages between hosts.
pub(super) enum PeerTransport {
    /// Frames to the group address, by interface.
    Segments(Vec<WordSocket>),
    /// Datagrams to each.
    Routed(RoutedWords),
}

/// Opens the sockets. Also returns a description of the address of each host.
pub(super) fn open(plan: &Plan, mine: usize) -> Result<(PeerTransport, Vec<String>), HostLinkError> {
    if plan.wire == WireKind::Udp { routed(plan, mine) } else { on_segments(plan, mine) }
}

fn on_segments(plan: &Plan, mine: usize) -> Result<(PeerTransport, Vec<String>), HostLinkError> {
    let ways = ways(plan, mine);
    let interfaces: BTreeSet<&String> = ways.iter().flatten().collect();
    let open = |interface: &&String| WordSocket::open(interface, plan.ether_type, GROUP);
    let sockets = interfaces.iter().map(open).collect::<Result<_, HostLinkError>>()?;
    let in_words = |way: &BTreeSet<String>| {
        let names: Vec<&str> = way.iter().map(String::as_str).collect();
        match names[..] {
            [] => ", which is reached through others,".to_owned(),
            _ => format!(" on {}", names.join(", ")),
        }
    };
    Ok((PeerTransport::Segments(sockets), ways.iter().map(in_words).collect()))
}

fn routed(plan: &Plan, mine: usize) -> Result<(PeerTransport, Vec<String>), HostLinkError> {
    let place = |host: &HostPlan| Some(SocketAddrV4::new(host.address?, plan.udp_port));
    let others = plan.hosts.iter().enumerate().filter(|(host, _)| *host != mine);
    let others = others.filter_map(|(_, host)| place(host)).collect();
    // The plan has been checked: every host has an address.
    let here =
        place(&plan.hosts[mine]).unwrap_or_else(|| SocketAddrV4::new([0, 0, 0, 0].into(), plan.udp_port));
    let words = RoutedWords::open(here, others)?;
    let way = |host: &HostPlan| host.address.map_or_else(String::new, |address| format!(" at {address}"));
    Ok((PeerTransport::Routed(words), plan.hosts.iter().map(way).collect()))
}

impl PeerTransport {
    /// Returns the number of receiving sockets.
    pub(super) fn sockets(&self) -> usize {
        match self {
            Self::Segments(sockets) => sockets.len(),
            Self::Routed(_) => 1,
        }
    }

    /// Returns the next message of one of them.
    pub(super) fn hear<'room>(&self, socket: usize, room: &'room mut [u8]) -> Option<&'room [u8]> {
        match self {
            Self::Segments(sockets) => sockets.get(socket)?.hear(room),
            Self::Routed(words) => words.hear(room),
        }
    }

    /// Sends a message to all others. A lost one is repeated at the next tick.
    pub(super) fn say(&self, word: &[u8]) {
        match self {
            Self::Segments(sockets) => sockets.iter().for_each(|socket| {
                let _ = socket.say(word);
            }),
            Self::Routed(words) => {
                let _ = words.say(word);
            }
        }
    }
}

/// Returns the interfaces at which links lead to each host.
fn ways(plan: &Plan, mine: usize) -> Vec<BTreeSet<String>> {
    let here = &plan.hosts[mine];
    let mut ways = vec![BTreeSet::new(); plan.hosts.len()];
    for (index, link) in plan.links.iter().enumerate() {
        let ends = [(link.edge.a, link.edge.b), (link.edge.b, link.edge.a)];
        for (_, far) in ends.into_iter().filter(|(near, _)| here.members.contains(near)) {
            let Some(interface) = here.interface_of(index) else { continue };
            let is_far = |host: &rackloom_plan::HostPlan| host.members.contains(&far);
            if let Some(other) = plan.hosts.iter().position(is_far).filter(|other| *other != mine) {
                ways[other].insert(interface.to_owned());
            }
        }
    }
    ways
}
