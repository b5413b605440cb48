//! Raw packet sockets and their batches: only the system calls of the packet wire.
//!
//! A receiving socket is bound to one interface and one EtherType, so the kernel filters frames, and frames sent by this process never return. A
//! sending socket is bound to the interface with protocol 0, so it receives nothing. Both are non-blocking. Up to [`BATCH`] frames share one system
//! call, because the system call is the largest cost of a frame.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Maximum number of frames per system call.
pub(super) const BATCH: usize = 32;

/// A buffer that holds one frame of any size.
pub(super) type FrameBuffer = Box<[u8; super::FRAME_BYTES_MAX]>;

/// The kernel's description of a received frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Number of bytes received.
    pub(super) length: usize,
    /// Set if nothing was cut off.
    pub(super) is_whole: bool,
    /// Set if the kernel marks the frame as addressed to others: another destination, or a VLAN that does not exist here.
    pub(super) for_others: bool,
}

/// Opens a socket that receives nothing until it is bound, so no foreign frame arrives in between.
pub(crate) fn open() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?)
}

/// Binds a socket to the frames of one EtherType on one interface. With protocol 0 the socket only sends.
pub(crate) fn bind(socket: &OwnedFd, interface_index: u32, ether_type: u16) -> io::Result<()> {
    // SAFETY: needed because the type has no constructor. It consists of integers, for which zero is valid.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = ether_type.to_be();
    address.sll_ifindex = libc::c_int::try_from(interface_index).map_err(|_| io::ErrorKind::InvalidInput)?;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: needed because this kind of address has no safe form. The pointer and the length describe `address`,
    // which the kernel only reads during the call.
    let result = unsafe { libc::bind(socket.as_raw_fd(), ptr::from_ref(&address).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the number of frames that the kernel dropped for lack of space since the previous call.
pub(super) fn take_kernel_drops(socket: impl AsFd) -> u64 {
    // SAFETY: needed because the type has no constructor. It consists of integers, for which zero is valid.
    let mut statistics: libc::tpacket_stats = unsafe { zeroed() };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: needed because this option has no safe form. The kernel writes at most `length` bytes into `statistics`, which exists through the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            ptr::from_mut(&mut statistics).cast(),
            &raw mut length,
        )
    };
    if result < 0 { 0 } else { u64::from(statistics.tp_drops) }
}

/// Headers of one batch, on the stack. Their pointers into frames are only valid during one call.
struct Headers {
    vectors: [libc::iovec; BATCH],
    messages: [libc::mmsghdr; BATCH],
    /// Sender address of each received frame.
    addresses: [libc::sockaddr_ll; BATCH],
    count: usize,
}

impl Headers {
    fn new() -> Self {
        // SAFETY: needed because the types have no constructors. They consist of integers and pointers, for which zero
        // (null) is valid and means "no address, no control data".
        unsafe { Self { vectors: zeroed(), messages: zeroed(), addresses: zeroed(), count: 0 } }
    }

    fn push(&mut self, base: *mut u8, length: usize) {
        if self.count < BATCH {
            self.vectors[self.count] = libc::iovec { iov_base: base.cast(), iov_len: length };
            self.count += 1;
        }
    }

    /// Sets each message's pointer to its vector. `self` must not move until the call is over.
    fn link(&mut self) -> *mut libc::mmsghdr {
        for (message, vector) in self.messages.iter_mut().zip(&mut self.vectors).take(self.count) {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
        }
        self.messages.as_mut_ptr()
    }

    /// Requests the senders' addresses too.
    fn want_addresses(&mut self) {
        for (message, address) in self.messages.iter_mut().zip(&mut self.addresses).take(self.count) {
            message.msg_hdr.msg_name = ptr::from_mut(address).cast();
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        }
    }
}

/// Receives what has arrived, one frame per buffer, at most [`BATCH`], and describes the contents of each buffer in `arrivals`. Returns the number of
/// frames. An empty socket returns the error `WouldBlock`.
pub(super) fn receive_batch(
    socket: impl AsFd,
    buffers: &mut [FrameBuffer],
    arrivals: &mut [Arrival; BATCH],
) -> io::Result<usize> {
    let mut headers = Headers::new();
    for buffer in buffers {
        headers.push(buffer.as_mut_ptr(), buffer.len());
    }
    headers.want_addresses();
    let (count, messages) = (headers.count as libc::c_uint, headers.link());
    let (socket, flags) = (socket.as_fd().as_raw_fd(), libc::MSG_DONTWAIT as _);
    // SAFETY: needed because receiving a batch has no safe form. `messages` has `count` linked headers, each with one
    // vector that describes a whole buffer of `buffers`, exclusively borrowed through the call, and an address with its
    // size; `headers` does not move.
    let taken = unsafe { libc::recvmmsg(socket, messages, count, flags, ptr::null_mut()) };
    let taken = usize::try_from(taken).map_err(|_| io::Error::last_os_error())?;
    let received = headers.messages.iter().zip(&headers.addresses).take(taken);
    for (arrival, (message, address)) in arrivals.iter_mut().zip(received) {
        *arrival = Arrival {
            length: message.msg_len as usize,
            is_whole: message.msg_hdr.msg_flags & libc::MSG_TRUNC == 0,
            for_others: address.sll_pkttype == libc::PACKET_OTHERHOST,
        };
    }
    Ok(taken)
}

/// Sends these frames in order, at most [`BATCH`]. Returns the number that the kernel accepted. An error concerns the first frame.
pub(in crate::wires) fn send_batch<'b>(
    socket: impl AsFd,
    frames: impl Iterator<Item = &'b [u8]>,
) -> io::Result<usize> {
    let mut headers = Headers::new();
    for frame in frames {
        headers.push(frame.as_ptr().cast_mut(), frame.len());
    }
    let (count, messages) = (headers.count as libc::c_uint, headers.link());
    let (socket, flags) = (socket.as_fd().as_raw_fd(), libc::MSG_DONTWAIT as _);
    // SAFETY: needed because sending a batch has no safe form. `messages` has `count` linked headers, each with one
    // vector that describes a frame borrowed for 'b, which outlives the call; the kernel only reads the frames
    // (`iovec` has no const form), and `headers` does not move.
    let sent = unsafe { libc::sendmmsg(socket, messages, count, flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}
