//! Links and messages between machines that share no segment: datagrams, which routers forward.
//!
//! Addresses and ports come from the rack file, so each machine opens its ends independently. Messages have a port of their own and are sent to each
//! other host separately, because routers do not forward datagrams to a group.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};

use super::HostLinkError;
use crate::wires::udp::{End, Route, create_routed};

/// Bytes of an IPv4 packet that do not belong to the frame.
const HEADERS_BYTES: usize = 28;

/// Opens this machine's end of a link.
///
/// # Errors
/// [`HostLinkError`], with a hint.
pub fn open_routed_link(route: &Route, frame_bytes_max: u16) -> Result<End, HostLinkError> {
    let failed = |cause| failed(route.mine, Some(route.theirs), cause);
    let end = create_routed(route).map_err(failed)?;
    let (carried, needed) = (end.frame_bytes_carried().map_err(failed)?, usize::from(frame_bytes_max));
    if carried < needed {
        let address = route.theirs.ip().to_string();
        let mtu = needed + HEADERS_BYTES;
        return Err(HostLinkError::PathTooShort { address, carried, needed, mtu });
    }
    Ok(end)
}

/// A socket for short messages between the supervisors of a rack. Each message is sent to each of them.
///
/// `Send` and `Sync`: each call is a few system calls.
#[derive(Debug)]
pub struct RoutedMessages {
    socket: UdpSocket,
    others: Vec<SocketAddrV4>,
}

impl RoutedMessages {
    /// Opens the socket at `mine` for messages to and from `others`.
    ///
    /// # Errors
    /// [`HostLinkError`], with a hint.
    pub fn open(mine: SocketAddrV4, others: Vec<SocketAddrV4>) -> Result<Self, HostLinkError> {
        let open = || {
            let socket = UdpSocket::bind(mine)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = open().map_err(|cause| failed(mine, None, cause))?;
        Ok(Self { socket, others })
    }

    /// Sends a message to all others. A host that cannot be reached misses the message, as in any network.
    ///
    /// # Errors
    /// The kernel's error for the last host that it could not send to.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        let mut all = Ok(());
        for other in &self.others {
            all = self.socket.send_to(message, other).map(drop).and(all);
        }
        all
    }

    /// Returns the next message of one of the others, if one has arrived. A message longer than `buffer` is cut off.
    pub fn receive<'buffer>(&self, buffer: &'buffer mut [u8]) -> Option<&'buffer [u8]> {
        // Foreign messages are skipped. Their number per call is limited, so that every call ends.
        for _ in 0..FOREIGN_MESSAGES_MAX {
            match self.socket.recv_from(buffer) {
                Ok((length, std::net::SocketAddr::V4(from))) if self.others.contains(&from) => {
                    return buffer.get(..length);
                }
                // A refusal concerns an earlier message to a host that has not started yet.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(_) => return None,
            }
        }
        None
    }
}

/// Maximum number of foreign messages that one call skips.
const FOREIGN_MESSAGES_MAX: usize = 256;

fn failed(mine: SocketAddrV4, theirs: Option<SocketAddrV4>, cause: io::Error) -> HostLinkError {
    let (address, port) = (mine.ip().to_string(), mine.port());
    match (cause.kind(), theirs) {
        (io::ErrorKind::AddrNotAvailable, _) => HostLinkError::NoAddress { address },
        (io::ErrorKind::AddrInUse, _) => HostLinkError::PortTaken { address, port },
        (io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable, Some(theirs)) => {
            HostLinkError::NoRoute { address: theirs.ip().to_string() }
        }
        _ => HostLinkError::System { interface: format!("{address}, port {port}"), cause },
    }
}
