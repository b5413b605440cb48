//! Socket options that have no safe form elsewhere, for packet sockets and datagram sockets.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

/// Sets an option whose value is plain data of the kernel: an integer, or a structure of integers.
pub(crate) fn set_option<T: Copy>(
    socket: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: T,
) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: needed because these options have no safe form. The pointer and the length describe `value`, which the
    // kernel only reads during the call.
    let result = unsafe {
        libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, ptr::from_ref(&value).cast(), length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Requests a receive buffer of this size in bytes as the kernel counts them: twice the option's value. More than the system's limit needs a right
/// that only real root has. Without it the kernel cuts the size to the limit. Returns the granted size.
pub(crate) fn set_receive_buffer(socket: &OwnedFd, bytes: usize) -> io::Result<usize> {
    let half = libc::c_int::try_from(bytes.div_ceil(2)).unwrap_or(libc::c_int::MAX);
    if set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, half).is_err() {
        set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, half)?;
    }
    Ok(rustix::net::sockopt::socket_recv_buffer_size(socket)?)
}

/// Returns whether a process holds the other end of a connected pair that carries no data.
pub(super) fn has_peer(socket: &OwnedFd) -> bool {
    let mut byte = [0; 1];
    match recv(socket, &mut byte, RecvFlags::DONTWAIT | RecvFlags::PEEK) {
        Ok((0, _)) => false,
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => true,
        Err(_) => false,
    }
}
