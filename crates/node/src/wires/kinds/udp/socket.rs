//! Datagram sockets and their batches: only the system calls of the UDP wire.
//!
//! A message may be large. With [`Headers::cut`] the kernel cuts a sent buffer into datagrams of one length. With [`join_received`] it delivers such
//! datagrams joined, and reports the length of the pieces.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, getsockname, socket_with};

use crate::wires::socket::set_option;

/// Maximum number of messages per system call.
pub(super) const BATCH: usize = 16;
/// Space for one control message with an integer, in bytes.
const CONTROL_BYTES: usize = 24;

/// Opens a pair of sockets on the loopback interface that receive only from each other.
pub(super) fn connected_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let open = || -> io::Result<(OwnedFd, SocketAddrV4)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        let address = SocketAddrV4::try_from(getsockname(&socket)?)?;
        Ok((socket, address))
    };
    let ((a, a_address), (b, b_address)) = (open()?, open()?);
    connect(&a, &b_address)?;
    connect(&b, &a_address)?;
    Ok((a, b))
}

/// Lets the kernel deliver joined the datagrams that were sent as one buffer, or that arrived close together.
pub(super) fn join_received(socket: &OwnedFd) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 1 as libc::c_int)
}

/// Returns the number of datagrams that did not fit into the receive buffer.
pub(super) fn drops(socket: impl AsFd) -> u64 {
    let mut numbers = [0_u32; libc::SK_MEMINFO_DROPS as usize + 1];
    let mut length = size_of_val(&numbers) as libc::socklen_t;
    // SAFETY: needed because this option has no safe form. The kernel writes at most `length` bytes into `numbers`, which exists through the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            ptr::from_mut(&mut numbers).cast(),
            &raw mut length,
        )
    };
    if result < 0 { 0 } else { u64::from(numbers[libc::SK_MEMINFO_DROPS as usize]) }
}

/// Control data of one message, aligned as the kernel requires.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_BYTES]);

/// Headers of one batch, on the stack. Their pointers into frames are only valid during one call.
pub(super) struct Headers {
    vectors: [libc::iovec; BATCH],
    messages: [libc::mmsghdr; BATCH],
    controls: [Control; BATCH],
    count: usize,
}

/// One received message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    /// Length of the message, in bytes.
    pub(super) length: usize,
    /// Length of the datagrams in the message, in bytes. The last may be shorter. `None` if the message is one datagram.
    pub(super) piece_bytes: Option<usize>,
    /// Set if nothing was cut off.
    pub(super) is_whole: bool,
}

impl Headers {
    fn new() -> Self {
        // SAFETY: needed because the types have no constructors. They consist of integers and pointers, for which zero
        // (null) is valid and means "no address, no control data".
        unsafe {
            Self {
                vectors: zeroed(),
                messages: zeroed(),
                controls: [Control([0; CONTROL_BYTES]); BATCH],
                count: 0,
            }
        }
    }

    fn push(&mut self, base: *mut u8, length: usize) {
        self.vectors[self.count] = libc::iovec { iov_base: base.cast(), iov_len: length };
        self.count += 1;
    }

    /// Cuts the message pushed last into datagrams of `piece_bytes` bytes.
    fn cut(&mut self, piece_bytes: u16) {
        let index = self.count - 1;
        let control = &mut self.controls[index].0;
        // SAFETY: needed because these only compute sizes from a length, and are marked as they are for const contexts.
        let (used, space) = unsafe { (libc::CMSG_LEN(2), libc::CMSG_SPACE(2)) };
        let header =
            libc::cmsghdr { cmsg_len: used as _, cmsg_level: libc::SOL_UDP, cmsg_type: libc::UDP_SEGMENT };
        // SAFETY: needed because control data has no safe form. The buffer is aligned as the header is, and both the header and the two bytes after
        // it lie within its 24 bytes.
        unsafe {
            ptr::write(control.as_mut_ptr().cast(), header);
            ptr::write_unaligned(control.as_mut_ptr().add(used as usize - 2).cast(), piece_bytes);
        }
        self.messages[index].msg_hdr.msg_controllen = space as _;
    }

    /// Sets each message's pointers to its vector and control data. `self` must not move until the call is over.
    fn link(&mut self) -> *mut libc::mmsghdr {
        let parts = self.messages.iter_mut().zip(&mut self.vectors).zip(&mut self.controls);
        for ((message, vector), control) in parts.take(self.count) {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            if message.msg_hdr.msg_controllen > 0 {
                message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            }
        }
        self.messages.as_mut_ptr()
    }

    /// Returns the length in bytes of the pieces that the kernel has joined, or `None` if it has not joined any.
    fn pieces(&self, index: usize) -> Option<usize> {
        // SAFETY: needed because this only computes a size from a length.
        let used = unsafe { libc::CMSG_LEN(size_of::<libc::c_int>() as u32) } as usize;
        if self.messages[index].msg_hdr.msg_controllen < used as _ {
            return None;
        }
        let control = &self.controls[index].0;
        // SAFETY: needed because control data has no safe form. Header and integer lie within the 24 bytes, which are
        // initialised and aligned, and every bit pattern is a valid integer.
        let (header, value) = unsafe {
            let value = control.as_ptr().add(used - size_of::<libc::c_int>()).cast::<libc::c_int>();
            (ptr::read(control.as_ptr().cast::<libc::cmsghdr>()), ptr::read_unaligned(value))
        };
        let is_ours = header.cmsg_level == libc::SOL_UDP && header.cmsg_type == libc::UDP_GRO;
        usize::try_from(value).ok().filter(|bytes| is_ours && *bytes > 0)
    }
}

/// Receives what has arrived, a message per buffer, at most [`BATCH`], and describes the contents of each buffer in `messages`. Returns the number of
/// messages. An empty socket returns the error `WouldBlock`.
pub(super) fn receive_batch<'b>(
    socket: impl AsFd,
    buffers: impl Iterator<Item = &'b mut [u8]>,
    messages: &mut [Message; BATCH],
) -> io::Result<usize> {
    let mut headers = Headers::new();
    for buffer in buffers.take(BATCH) {
        headers.messages[headers.count].msg_hdr.msg_controllen = CONTROL_BYTES as _;
        headers.push(buffer.as_mut_ptr(), buffer.len());
    }
    let (count, pointer) = (headers.count as libc::c_uint, headers.link());
    let (socket, flags) = (socket.as_fd().as_raw_fd(), libc::MSG_DONTWAIT as _);
    // SAFETY: needed because receiving a batch has no safe form. There are `count` linked headers, each with one vector
    // that describes a whole buffer, exclusively borrowed for 'b and so through the call, and control data with its size;
    // `headers` does not move.
    let taken = unsafe { libc::recvmmsg(socket, pointer, count, flags, ptr::null_mut()) };
    let taken = usize::try_from(taken).map_err(|_| io::Error::last_os_error())?;
    for (index, message) in messages.iter_mut().enumerate().take(taken) {
        let header = &headers.messages[index];
        *message = Message {
            length: header.msg_len as usize,
            piece_bytes: headers.pieces(index),
            is_whole: header.msg_hdr.msg_flags & libc::MSG_TRUNC == 0,
        };
    }
    Ok(taken)
}

/// Sends these messages in order, at most [`BATCH`], each whole or cut into datagrams of the length given with it. Returns the number that the kernel
/// accepted. An error concerns the first message.
pub(super) fn send_batch<'b>(
    socket: impl AsFd,
    messages: impl Iterator<Item = (&'b [u8], Option<u16>)>,
) -> io::Result<usize> {
    let mut headers = Headers::new();
    for (bytes, piece_bytes) in messages.take(BATCH) {
        headers.push(bytes.as_ptr().cast_mut(), bytes.len());
        if let Some(piece_bytes) = piece_bytes {
            headers.cut(piece_bytes);
        }
    }
    let (count, pointer) = (headers.count as libc::c_uint, headers.link());
    let (socket, flags) = (socket.as_fd().as_raw_fd(), libc::MSG_DONTWAIT as _);
    // SAFETY: needed because sending a batch has no safe form. There are `count` linked headers, each with one vector that
    // describes bytes borrowed for 'b, which outlives the call; the kernel only reads them (`iovec` has no const form), and
    // `headers` does not move.
    let sent = unsafe { libc::sendmmsg(socket, pointer, count, flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(socket: &OwnedFd, bytes: &[u8]) {
        assert_eq!(send_batch(socket, [(bytes, None)].into_iter()).unwrap(), 1);
    }

    fn receive(socket: &OwnedFd) -> Option<(usize, [u8; 64])> {
        let (mut buffer, mut messages) = ([0; 64], [Message::default(); BATCH]);
        let taken = receive_batch(socket, [&mut buffer[..]].into_iter(), &mut messages).unwrap_or(0);
        (taken > 0).then_some((messages[0].length, buffer))
    }

    #[test]
    fn the_kernel_drops_frames_of_an_unknown_sender() {
        let (local, remote) = connected_pair().unwrap();
        let (foreign, _other) = connected_pair().unwrap();
        let address = SocketAddrV4::try_from(getsockname(&remote).unwrap()).unwrap();
        connect(&foreign, &address).unwrap();
        send(&foreign, b"let me in");
        send(&local, b"it is me");
        let (length, bytes) = receive(&remote).expect("the neighbour's");
        assert_eq!(&bytes[..length], b"it is me");
        assert_eq!(receive(&remote), None);
    }

    #[test]
    fn the_end_of_the_neighbours_socket_is_an_error_and_no_wait() {
        let (local, remote) = connected_pair().unwrap();
        drop(remote);
        send(&local, b"a datagram");
        let refused = send_batch(&local, [(&b"hello?"[..], None)].into_iter()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
