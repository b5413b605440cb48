//! Sockets of a link to another machine: a connected one, and a second one, the *foreign socket*, that counts foreign datagrams.
//!
//! The kernel passes a datagram to the connected socket if it comes from the neighbour's address and port, and otherwise to a socket that is bound to
//! the same port and not connected. The data path is therefore not affected by foreign datagrams, and all of them are counted, including those that
//! found no space in the buffer of the foreign socket. The core detects a forged neighbour address, as on every wire.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::net::{
    AddressFamily, RecvFlags, SocketFlags, SocketType, bind, connect, recv, socket_with, sockopt,
};

use super::socket::drops;
use crate::wires::socket::set_receive_buffer;

/// Size of the headers before every datagram, in bytes: IPv4 and UDP.
pub(super) const HEADERS_BYTES: usize = 28;
/// Receive buffer of the foreign socket, in bytes. The kernel counts the datagrams that do not fit.
const FOREIGN_BUFFER_BYTES: usize = 16 << 10;

/// Receives datagrams that stations other than the neighbour send to a port.
#[derive(Debug)]
pub(super) struct ForeignDatagrams {
    socket: OwnedFd,
    /// Number of datagrams that have been read.
    seen: AtomicU64,
}

impl ForeignDatagrams {
    /// Takes over an inherited socket.
    pub(super) const fn inherited(socket: OwnedFd) -> Self {
        Self { socket, seen: AtomicU64::new(0) }
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Returns the number of foreign datagrams so far.
    pub(super) fn refused(&self) -> u64 {
        let mut nothing = [0; 1];
        while recv(&self.socket, &mut nothing, RecvFlags::DONTWAIT).is_ok() {
            self.seen.fetch_add(1, Ordering::Relaxed);
        }
        self.seen.load(Ordering::Relaxed) + drops(&self.socket)
    }
}

/// Opens a socket at `mine` that receives from `theirs` only, and its foreign socket. Refuses a port that is in use.
pub(super) fn routed(mine: SocketAddrV4, theirs: SocketAddrV4) -> io::Result<(OwnedFd, ForeignDatagrams)> {
    let open = || {
        socket_with(
            AddressFamily::INET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )
    };
    let (socket, foreign) = (open()?, open()?);
    // The first bind is exclusive, so that another rack's port is not shared by mistake.
    bind(&socket, &mine)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseaddr(&foreign, true)?;
    set_receive_buffer(&foreign, FOREIGN_BUFFER_BYTES)?;
    connect(&socket, &theirs)?;
    bind(&foreign, &mine)?;
    sockopt::set_socket_reuseaddr(&socket, false)?;
    sockopt::set_socket_reuseaddr(&foreign, false)?;
    Ok((socket, ForeignDatagrams::inherited(foreign)))
}

/// Returns the size in bytes of the largest packet on the path to the peer of a connected socket.
pub(super) fn path_mtu(socket: &OwnedFd) -> io::Result<usize> {
    let mut mtu: libc::c_int = 0;
    let mut length = size_of_val(&mtu) as libc::socklen_t;
    // SAFETY: needed because this option has no safe form. The kernel writes at most `length` bytes into `mtu`, which exists through the call.
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
        let mut datagram = vec![0; 100];
        let (length, _) = recv(socket, &mut datagram[..], RecvFlags::DONTWAIT).ok()?;
        datagram.truncate(length);
        Some(datagram)
    }

    #[test]
    fn refusals_are_accepted_only_where_no_other_host_can_forge_them() {
        use crate::wires::Device;
        use crate::wires::udp::{Route, Settings, create_routed};
        use rackloom_protocol::{CreditConfig, Instant};
        let credits = CreditConfig { unit_bytes: 256, overhead_bytes: 1024, limit: 480 };
        for accepts_refusals in [true, false] {
            let neighbour = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let address = |socket: &UdpSocket| {
                SocketAddrV4::new(Ipv4Addr::LOCALHOST, socket.local_addr().unwrap().port())
            };
            let route = Route { mine: address(&free), theirs: address(&neighbour) };
            drop(free);
            let device = create_routed(&route).unwrap();
            let device = device.open(&Settings { frame_bytes_max: 1514, credits }).unwrap();
            let mut device = if accepts_refusals { device } else { device.ignoring_refusals() };
            neighbour.send_to(&[1; 60], route.mine).unwrap();
            let lease = device.receive().unwrap();
            device.release(lease);
            assert!(device.carrier());
            // From now on the kernel refuses datagrams to this port. A forged ICMP message would have the same effect.
            drop(neighbour);
            for _ in 0..20 {
                device.slot().unwrap()[..60].fill(2);
                device.commit(60, true);
                device.flush(Instant::ZERO);
                let _ = device.receive();
            }
            assert_eq!(device.carrier(), !accepts_refusals);
        }
    }

    /// A refusal stays with the device until the carrier is polled. The neighbour may have started by then.
    #[test]
    fn a_refusal_before_the_first_frame_is_no_loss_of_the_neighbour() {
        use crate::wires::Device;
        use crate::wires::udp::{Route, Settings, create_routed};
        use rackloom_protocol::{CreditConfig, Instant};
        let credits = CreditConfig { unit_bytes: 256, overhead_bytes: 1024, limit: 480 };
        for notes_it_when_it_sends in [true, false] {
            let [mine, theirs] =
                [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap());
            let address = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
            let route = Route { mine: address(mine.port()), theirs: address(theirs.port()) };
            let device = create_routed(&route).unwrap();
            let mut device = device.open(&Settings { frame_bytes_max: 1514, credits }).unwrap();
            for _ in 0..if notes_it_when_it_sends { 2 } else { 1 } {
                device.slot().unwrap()[..60].fill(2);
                device.commit(60, true);
                device.flush(Instant::ZERO);
            }
            assert!(device.receive().is_none());
            let neighbour = UdpSocket::bind(route.theirs).unwrap();
            neighbour.send_to(&[1; 60], route.mine).unwrap();
            let lease = (0..2).find_map(|_| device.receive()).expect("the frame has arrived");
            device.release(lease);
            assert!(device.carrier(), "the neighbour has answered");
        }
    }

    #[test]
    fn frames_of_the_neighbour_are_received_and_others_are_counted() {
        let neighbour = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address =
            |socket: &UdpSocket| SocketAddrV4::new(Ipv4Addr::LOCALHOST, socket.local_addr().unwrap().port());
        let mine = address(&free);
        let taken = routed(mine, address(&neighbour)).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(free);

        let (socket, counter) = routed(mine, address(&neighbour)).unwrap();
        assert!(routed(mine, address(&neighbour)).is_err(), "and is ours alone from then on");
        let foreign = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert_eq!(counter.refused(), 0);
        for _ in 0..1000 {
            foreign.send_to(&[1; 90], mine).unwrap();
        }
        neighbour.send_to(b"it is me", mine).unwrap();
        assert_eq!(receive(&socket).as_deref(), Some(&b"it is me"[..]));
        assert_eq!(receive(&socket), None);
        assert_eq!(counter.refused(), 1000, "those beyond the buffer included");
        foreign.send_to(&[1; 90], mine).unwrap();
        assert_eq!(counter.refused(), 1001);
        assert!(path_mtu(&socket).unwrap() > 1500);
    }
}
