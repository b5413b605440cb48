//! Sockets of a link to another machine: a connected one, and a doorman who counts strangers.
//!
//! The kernel hands a datagram to the connected socket if it comes from the neighbour's address and port, and else to a socket
//! that is bound to the same port and connected to nobody: the doorman. So the way of our own frames knows nothing of strangers,
//! and they are counted all the same, those that found no room with him included. Who forges the neighbour's address is
//! the core's matter, as on every wire.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::net::{
    AddressFamily, RecvFlags, SocketFlags, SocketType, bind, connect, recv, socket_with, sockopt,
};

use super::socket::set_receive_buffer;
use super::udp_socket::drops;

/// Headers in front of every datagram: IPv4 and UDP.
pub(super) const HEADERS_BYTES: usize = 28;
/// What the doorman keeps until somebody asks; the rest is counted by the kernel.
const DOORMAN_BUFFER_BYTES: usize = 16 << 10;

/// Hears what comes to a port from others than the neighbour.
#[derive(Debug)]
pub(super) struct Doorman {
    socket: OwnedFd,
    /// Those that have been looked at.
    seen: AtomicU64,
}

impl Doorman {
    /// One that this process was started with.
    pub(super) const fn inherited(socket: OwnedFd) -> Self {
        Self { socket, seen: AtomicU64::new(0) }
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// How many datagrams of strangers have come so far.
    pub(super) fn turned_away(&self) -> u64 {
        let mut nothing = [0; 1];
        while recv(&self.socket, &mut nothing, RecvFlags::DONTWAIT).is_ok() {
            self.seen.fetch_add(1, Ordering::Relaxed);
        }
        self.seen.load(Ordering::Relaxed) + drops(&self.socket)
    }
}

/// A socket at `mine` that hears `theirs` alone, and its doorman. A port that somebody has is refused.
pub(super) fn routed(mine: SocketAddrV4, theirs: SocketAddrV4) -> io::Result<(OwnedFd, Doorman)> {
    let open = || {
        socket_with(
            AddressFamily::INET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )
    };
    let (socket, doorman) = (open()?, open()?);
    // Alone at first, so that another rack's port is not shared by mistake.
    bind(&socket, &mine)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseaddr(&doorman, true)?;
    set_receive_buffer(&doorman, DOORMAN_BUFFER_BYTES)?;
    connect(&socket, &theirs)?;
    bind(&doorman, &mine)?;
    sockopt::set_socket_reuseaddr(&socket, false)?;
    sockopt::set_socket_reuseaddr(&doorman, false)?;
    Ok((socket, Doorman::inherited(doorman)))
}

/// Largest packet on the way to where a socket is connected.
pub(super) fn path_mtu(socket: &OwnedFd) -> io::Result<usize> {
    let mut mtu: libc::c_int = 0;
    let mut length = size_of_val(&mtu) as libc::socklen_t;
    // SAFETY: needed because this option has no safe form. The kernel writes at most `length` bytes into `mtu`, which lives
    // through the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_MTU,
            ptr::from_mut(&mut mtu).cast(),
            &raw mut length,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(usize::try_from(mtu).unwrap_or(0)) }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;

    fn receive(socket: &OwnedFd) -> Option<Vec<u8>> {
        let mut room = vec![0; 100];
        let (length, _) = recv(socket, &mut room[..], RecvFlags::DONTWAIT).ok()?;
        room.truncate(length);
        Some(room)
    }

    #[test]
    fn refusals_are_believed_only_where_nobody_can_forge_them() {
        use crate::wires::Device;
        use crate::wires::udp::{Route, Settings, create_routed};
        use rackloom_protocol::{CreditConfig, Instant};
        let credits = CreditConfig { unit_bytes: 256, overhead_bytes: 1024, limit: 480 };
        for is_believed in [true, false] {
            let neighbour = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let address = |socket: &UdpSocket| {
                SocketAddrV4::new(Ipv4Addr::LOCALHOST, socket.local_addr().unwrap().port())
            };
            let route = Route { mine: address(&free), theirs: address(&neighbour) };
            drop(free);
            let device = create_routed(&route).unwrap();
            let device = device.open(&Settings { frame_bytes_max: 1514, credits }).unwrap();
            let mut device = if is_believed { device } else { device.without_refusals() };
            neighbour.send_to(&[1; 60], route.mine).unwrap();
            let lease = device.receive().unwrap();
            device.release(lease);
            assert!(device.carrier());
            // From now on the kernel refuses what is sent there, as a forged message of the network would say.
            drop(neighbour);
            for _ in 0..20 {
                device.slot().unwrap()[..60].fill(2);
                device.commit(60, true);
                device.flush(Instant::ZERO);
                let _ = device.receive();
            }
            assert_eq!(device.carrier(), !is_believed);
        }
    }

    #[test]
    fn the_neighbour_is_heard_and_strangers_are_counted() {
        let neighbour = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address =
            |socket: &UdpSocket| SocketAddrV4::new(Ipv4Addr::LOCALHOST, socket.local_addr().unwrap().port());
        let mine = address(&free);
        let taken = routed(mine, address(&neighbour)).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(free);

        let (socket, doorman) = routed(mine, address(&neighbour)).unwrap();
        assert!(routed(mine, address(&neighbour)).is_err(), "and is ours alone from then on");
        let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert_eq!(doorman.turned_away(), 0);
        for _ in 0..1000 {
            stranger.send_to(&[1; 90], mine).unwrap();
        }
        neighbour.send_to(b"it is me", mine).unwrap();
        assert_eq!(receive(&socket).as_deref(), Some(&b"it is me"[..]));
        assert_eq!(receive(&socket), None);
        assert_eq!(doorman.turned_away(), 1000, "those without room included");
        stranger.send_to(&[1; 90], mine).unwrap();
        assert_eq!(doorman.turned_away(), 1001);
        assert!(path_mtu(&socket).unwrap() > 1500);
    }
}
