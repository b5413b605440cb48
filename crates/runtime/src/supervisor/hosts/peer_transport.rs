//! Transport of messages between hosts: frames on shared segments, or datagrams from each host to each other.

use std::collections::BTreeSet;
use std::net::SocketAddrV4;

use rackloom::hosts::{HostLinkError, MessageSocket, RoutedMessages};
use rackloom_plan::{HostPlan, Plan};

use super::message::GROUP;

/// Sockets for messages between hosts.
pub(super) enum PeerTransport {
    /// Frames to the group address, by interface.
    Segments(Vec<MessageSocket>),
    /// Datagrams to the address of each host.
    Routed(RoutedMessages),
}

/// Opens the sockets. Returns them with a description of the address of each host.
pub(super) fn open(plan: &Plan, mine: usize) -> Result<(PeerTransport, Vec<String>), HostLinkError> {
    if plan.settings.wire.has_host_addresses() { routed(plan, mine) } else { on_segments(plan, mine) }
}

fn on_segments(plan: &Plan, mine: usize) -> Result<(PeerTransport, Vec<String>), HostLinkError> {
    let interfaces_to = interfaces_to_hosts(plan, mine);
    let interfaces: BTreeSet<&String> = interfaces_to.iter().flatten().collect();
    let open = |interface: &&String| MessageSocket::open(interface, plan.settings.ether_type, GROUP);
    let sockets = interfaces.iter().map(open).collect::<Result<_, HostLinkError>>()?;
    let describe = |interfaces: &BTreeSet<String>| {
        let names: Vec<&str> = interfaces.iter().map(String::as_str).collect();
        match names[..] {
            [] => ", which is reached through others,".to_owned(),
            _ => format!(" on {}", names.join(", ")),
        }
    };
    Ok((PeerTransport::Segments(sockets), interfaces_to.iter().map(describe).collect()))
}

fn routed(plan: &Plan, mine: usize) -> Result<(PeerTransport, Vec<String>), HostLinkError> {
    let address = |host: &HostPlan| Some(SocketAddrV4::new(host.address?, plan.settings.udp_port));
    let others = plan.hosts.iter().enumerate().filter(|(host, _)| *host != mine);
    let others = others.filter_map(|(_, host)| address(host)).collect();
    // The checked plan has an address for every host.
    let here = address(&plan.hosts[mine])
        .unwrap_or_else(|| SocketAddrV4::new([0, 0, 0, 0].into(), plan.settings.udp_port));
    let socket = RoutedMessages::open(here, others)?;
    let describe =
        |host: &HostPlan| host.address.map_or_else(String::new, |address| format!(" at {address}"));
    Ok((PeerTransport::Routed(socket), plan.hosts.iter().map(describe).collect()))
}

impl PeerTransport {
    /// Returns the number of receiving sockets.
    pub(super) fn sockets(&self) -> usize {
        match self {
            Self::Segments(sockets) => sockets.len(),
            Self::Routed(_) => 1,
        }
    }

    /// Returns the next message of a socket, if one has arrived.
    pub(super) fn receive<'buffer>(&self, socket: usize, buffer: &'buffer mut [u8]) -> Option<&'buffer [u8]> {
        match self {
            Self::Segments(sockets) => sockets.get(socket)?.receive(buffer),
            Self::Routed(socket) => socket.receive(buffer),
        }
    }

    /// Sends a message to all others. A lost message is repeated at the next tick.
    pub(super) fn send(&self, message: &[u8]) {
        match self {
            Self::Segments(sockets) => sockets.iter().for_each(|socket| {
                let _ = socket.send(message);
            }),
            Self::Routed(socket) => {
                let _ = socket.send(message);
            }
        }
    }
}

/// Returns the interfaces of this host at which links lead to each host.
fn interfaces_to_hosts(plan: &Plan, mine: usize) -> Vec<BTreeSet<String>> {
    let here = &plan.hosts[mine];
    let mut interfaces = vec![BTreeSet::new(); plan.hosts.len()];
    for (index, link) in plan.links.iter().enumerate() {
        let ends = [(link.edge.a, link.edge.b), (link.edge.b, link.edge.a)];
        for (_, remote) in ends.into_iter().filter(|(local, _)| here.nodes.contains(local)) {
            let Some(interface) = here.interface_of(index) else { continue };
            let runs_remote = |host: &rackloom_plan::HostPlan| host.nodes.contains(&remote);
            if let Some(other) = plan.hosts.iter().position(runs_remote).filter(|other| *other != mine) {
                interfaces[other].insert(interface.to_owned());
            }
        }
    }
    interfaces
}
