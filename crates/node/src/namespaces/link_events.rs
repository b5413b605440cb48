//! Notifications about interfaces from the kernel: one netlink socket per network namespace, shared by all ports there. A port at an interface of
//! another namespace inherits a socket of its own.
//!
//! The kernel sends a message when a link goes down or up, and when an interface appears, disappears or changes its MTU. The contents are not read.
//! Each message only causes a query of the interface, whose result cannot be out of date. A message that is lost because too many arrived at once
//! therefore does no harm.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

/// Multicast group of all messages about interfaces (`RTMGRP_LINK`).
const LINKS: u32 = 1;

/// Receiver of notifications about the interfaces of this network namespace.
#[derive(Debug)]
pub(crate) struct LinkEvents {
    socket: OwnedFd,
    /// Number of notifications so far.
    count: AtomicU64,
}

impl LinkEvents {
    /// Opens a socket in the network namespace of this thread.
    pub(crate) fn listen() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // The default protocol is that of interfaces and routes.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, LINKS))?;
        Ok(Self { socket, count: AtomicU64::new(0) })
    }

    /// Takes over an inherited socket. It receives notifications of the namespace in which it was opened.
    pub(crate) fn inherited(socket: OwnedFd) -> Self {
        Self { socket, count: AtomicU64::new(0) }
    }

    /// Returns the number of notifications so far, which grows with every notification. Reads the pending messages and does not wait.
    pub(crate) fn count(&self) -> u64 {
        let mut message = [0; 64];
        loop {
            match recv(&self.socket, &mut message, RecvFlags::DONTWAIT) {
                // Only the start of a message is read, and the kernel discards the rest. `NOBUFS` means that so many messages arrived at once that
                // the kernel discarded whole ones.
                Ok(_) | Err(Errno::NOBUFS) => self.count.fetch_add(1, Ordering::Relaxed),
                Err(Errno::INTR) => continue,
                Err(_) => return self.count.load(Ordering::Relaxed),
            };
        }
    }

    /// Returns a descriptor that becomes readable when there are notifications.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
