//! Raw packet sockets and their batches: the system calls of the packet wire, and nothing else.
//!
//! A receiving socket is bound to an interface and to one EtherType, so the kernel filters for us and our own frames
//! never come back. A sending socket is bound to the interface with protocol 0, so it receives nothing. Both never
//! block. Batches of up to [`BATCH`] frames share one system call, which is what a frame costs most.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Most frames per system call.
pub(super) const BATCH: usize = 32;

/// What a receiving socket asks the kernel to keep for it; the kernel may grant less.
const RECEIVE_BUFFER_BYTES: libc::c_int = 8 << 20;

/// A buffer that holds one frame of any size.
pub(super) type FrameBuffer = Box<[u8; super::FRAME_BYTES_MAX]>;

/// One received frame: how long it was, or that it did not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// Length of the frame in its buffer.
    Whole(usize),
    /// Longer than the buffer; only its beginning is there.
    Cut,
}

/// A socket that hears frames of one EtherType on one interface.
pub(super) fn open_receiver(interface_index: u32, ether_type: u16) -> io::Result<OwnedFd> {
    let socket = open_bound(interface_index, ether_type)?;
    // More than the system's limit needs a right that only real root has; the plain option is cut to the limit.
    if set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES).is_err() {
        set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BUFFER_BYTES)?;
    }
    Ok(socket)
}

/// A socket that only sends on one interface.
pub(super) fn open_sender(interface_index: u32) -> io::Result<OwnedFd> {
    open_bound(interface_index, 0)
}

/// The socket is born with protocol 0 and hears nothing before it is bound, so no foreign frame slips in between.
fn open_bound(interface_index: u32, ether_type: u16) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
    // SAFETY: needed because the type has no constructor. It consists of integers, for which zero is valid.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = ether_type.to_be();
    address.sll_ifindex = libc::c_int::try_from(interface_index).map_err(|_| io::ErrorKind::InvalidInput)?;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: needed because this kind of address has no safe form. The pointer and the length describe `address`,
    // which the kernel only reads during the call.
    let result = unsafe { libc::bind(socket.as_raw_fd(), ptr::from_ref(&address).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

fn set_option(
    socket: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: needed because these options have no safe form. The pointer and the length describe `value`, which the
    // kernel only reads during the call.
    let result = unsafe {
        libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, ptr::from_ref(&value).cast(), length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Frames that the kernel dropped for lack of room since this was last asked.
pub(super) fn take_kernel_drops(socket: impl AsFd) -> u64 {
    // SAFETY: needed because the type has no constructor. It consists of integers, for which zero is valid.
    let mut statistics: libc::tpacket_stats = unsafe { zeroed() };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: needed because this option has no safe form. The kernel writes at most `length` bytes into
    // `statistics`, which lives through the call.
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

/// Headers of one batch, on the stack: pointers into frames that are only valid during one call.
struct Headers {
    vectors: [libc::iovec; BATCH],
    messages: [libc::mmsghdr; BATCH],
    count: usize,
}

impl Headers {
    fn new() -> Self {
        // SAFETY: needed because the types have no constructors. They consist of integers and pointers, for which zero
        // (null) is valid and means "no address, no control data".
        unsafe { Self { vectors: zeroed(), messages: zeroed(), count: 0 } }
    }

    fn push(&mut self, base: *mut u8, length: usize) {
        if self.count < BATCH {
            self.vectors[self.count] = libc::iovec { iov_base: base.cast(), iov_len: length };
            self.count += 1;
        }
    }

    /// Point the messages at their vectors; `self` must not move until the call is over.
    fn link(&mut self) -> *mut libc::mmsghdr {
        for (message, vector) in self.messages.iter_mut().zip(&mut self.vectors).take(self.count) {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
        }
        self.messages.as_mut_ptr()
    }
}

/// Take what has arrived, one frame per buffer, at most [`BATCH`], and write down what each buffer got. Returns how
/// many frames there were; an empty socket is `WouldBlock`.
pub(super) fn receive_batch(
    socket: impl AsFd,
    buffers: &mut [FrameBuffer],
    outcomes: &mut [Received; BATCH],
) -> io::Result<usize> {
    let mut headers = Headers::new();
    for buffer in buffers {
        headers.push(buffer.as_mut_ptr(), buffer.len());
    }
    let (count, messages) = (headers.count as libc::c_uint, headers.link());
    let (socket, flags) = (socket.as_fd().as_raw_fd(), libc::MSG_DONTWAIT as _);
    // SAFETY: needed because receiving a batch has no safe form. `messages` has `count` linked headers, each with one
    // vector that describes a whole buffer of `buffers`, exclusively borrowed through the call; `headers` stays put.
    let taken = unsafe { libc::recvmmsg(socket, messages, count, flags, ptr::null_mut()) };
    let taken = usize::try_from(taken).map_err(|_| io::Error::last_os_error())?;
    for (outcome, message) in outcomes.iter_mut().zip(&headers.messages).take(taken) {
        let cut = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
        *outcome = if cut { Received::Cut } else { Received::Whole(message.msg_len as usize) };
    }
    Ok(taken)
}

/// Send these frames in order, at most [`BATCH`]. Returns how many the kernel took; an error concerns the first.
pub(super) fn send_batch<'b>(socket: impl AsFd, frames: impl Iterator<Item = &'b [u8]>) -> io::Result<usize> {
    let mut headers = Headers::new();
    for frame in frames {
        headers.push(frame.as_ptr().cast_mut(), frame.len());
    }
    let (count, messages) = (headers.count as libc::c_uint, headers.link());
    let (socket, flags) = (socket.as_fd().as_raw_fd(), libc::MSG_DONTWAIT as _);
    // SAFETY: needed because sending a batch has no safe form. `messages` has `count` linked headers, each with one
    // vector that describes a frame borrowed for 'b, which outlives the call; the kernel only reads the frames
    // (`iovec` has no const form), and `headers` stays put.
    let sent = unsafe { libc::sendmmsg(socket, messages, count, flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}
