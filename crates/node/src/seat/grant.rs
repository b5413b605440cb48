//! What a seat's ports are plugged into, as supervisor and seat say it to each other.
//!
//! Only what to open: who the seat is, its neighbours and its faults come from the plan.

use std::os::fd::RawFd;

use serde::{Deserialize, Serialize};

/// A cable for a port of a seat that is taken already.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NewCable {
    /// Shared memory. Four descriptors come along: the ring to send, the ring to receive, the carrier, and what wakes the
    /// neighbour.
    SharedMemory {
        /// The port.
        port: u16,
    },
    /// An interface that has just been laid into the seat's namespace.
    Packet {
        /// The port.
        port: u16,
        /// Its name.
        interface: String,
    },
    /// Datagrams. Two descriptors come along: the socket and the carrier.
    Udp {
        /// The port.
        port: u16,
    },
}

impl NewCable {
    /// How many descriptors come along.
    #[must_use]
    pub const fn descriptors(&self) -> usize {
        match self {
            Self::SharedMemory { .. } => 4,
            Self::Packet { .. } => 0,
            Self::Udp { .. } => 2,
        }
    }

    /// Which port it is for.
    #[must_use]
    pub const fn port(&self) -> usize {
        match self {
            Self::SharedMemory { port } | Self::Packet { port, .. } | Self::Udp { port } => *port as usize,
        }
    }
}

/// The wires of one seat.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "wire", rename_all = "kebab-case")]
pub enum Grant {
    /// Shared memory. Descriptors are inherited under the numbers given here.
    SharedMemory {
        /// What wakes this seat.
        doorbell: RawFd,
        /// What wakes its neighbours; each is named once, however many links lead there.
        neighbour_doorbells: Vec<RawFd>,
        /// Ports in order; nothing where nobody sits at the other end yet.
        ports: Vec<Option<SharedMemoryPort>>,
    },
    /// Interfaces of the seat's own namespace, in port order.
    Packet {
        /// Their names; nothing where nobody sits at the other end yet.
        interfaces: Vec<Option<String>>,
        /// Ports whose links leave the machine.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outlets: Vec<Outlet>,
    },
    /// Datagram sockets, in port order. Descriptors are inherited under the numbers given here: socket and carrier.
    Udp {
        /// Ports in order; nothing where nobody sits at the other end yet.
        ports: Vec<Option<[RawFd; 2]>>,
        /// Ports whose links leave the machine.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outlets: Vec<UdpOutlet>,
    },
}

/// One port at an address of the machine. Descriptors are inherited under the numbers given here.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct UdpOutlet {
    /// The port.
    pub port: usize,
    /// Where the other end is, in words.
    pub to: String,
    /// The link's socket, and the one that hears strangers.
    pub sockets: [RawFd; 2],
}

/// One port at an interface of the machine itself. Descriptors are inherited under the numbers given here.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Outlet {
    /// The port.
    pub port: usize,
    /// Name of the interface.
    pub interface: String,
    /// Sockets for this link on it: sender, receiver, and news of the interface.
    pub sockets: [RawFd; 3],
}

/// One port on shared memory.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct SharedMemoryPort {
    /// The descriptors of this end of the link.
    pub end: [RawFd; 3],
    /// Which of the neighbours' doorbells rings at the other end.
    pub neighbour: usize,
}

impl Grant {
    /// Every descriptor that the message names, each once.
    #[must_use]
    pub fn descriptors(&self) -> Vec<RawFd> {
        match self {
            Self::SharedMemory { doorbell, neighbour_doorbells, ports } => {
                let mut all = vec![*doorbell];
                all.extend(neighbour_doorbells);
                all.extend(ports.iter().flatten().flat_map(|port| port.end));
                all
            }
            Self::Packet { outlets, .. } => outlets.iter().flat_map(|outlet| outlet.sockets).collect(),
            Self::Udp { ports, outlets } => {
                let abroad = outlets.iter().flat_map(|outlet| outlet.sockets);
                ports.iter().flatten().flatten().copied().chain(abroad).collect()
            }
        }
    }

    /// The same wires under other numbers: of a process that was handed the descriptors and did not inherit them.
    /// `None` if a descriptor is missing. Interfaces have names and no numbers.
    #[must_use]
    pub fn renumbered(&self, number: impl Fn(RawFd) -> Option<RawFd>) -> Option<Self> {
        match self {
            Self::SharedMemory { doorbell, neighbour_doorbells, ports } => {
                let port = |port: &Option<SharedMemoryPort>| {
                    let Some(SharedMemoryPort { end: [send, receive, carrier], neighbour }) = *port else {
                        return Some(None);
                    };
                    let end = [number(send)?, number(receive)?, number(carrier)?];
                    Some(Some(SharedMemoryPort { end, neighbour }))
                };
                Some(Self::SharedMemory {
                    doorbell: number(*doorbell)?,
                    neighbour_doorbells: neighbour_doorbells
                        .iter()
                        .map(|fd| number(*fd))
                        .collect::<Option<_>>()?,
                    ports: ports.iter().map(port).collect::<Option<_>>()?,
                })
            }
            Self::Packet { interfaces, outlets } => {
                let outlet = |outlet: &Outlet| {
                    let [sender, receiver, news] = outlet.sockets;
                    let sockets = [number(sender)?, number(receiver)?, number(news)?];
                    Some(Outlet { sockets, ..outlet.clone() })
                };
                let outlets = outlets.iter().map(outlet).collect::<Option<_>>()?;
                Some(Self::Packet { interfaces: interfaces.clone(), outlets })
            }
            Self::Udp { ports, outlets } => {
                let outlet = |outlet: &UdpOutlet| {
                    let [socket, doorman] = outlet.sockets;
                    Some(UdpOutlet { sockets: [number(socket)?, number(doorman)?], ..outlet.clone() })
                };
                let outlets = outlets.iter().map(outlet).collect::<Option<_>>()?;
                let port = |port: &Option<[RawFd; 2]>| {
                    let Some([socket, carrier]) = *port else { return Some(None) };
                    Some(Some([number(socket)?, number(carrier)?]))
                };
                Some(Self::Udp { ports: ports.iter().map(port).collect::<Option<_>>()?, outlets })
            }
        }
    }
}
