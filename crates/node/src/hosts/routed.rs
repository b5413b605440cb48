//! Links and words between machines that share no segment: datagrams, which routers carry.
//!
//! Addresses and ports come from the rack file, so each machine opens its ends without asking anybody. Words have a port of
//! their own and go to every other host by itself: no router carries what is addressed to a group.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};

use super::HostLinkError;
use crate::wires::udp::{End, Route, create_routed};

/// What of an IPv4 packet is not the frame.
const HEADERS_BYTES: usize = 28;

/// This machine's end of a link.
///
/// # Errors
/// [`HostLinkError`], with what to do about it.
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

/// A socket on which the supervisors of a rack say short words to each other, each to each.
///
/// `Send` and `Sync`: each call is a few system calls.
#[derive(Debug)]
pub struct RoutedWords {
    socket: UdpSocket,
    others: Vec<SocketAddrV4>,
}

impl RoutedWords {
    /// Hear what these others say.
    ///
    /// # Errors
    /// [`HostLinkError`], with what to do about it.
    pub fn open(mine: SocketAddrV4, others: Vec<SocketAddrV4>) -> Result<Self, HostLinkError> {
        let open = || {
            let socket = UdpSocket::bind(mine)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = open().map_err(|cause| failed(mine, None, cause))?;
        Ok(Self { socket, others })
    }

    /// Say a word to all others. Who cannot be reached loses it, as any network may.
    ///
    /// # Errors
    /// What the kernel says of the last one that it would not send to.
    pub fn say(&self, word: &[u8]) -> io::Result<()> {
        let mut all = Ok(());
        for other in &self.others {
            all = self.socket.send_to(word, other).map(drop).and(all);
        }
        all
    }

    /// The next word of one of the others, if one has come. One that is longer than the room is cut off.
    pub fn hear<'room>(&self, room: &'room mut [u8]) -> Option<&'room [u8]> {
        // What strangers say is passed over, and a flood of it is left for later: every look ends.
        for _ in 0..STRANGERS_PER_LOOK_MAX {
            match self.socket.recv_from(room) {
                Ok((length, std::net::SocketAddr::V4(from))) if self.others.contains(&from) => {
                    return room.get(..length);
                }
                // A refusal concerns what was said to somebody who is not there yet.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(_) => return None,
            }
        }
        None
    }
}

/// Words of strangers that are passed over at once.
const STRANGERS_PER_LOOK_MAX: usize = 256;

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
