//! How words travel: as frames on the segments that hosts share, or as datagrams from each host to each other.

use std::collections::BTreeSet;
use std::net::SocketAddrV4;

use rackloom::hosts::{HostLinkError, RoutedWords, WordSocket};
use rackloom_plan::{HostPlan, Plan, WireKind};

use super::message::GROUP;

/// What this host says and hears words with.
pub(super) enum PeerTransport {
    /// Frames to everybody, by interface.
    Segments(Vec<WordSocket>),
    /// Datagrams to each.
    Routed(RoutedWords),
}

/// Open the sockets. Comes with the way to each host, in words.
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
    /// How many sockets there are to hear at.
    pub(super) fn sockets(&self) -> usize {
        match self {
            Self::Segments(sockets) => sockets.len(),
            Self::Routed(_) => 1,
        }
    }

    /// The next word that one of them has.
    pub(super) fn hear<'room>(&self, socket: usize, room: &'room mut [u8]) -> Option<&'room [u8]> {
        match self {
            Self::Segments(sockets) => sockets.get(socket)?.hear(room),
            Self::Routed(words) => words.hear(room),
        }
    }

    /// Say a word to all others. One that is lost is said again.
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

/// By host: the interfaces of this one at which links lead there.
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
