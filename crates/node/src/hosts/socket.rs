//! The sockets of links between machines, and of the supervisors' words to each other.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use rustix::net::netdevice::name_to_index;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use thiserror::Error;

use super::filter::{attach, frames_of};
use crate::namespaces::{LinkNews, mtu};
use crate::wires::{bind_packet_socket, open_packet_socket, set_option, set_receive_buffer};

/// What a socket for words asks for: room for what a stranger may say between two looks.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;
/// What of a frame an interface's MTU does not count.
const ETHERNET_HEADER_BYTES: usize = 14;

/// Why a link between machines cannot be had.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostLinkError {
    /// The right is missing.
    #[error(
        "links to other hosts need the right to open packet sockets (CAP_NET_RAW), which this process lacks\n\
         hint: run as root, or give the program that right: `setcap cap_net_raw+ep`"
    )]
    Forbidden,
    /// There is no such interface.
    #[error(
        "this machine has no interface {interface}\n\
         hint: `hosts` of the rack file names the interfaces as `ip link` or /sys/class/net does"
    )]
    Missing {
        /// What the file calls it.
        interface: String,
    },
    /// Frames of the rack are too long.
    #[error(
        "interface {interface} carries frames of {carried} bytes, and the rack sends {needed}\n\
         hint: raise its MTU to {} on every host, or lower `frame_bytes_max`",
        needed - ETHERNET_HEADER_BYTES
    )]
    TooShort {
        /// Its name.
        interface: String,
        /// Longest frame that it carries.
        carried: usize,
        /// Longest frame of the rack.
        needed: usize,
    },
    /// The address is not one of this machine's.
    #[error(
        "this machine has no address {address}\n\
         hint: `hosts` of the rack file names the addresses that `ip address` shows"
    )]
    NoAddress {
        /// What the file calls it.
        address: String,
    },
    /// Somebody else has the port.
    #[error("port {port} of {address} is taken\nhint: write another `udp_port`, the same on every host")]
    PortTaken {
        /// Of which address.
        address: String,
        /// Which port.
        port: u16,
    },
    /// Nobody knows the way.
    #[error(
        "this machine knows no way to {address}\nhint: `ip route get {address}` says why; a route may be missing"
    )]
    NoRoute {
        /// Where to.
        address: String,
    },
    /// Frames of the rack do not fit the packets of that way.
    #[error(
        "the way to {address} carries frames of {carried} bytes in a packet, and the rack sends {needed}\n\
         hint: raise the MTU to {mtu} on every interface of the way, or write `frame_bytes_max: {carried}B`"
    )]
    PathTooShort {
        /// Where to.
        address: String,
        /// Longest frame that goes into one packet.
        carried: usize,
        /// Longest frame of the rack.
        needed: usize,
        /// What would be enough.
        mtu: usize,
    },
    /// Anything else.
    #[error("cannot use interface {interface}: {cause}")]
    System {
        /// Its name.
        interface: String,
        /// What the kernel said.
        cause: io::Error,
    },
}

/// One end of a link to another machine: opened here, used by the member that inherits it.
///
/// `Send` and `Sync`: plain descriptors.
#[derive(Debug)]
pub struct HostLink {
    sender: OwnedFd,
    receiver: OwnedFd,
    /// What becomes of the machine's interfaces.
    news: LinkNews,
}

impl HostLink {
    /// The descriptors, to be inherited under these numbers: sender, receiver, and news of the interface.
    #[must_use]
    pub fn fds(&self) -> [RawFd; 3] {
        let news = self.news.descriptor().as_raw_fd();
        [self.sender.as_raw_fd(), self.receiver.as_raw_fd(), news]
    }
}

/// Sockets for what `mine` and `theirs` send each other on an interface of this machine.
///
/// They are bound to nothing yet: the member that inherits them gives the receiver its ring first.
///
/// # Errors
/// [`HostLinkError`], with what to do about it.
pub fn open_link(
    interface: &str,
    frame_bytes_max: u16,
    mine: [u8; 6],
    theirs: [u8; 6],
) -> Result<HostLink, HostLinkError> {
    let (sender, index) = open_on(interface)?;
    let (receiver, _) = open_on(interface)?;
    let failed = |cause| HostLinkError::System { interface: interface.to_owned(), cause };
    let carried = mtu(&sender, interface).map_err(failed)? + ETHERNET_HEADER_BYTES;
    let needed = usize::from(frame_bytes_max);
    if carried < needed {
        return Err(HostLinkError::TooShort { interface: interface.to_owned(), carried, needed });
    }
    attach(&receiver, &mut frames_of(mine, Some(theirs))).map_err(failed)?;
    take_in(&receiver, index, libc::PACKET_MR_UNICAST, mine).map_err(failed)?;
    let news = LinkNews::listen().map_err(failed)?;
    Ok(HostLink { sender, receiver, news })
}

/// A socket on which the supervisors of a rack say short words to each other, to all on the segment at once.
///
/// `Send` and `Sync`: each call is one system call.
#[derive(Debug)]
pub struct WordSocket {
    socket: OwnedFd,
}

impl WordSocket {
    /// Hear frames of this EtherType to this group address on an interface of this machine.
    ///
    /// # Errors
    /// [`HostLinkError`], with what to do about it.
    pub fn open(interface: &str, ether_type: u16, group: [u8; 6]) -> Result<Self, HostLinkError> {
        let (socket, index) = open_on(interface)?;
        let failed = |cause| HostLinkError::System { interface: interface.to_owned(), cause };
        attach(&socket, &mut frames_of(group, None)).map_err(failed)?;
        // Others may speak to that address too; what the kernel does not grant is done without.
        let _ = set_receive_buffer(&socket, RECEIVE_BUFFER_BYTES);
        take_in(&socket, index, libc::PACKET_MR_MULTICAST, group).map_err(failed)?;
        bind_packet_socket(&socket, index, ether_type).map_err(failed)?;
        Ok(Self { socket })
    }

    /// Send a whole frame. An interface that is down or full loses it, as any segment may.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn say(&self, frame: &[u8]) -> io::Result<()> {
        send(&self.socket, frame, SendFlags::DONTWAIT)?;
        Ok(())
    }

    /// The next frame, if one has come. One that is longer than the room is cut off.
    pub fn hear<'room>(&self, room: &'room mut [u8]) -> Option<&'room [u8]> {
        let (length, _) = recv(&self.socket, &mut *room, RecvFlags::DONTWAIT).ok()?;
        room.get(..length)
    }
}

/// A socket that hears nothing yet, and the number of the interface.
fn open_on(interface: &str) -> Result<(OwnedFd, u32), HostLinkError> {
    let failed = |cause: io::Error| HostLinkError::System { interface: interface.to_owned(), cause };
    let socket = open_packet_socket().map_err(|cause| match cause.kind() {
        io::ErrorKind::PermissionDenied => HostLinkError::Forbidden,
        _ => failed(cause),
    })?;
    let index = name_to_index(&socket, interface).map_err(|error| match error {
        rustix::io::Errno::NODEV => HostLinkError::Missing { interface: interface.to_owned() },
        other => failed(other.into()),
    })?;
    Ok((socket, index))
}

/// Have the interface take in frames to an address beside its own, as long as the socket lives.
fn take_in(socket: impl AsFd, index: u32, kind: libc::c_int, address: [u8; 6]) -> io::Result<()> {
    let mut mr_address = [0; 8];
    mr_address[..6].copy_from_slice(&address);
    let request = libc::packet_mreq {
        mr_ifindex: libc::c_int::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?,
        mr_type: kind as libc::c_ushort,
        mr_alen: 6,
        mr_address,
    };
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, request)
}
