//! The local socket of an export: its address, the credentials of its other end, and the descriptors that it carries.
//!
//! One connection is one import: it opens with a request and stays open while the mapping exists. When a process ends, in any manner, the
//! kernel removes its mappings first and then closes its descriptors. So the end of a connection proves the end of the mapping.
//!
//! The socket has a name in the rack's private run directory, because a name is reachable from every network namespace of the host (an
//! abstract name is not), and because the credentials of a *named* connection are those of the two processes and not those of the process
//! that made a socket pair.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rackloom_protocol::NodeId;
use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, chmod, unlink};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, recvmsg,
    sendmsg, socket_with,
};

/// Largest number of descriptors of one message: region, control page, doorbell.
pub(super) const DESCRIPTORS_MAX: usize = 3;
const BACKLOG: i32 = 128;

/// Process and user at the other end, as reported by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) process: u32,
    pub(super) user: u32,
}

/// Returns the path of the socket on which the owner of `node`'s memory listens.
pub(super) fn address(directory: &Path, node: NodeId) -> PathBuf {
    directory.join(format!("memory-{}.sock", node.0))
}

/// Listens at a path. Removes the socket of a dead process. A socket of a live process is an error.
pub(super) fn listen_at(path: &Path) -> io::Result<OwnedFd> {
    let name = name_of(path)?;
    let listener = new_socket()?;
    if let Err(cause) = bind(&listener, &name) {
        if cause != Errno::ADDRINUSE || connect(new_socket()?, &name) != Err(Errno::CONNREFUSED) {
            return Err(io::Error::from(cause));
        }
        unlink(path)?;
        bind(&listener, &name)?;
    }
    chmod(path, Mode::RUSR | Mode::WUSR)?;
    listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// Connects to a path without blocking.
pub(super) fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let socket = new_socket()?;
    connect(&socket, &name_of(path)?)?;
    Ok(socket)
}

fn new_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

fn name_of(path: &Path) -> io::Result<SocketAddrUnix> {
    SocketAddrUnix::new(path).map_err(|cause| {
        let text = format!("{}: {cause}; hint: a run directory with a shorter name", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, text)
    })
}

/// Returns the credentials of the other end: of the process that connected, or of the process that listened.
pub(super) fn credentials(socket: BorrowedFd<'_>) -> io::Result<Credentials> {
    let mut found = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: needed because the safe form takes a process number of 0 (a peer outside of our process namespace) for
    // impossible. The kernel writes at most `length` bytes into `found`, all of whose bit patterns are valid.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Credentials { process: u32::try_from(found.pid).unwrap_or(0), user: found.uid })
}

/// Sends one message, whole or not at all.
pub(super) fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::INVAL.into());
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags)?;
    Ok(())
}

/// Receives one message with its descriptors. A longer message is cut to the buffer and is then not valid.
pub(super) fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut ancillary, flags)?;
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok((received.bytes, descriptors))
}

/// Returns `true` if the other end of a connection is closed.
pub(super) fn is_gone(socket: BorrowedFd<'_>) -> bool {
    wait(&[socket], PollFlags::empty(), 0).contains(&true)
}

/// Waits at most `timeout_ns` for one of the flags or for the end of a connection. Returns the sockets with an event.
pub(super) fn wait(sockets: &[BorrowedFd<'_>], flags: PollFlags, timeout_ns: u64) -> Vec<bool> {
    let mut polled: Vec<PollFd<'_>> =
        sockets.iter().map(|socket| PollFd::from_borrowed_fd(socket.as_fd(), flags)).collect();
    let timeout: Timespec = crate::clock::timespec(timeout_ns);
    // After an interruption or a timeout no socket has an event. The caller has a deadline of its own.
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) => polled.iter().map(|one| !one.revents().is_empty()).collect(),
        Err(_) => vec![false; sockets.len()],
    }
}
