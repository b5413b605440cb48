//! Packet socket on the agent's end of the cable: whole frames, each behind a header that describes what the kernel has left undone.
//!
//! The kernel of a program leaves the sum of a packet and its division into packets of the MTU to the device (`virtio_net_hdr` in
//! `linux/virtio_net.h`, the option `PACKET_VNET_HDR` of packet(7)). The header travels with the frame, and the kernel of the other program takes
//! both back. So up to 64 KiB of a stream are one message.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketType, netdevice::name_to_index, recv, send, socket,
};

use crate::wires::{bind_packet_socket, open_packet_socket, set_option, set_receive_buffer};

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 10;
/// Largest frame with its header, in bytes: a packet of 64 KiB behind an Ethernet header with a VLAN tag.
pub const MESSAGE_BYTES_MAX: usize = HEADER_BYTES + 18 + 65_536;

/// Receive buffer that the socket requests, in bytes. The kernel may grant less. Frames that do not fit are lost.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;
/// EtherType that stands for all frames (`ETH_P_ALL`).
const ALL_FRAMES: u16 = 0x0003;
/// Options of `linux/if_packet.h`.
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const ON: libc::c_int = 1;

/// Packet socket on one interface. No call waits.
///
/// `Send` and `Sync`: the kernel orders the calls.
#[derive(Debug)]
pub struct FrameSocket {
    socket: OwnedFd,
}

impl FrameSocket {
    /// Opens a socket for all frames of an interface.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn open(interface: &str) -> io::Result<Self> {
        let packets = open_packet_socket()?;
        set_option(&packets, libc::SOL_PACKET, PACKET_VNET_HDR, ON)?;
        set_option(&packets, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, ON)?;
        set_receive_buffer(&packets, RECEIVE_BUFFER_BYTES)?;
        let any = socket(AddressFamily::UNIX, SocketType::DGRAM, None)?;
        bind_packet_socket(&packets, name_to_index(any, interface)?, ALL_FRAMES)?;
        Ok(Self { socket: packets })
    }

    /// Reads the next frame that the program has sent, behind its header. Returns its length, or `None` if there is none. A frame that is longer than
    /// the buffer is cut.
    ///
    /// # Errors
    /// The error of the socket: the cable is gone.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match recv(&self.socket, into, RecvFlags::DONTWAIT) {
            Ok((length, _)) => Ok(Some(length)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a frame, behind its header, to the program. Returns false if the kernel has no space for it now, or refuses it.
    #[must_use]
    pub fn send(&self, frame: &[u8]) -> bool {
        send(&self.socket, frame, SendFlags::DONTWAIT).is_ok()
    }

    /// Returns true if [`Self::receive`] has something to return.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        let mut interest = [PollFd::new(&self.socket, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut interest, Some(&now)), Ok(ready) if ready > 0)
    }

    /// Returns a second descriptor of the socket, to wait on.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone()
    }
}

impl AsFd for FrameSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
