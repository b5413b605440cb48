//! Sockets of links between machines, and of the messages between supervisors.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use rustix::net::netdevice::name_to_index;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use thiserror::Error;

use super::filter::{attach, frames_of};
use crate::namespaces::{LinkEvents, mtu};
use crate::wires::{bind_packet_socket, open_packet_socket, set_option, set_receive_buffer};

/// Receive buffer that a message socket requests, in bytes. It holds foreign messages that arrive between two reads.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;
/// Bytes of a frame that an interface's MTU does not include.
const ETHERNET_HEADER_BYTES: usize = 14;

/// Error of a link between machines.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostLinkError {
    /// The process lacks the right to open packet sockets.
    #[error(
        "links to other hosts need the right to open packet sockets (CAP_NET_RAW), which this process lacks\n\
         hint: run as root, or give the program that right: `setcap cap_net_raw+ep`"
    )]
    Forbidden,
    /// The machine has no such interface.
    #[error(
        "this machine has no interface {interface}\n\
         hint: `hosts` of the rack file names the interfaces as `ip link` or /sys/class/net does"
    )]
    Missing {
        /// Name in the rack file.
        interface: String,
    },
    /// The frames of the rack are too long for the interface.
    #[error(
        "interface {interface} carries frames of {carried} bytes, and the rack sends {needed}\n\
         hint: raise its MTU to {} on every host, or lower `frame_bytes_max`",
        needed - ETHERNET_HEADER_BYTES
    )]
    TooShort {
        /// Name of the interface.
        interface: String,
        /// Length of the longest frame that it carries, in bytes.
        carried: usize,
        /// Length of the longest frame of the rack, in bytes.
        needed: usize,
    },
    /// The machine does not have this address.
    #[error(
        "this machine has no address {address}\n\
         hint: `hosts` of the rack file names the addresses that `ip address` shows"
    )]
    NoAddress {
        /// Address in the rack file.
        address: String,
    },
    /// The port is in use by another socket.
    #[error("port {port} of {address} is taken\nhint: write another `udp_port`, the same on every host")]
    PortTaken {
        /// Address of the port.
        address: String,
        /// Number of the port.
        port: u16,
    },
    /// The machine has no route to the address.
    #[error("this machine has no route to {address}\nhint: `ip route get {address}` shows the error")]
    NoRoute {
        /// Address of the remote host.
        address: String,
    },
    /// The frames of the rack do not fit into the packets of the path.
    #[error(
        "the way to {address} carries frames of {carried} bytes in a packet, and the rack sends {needed}\n\
         hint: raise the MTU to {mtu} on every interface of the way, or write `frame_bytes_max: {carried}B`"
    )]
    PathTooShort {
        /// Address of the remote host.
        address: String,
        /// Length of the longest frame that fits into one packet, in bytes.
        carried: usize,
        /// Length of the longest frame of the rack, in bytes.
        needed: usize,
        /// Sufficient MTU, in bytes.
        mtu: usize,
    },
    /// Some other error of the system.
    #[error("cannot use interface {interface}: {cause}")]
    System {
        /// Name of the interface, or address and port.
        interface: String,
        /// The kernel's error.
        cause: io::Error,
    },
}

/// One end of a link to another machine, opened in this process and used by the member that inherits it.
///
/// `Send` and `Sync`: plain descriptors.
#[derive(Debug)]
pub struct HostLink {
    sender: OwnedFd,
    receiver: OwnedFd,
    /// Notifications about the machine's interfaces.
    link_events: LinkEvents,
}

impl HostLink {
    /// Returns the descriptors to inherit under these numbers: sender, receiver, and notifications about the interface.
    #[must_use]
    pub fn fds(&self) -> [RawFd; 3] {
        let link_events = self.link_events.descriptor().as_raw_fd();
        [self.sender.as_raw_fd(), self.receiver.as_raw_fd(), link_events]
    }
}

/// Opens sockets for the frames between `mine` and `theirs` on an interface of this machine.
///
/// The sockets are not bound yet, because the member that inherits them attaches the receiver's ring first.
///
/// # Errors
/// [`HostLinkError`], with a hint.
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
    let link_events = LinkEvents::listen().map_err(failed)?;
    Ok(HostLink { sender, receiver, link_events })
}

/// A socket for short messages between the supervisors of a rack. Each message is sent to all of them on the segment at once.
///
/// `Send` and `Sync`: each call is one system call.
#[derive(Debug)]
pub struct MessageSocket {
    socket: OwnedFd,
}

impl MessageSocket {
    /// Opens a socket that receives frames of this EtherType to this group address on an interface of this machine.
    ///
    /// # Errors
    /// [`HostLinkError`], with a hint.
    pub fn open(interface: &str, ether_type: u16, group: [u8; 6]) -> Result<Self, HostLinkError> {
        let (socket, index) = open_on(interface)?;
        let failed = |cause| HostLinkError::System { interface: interface.to_owned(), cause };
        attach(&socket, &mut frames_of(group, None)).map_err(failed)?;
        // Foreign stations may send to this address too. The socket works without the requested buffer size if the kernel refuses it.
        let _ = set_receive_buffer(&socket, RECEIVE_BUFFER_BYTES);
        take_in(&socket, index, libc::PACKET_MR_MULTICAST, group).map_err(failed)?;
        bind_packet_socket(&socket, index, ether_type).map_err(failed)?;
        Ok(Self { socket })
    }

    /// Sends a whole frame. An interface that is down or full loses it, as any segment may.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        send(&self.socket, frame, SendFlags::DONTWAIT)?;
        Ok(())
    }

    /// Returns the next frame, if one has arrived. A frame longer than `buffer` is cut off.
    pub fn receive<'buffer>(&self, buffer: &'buffer mut [u8]) -> Option<&'buffer [u8]> {
        let (length, _) = recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT).ok()?;
        buffer.get(..length)
    }
}

/// Opens a socket that receives nothing yet. Returns it with the index of the interface.
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

/// Makes the interface receive frames to an address in addition to its own, as long as the socket exists.
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
