//! News of interfaces, from the kernel: one netlink socket per network namespace, shared by all ports there. A port at an
//! interface of another namespace has inherited one of its own.
//!
//! The kernel says when a link goes down or comes back, when an interface comes, goes or changes its MTU. What it says is
//! not read: that there was something is reason enough to ask the interface itself, which cannot be out of date. So a message
//! that is lost because too many came at once is no loss.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

/// Multicast group of everything about interfaces (`RTMGRP_LINK`).
const LINKS: u32 = 1;

/// Ears for what becomes of the interfaces of this network namespace.
#[derive(Debug)]
pub(crate) struct LinkNews {
    socket: OwnedFd,
    /// How often there were news.
    count: AtomicU64,
}

impl LinkNews {
    /// Listen in the network namespace that this thread is in.
    pub(crate) fn listen() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // No protocol is the one of interfaces and routes.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, LINKS))?;
        Ok(Self { socket, count: AtomicU64::new(0) })
    }

    /// Take over such a socket that this process was started with: it listens where it was opened.
    pub(crate) fn inherited(socket: OwnedFd) -> Self {
        Self { socket, count: AtomicU64::new(0) }
    }

    /// A number that grows with every news. Takes what the kernel has said; does not wait.
    pub(crate) fn count(&self) -> u64 {
        let mut message = [0; 64];
        loop {
            match recv(&self.socket, &mut message, RecvFlags::DONTWAIT) {
                // Only the beginning of a message is taken, and the kernel throws away the rest; so much came at once that
                // it threw away whole ones.
                Ok(_) | Err(Errno::NOBUFS) => self.count.fetch_add(1, Ordering::Relaxed),
                Err(Errno::INTR) => continue,
                Err(_) => return self.count.load(Ordering::Relaxed),
            };
        }
    }

    /// Becomes readable when there are news.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
