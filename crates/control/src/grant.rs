//! Messages from supervisor to seat that name the wires of a seat's ports.
//!
//! They name only wires. The identity of the seat, its neighbours and its faults come from the plan.

use std::os::fd::RawFd;

use serde::{Deserialize, Serialize};

/// A new cable for a port of a seat that is already taken.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NewCable {
    /// Shared memory. Four descriptors are sent with the message: the ring to send, the ring to receive, the carrier, and the neighbour's doorbell.
    SharedMemory {
        /// Number of the port.
        port: u16,
    },
    /// An interface that has just been created in the seat's namespace.
    Packet {
        /// Number of the port.
        port: u16,
        /// Name of the interface.
        interface: String,
    },
    /// Datagrams. Two descriptors are sent with the message: the socket and the carrier.
    Udp {
        /// Number of the port.
        port: u16,
    },
}

impl NewCable {
    /// Returns the number of descriptors sent with the message.
    #[must_use]
    pub const fn descriptors(&self) -> usize {
        match self {
            Self::SharedMemory { .. } => 4,
            Self::Packet { .. } => 0,
            Self::Udp { .. } => 2,
        }
    }

    /// Returns the number of the port.
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
        /// Descriptor of this seat's doorbell.
        doorbell: RawFd,
        /// Descriptors of the neighbours' doorbells. Each is named once, however many links lead to the neighbour.
        neighbour_doorbells: Vec<RawFd>,
        /// Ports in order. `None` if the seat at the other end is vacant.
        ports: Vec<Option<SharedMemoryPort>>,
    },
    /// Interfaces of the seat's own namespace, in port order.
    Packet {
        /// Names of the interfaces. `None` if the seat at the other end is vacant.
        interfaces: Vec<Option<String>>,
        /// Ports whose links leave the machine.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outlets: Vec<Outlet>,
    },
    /// Datagram sockets, in port order. Descriptors are inherited under the numbers given here: socket and carrier.
    Udp {
        /// Ports in order. `None` if the seat at the other end is vacant.
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
    /// Number of the port.
    pub port: usize,
    /// Description of the remote end's address.
    pub to: String,
    /// The link's socket, and the socket that receives foreign datagrams.
    pub sockets: [RawFd; 2],
}

/// One port at an interface of the machine itself. Descriptors are inherited under the numbers given here.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Outlet {
    /// Number of the port.
    pub port: usize,
    /// Name of the interface.
    pub interface: String,
    /// Sockets for this link on the interface: sender, receiver, and notifications about the interface.
    pub sockets: [RawFd; 3],
}

/// One port on shared memory.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct SharedMemoryPort {
    /// Descriptors of this end of the link.
    pub end: [RawFd; 3],
    /// Index of the neighbour's doorbell in `neighbour_doorbells`.
    pub neighbour: usize,
}

impl Grant {
    /// Returns every descriptor that the message names, each once.
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

    /// Returns the ports whose links leave the machine, each with a text that names its interface or the address of the remote end.
    #[must_use]
    pub fn outlets(&self) -> Vec<(usize, String)> {
        match self {
            Self::SharedMemory { .. } => Vec::new(),
            Self::Packet { outlets, .. } => {
                outlets.iter().map(|outlet| (outlet.port, format!("on {}", outlet.interface))).collect()
            }
            Self::Udp { outlets, .. } => {
                outlets.iter().map(|outlet| (outlet.port, format!("from {}", outlet.to))).collect()
            }
        }
    }

    /// Returns the same wires under other numbers, for a process that received the descriptors and did not inherit them. Returns `None` if a
    /// descriptor is missing. Interfaces have names and no numbers.
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
                    let [sender, receiver, notices] = outlet.sockets;
                    let sockets = [number(sender)?, number(receiver)?, number(notices)?];
                    Some(Outlet { sockets, ..outlet.clone() })
                };
                let outlets = outlets.iter().map(outlet).collect::<Option<_>>()?;
                Some(Self::Packet { interfaces: interfaces.clone(), outlets })
            }
            Self::Udp { ports, outlets } => {
                let outlet = |outlet: &UdpOutlet| {
                    let [socket, foreign] = outlet.sockets;
                    Some(UdpOutlet { sockets: [number(socket)?, number(foreign)?], ..outlet.clone() })
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
