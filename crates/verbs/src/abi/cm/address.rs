//! Addresses of C: those of seats are IPv4 addresses, plain or in the form of IPv6.

use core::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustix::io::Errno;

use crate::engine::{ip_of, node_at_ip};
use crate::layout::connection::Storage;

/// Address family of IPv4.
pub(super) const IPV4: c_int = libc::AF_INET;
/// Address family of IPv6.
pub(super) const IPV6: c_int = libc::AF_INET6;

/// Meaning of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Any address of the own seat.
    Any,
    /// The own seat.
    Own,
    /// Port of a seat, by the number of its node.
    Node(u32),
    /// No seat has the address.
    Unknown,
}

/// Address with a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) is_ipv6: bool,
    pub(super) place: Place,
    pub(super) port: u16,
}

/// Reads an address.
///
/// # Errors
/// `EINVAL` for null, `EAFNOSUPPORT` for a family other than IPv4 and IPv6.
///
/// # Safety
/// A pointer that is not null points to an address of the length that its family has.
pub(super) unsafe fn read(address: *const libc::sockaddr) -> Result<Address, Errno> {
    if address.is_null() {
        return Err(Errno::INVAL);
    }
    // SAFETY: needed because the pointer comes from C. The family says which structure is there, and reads need no alignment.
    let (ip, port) = unsafe {
        match c_int::from((&raw const (*address).sa_family).read_unaligned()) {
            IPV4 => {
                let address = address.cast::<libc::sockaddr_in>().read_unaligned();
                (IpAddr::V4(u32::from_be(address.sin_addr.s_addr).into()), address.sin_port)
            }
            IPV6 => {
                let address = address.cast::<libc::sockaddr_in6>().read_unaligned();
                (IpAddr::V6(address.sin6_addr.s6_addr.into()), address.sin6_port)
            }
            _ => return Err(Errno::AFNOSUPPORT),
        }
    };
    Ok(Address { is_ipv6: ip.is_ipv6(), place: place(ip), port: u16::from_be(port) })
}

/// Returns the meaning of an address.
fn place(ip: IpAddr) -> Place {
    let ip = match ip {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => return Place::Any,
        IpAddr::V6(Ipv6Addr::LOCALHOST) => return Place::Own,
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) => ip,
            None => return Place::Unknown,
        },
        IpAddr::V4(ip) => ip,
    };
    if ip.is_unspecified() {
        Place::Any
    } else if ip.is_loopback() {
        Place::Own
    } else {
        node_at_ip(ip).map_or(Place::Unknown, Place::Node)
    }
}

/// Returns the address of a node, or the one that stands for any, in the form of C.
pub(super) fn storage(is_ipv6: bool, node: Option<u32>, port: u16) -> Storage {
    let ip = node.map_or(Ipv4Addr::UNSPECIFIED, ip_of);
    let mut bytes = [0; 128];
    bytes[2..4].copy_from_slice(&port.to_be_bytes());
    let family = if is_ipv6 {
        let ip = if node.is_some() { ip.to_ipv6_mapped() } else { Ipv6Addr::UNSPECIFIED };
        bytes[8..24].copy_from_slice(&ip.octets());
        IPV6
    } else {
        bytes[4..8].copy_from_slice(&ip.octets());
        IPV4
    };
    let family = u16::try_from(family).unwrap_or(0);
    bytes[..2].copy_from_slice(&family.to_ne_bytes());
    Storage(bytes)
}

/// Returns the port of an address in the order of bytes of the network.
pub(super) fn port_of(storage: &Storage) -> u16 {
    u16::from_ne_bytes([storage.0[2], storage.0[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for is_ipv6 in [false, true] {
            for (node, place) in
                [(Some(0), Place::Node(0)), (Some(700), Place::Node(700)), (None, Place::Any)]
            {
                let written = storage(is_ipv6, node, 7174);
                // SAFETY: needed to read a structure of C. It has the length of any address.
                let found = unsafe { read((&raw const written).cast()) };
                assert_eq!(found, Ok(Address { is_ipv6, place, port: 7174 }));
                assert_eq!(port_of(&written), 7174_u16.to_be());
            }
        }
    }

    #[test]
    fn other_addresses_have_their_meaning() {
        assert_eq!(place("127.0.0.1".parse().unwrap()), Place::Own);
        assert_eq!(place("::1".parse().unwrap()), Place::Own);
        assert_eq!(place("10.82.0.2".parse().unwrap()), Place::Node(1));
        assert_eq!(place("::ffff:10.82.0.2".parse().unwrap()), Place::Node(1));
        assert_eq!(place("192.0.2.1".parse().unwrap()), Place::Unknown);
        assert_eq!(place("fe80::1".parse().unwrap()), Place::Unknown);
        let other = Storage([0xff; 128]);
        // SAFETY: as above.
        assert_eq!(unsafe { read((&raw const other).cast()) }, Err(Errno::AFNOSUPPORT));
        // SAFETY: null is allowed.
        assert_eq!(unsafe { read(std::ptr::null()) }, Err(Errno::INVAL));
    }
}
