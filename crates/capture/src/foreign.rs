//! Frames of other protocols: their kind as short text, and the frames of this protocol that datagrams carry.
//!
//! A capture of a real interface holds the traffic of all programs, and one of the udp wire holds frames of this
//! protocol as the payload of datagrams. Headers of Ethernet, ARP, IP, UDP and TCP are read by `smoltcp`'s wire
//! formats, which accept any bytes.
//!
//! Fragments are not reassembled: a fragmented datagram is reported as such and not opened.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};

use rackloom_protocol::wire::layout::{FABRIC, LENGTH, LINK, MAGIC, MAGIC_VALUE, u16_at};
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetFrame, EthernetProtocol, Icmpv4Packet, Icmpv6Packet,
    IpProtocol, Ipv4Packet, Ipv6Packet, TcpPacket, UdpPacket,
};

/// A datagram, as far as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Address of the sender.
    pub source: SocketAddr,
    /// Address of the receiver.
    pub destination: SocketAddr,
    payload: &'a [u8],
}

/// Payload of an IP packet.
struct Packet<'a> {
    source: IpAddr,
    destination: IpAddr,
    protocol: IpProtocol,
    is_fragment: bool,
    payload: &'a [u8],
}

/// Returns the datagram in an Ethernet frame, if it is complete and its payload begins with a frame of this protocol.
#[must_use]
pub fn datagram_of_ours(frame: &[u8]) -> Option<Datagram<'_>> {
    let datagram = packet(frame)?.datagram()?;
    is_ours(datagram.payload).then_some(datagram)
}

impl<'a> Datagram<'a> {
    /// Returns the frames in it, in order. There are several if the capture was made before the kernel had split the
    /// sent data, or after it had joined the received data; bytes behind the last recognised frame belong to it.
    pub fn frames(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.payload;
        std::iter::from_fn(move || {
            let (frame, behind) = match end_of_first(rest) {
                Some(end) if is_ours(&rest[end..]) => rest.split_at(end),
                _ => (rest, &rest[rest.len()..]),
            };
            rest = behind;
            (!frame.is_empty()).then_some(frame)
        })
    }
}

/// Returns true if an Ethernet frame of this protocol begins here.
fn is_ours(bytes: &[u8]) -> bool {
    bytes.len() >= MAGIC + 2 && u16_at(bytes, MAGIC) == MAGIC_VALUE
}

/// Returns where the first frame ends according to its length field.
fn end_of_first(bytes: &[u8]) -> Option<usize> {
    let length = bytes.get(LENGTH..LENGTH + 2)?;
    let end = FABRIC + usize::from(u16::from_le_bytes([length[0], length[1]]));
    (end < bytes.len()).then_some(end)
}

/// Returns the kind of a frame of another protocol as text, such as `arp who has 10.0.0.2, asks 10.0.0.1`; `None` if it is unknown.
#[must_use]
pub fn in_words(frame: &[u8]) -> Option<String> {
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    match ethernet.ethertype() {
        EthernetProtocol::Arp => Some(arp(ethernet.payload()).unwrap_or_else(|| "arp, cut short".to_owned())),
        EthernetProtocol::Ipv4 | EthernetProtocol::Ipv6 => {
            Some(packet(frame).map_or_else(|| "ip, cut short".to_owned(), |packet| packet.in_words()))
        }
        EthernetProtocol::Unknown(0x8100 | 0x88a8) => {
            let tag = frame.get(LINK..LINK + 2)?;
            Some(format!("tagged for vlan {}", u16::from_be_bytes([tag[0], tag[1]]) & 0xfff))
        }
        EthernetProtocol::Unknown(_) => None,
    }
}

fn arp(payload: &[u8]) -> Option<String> {
    let ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr,
        source_protocol_addr,
        target_protocol_addr,
        ..
    } = ArpRepr::parse(&ArpPacket::new_checked(payload).ok()?).ok()?
    else {
        return None;
    };
    Some(match operation {
        ArpOperation::Request => format!("arp who has {target_protocol_addr}, asks {source_protocol_addr}"),
        ArpOperation::Reply => format!("arp {source_protocol_addr} is at {source_hardware_addr}"),
        ArpOperation::Unknown(number) => format!("arp operation {number}"),
    })
}

/// Returns the IP packet of a frame, unless the capture has cut it.
fn packet(frame: &[u8]) -> Option<Packet<'_>> {
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    match ethernet.ethertype() {
        EthernetProtocol::Ipv4 => {
            let packet = Ipv4Packet::new_checked(ethernet.payload()).ok()?;
            Some(Packet {
                source: packet.src_addr().into(),
                destination: packet.dst_addr().into(),
                protocol: packet.next_header(),
                is_fragment: packet.more_frags() || packet.frag_offset() > 0,
                payload: packet.payload(),
            })
        }
        EthernetProtocol::Ipv6 => {
            let packet = Ipv6Packet::new_checked(ethernet.payload()).ok()?;
            Some(Packet {
                source: packet.src_addr().into(),
                destination: packet.dst_addr().into(),
                protocol: packet.next_header(),
                is_fragment: packet.next_header() == IpProtocol::Ipv6Frag,
                payload: packet.payload(),
            })
        }
        _ => None,
    }
}

impl<'a> Packet<'a> {
    fn datagram(&self) -> Option<Datagram<'a>> {
        if self.protocol != IpProtocol::Udp || self.is_fragment {
            return None;
        }
        let udp = UdpPacket::new_checked(self.payload).ok()?;
        let (source, destination) =
            ((self.source, udp.src_port()).into(), (self.destination, udp.dst_port()).into());
        Some(Datagram { source, destination, payload: udp.payload() })
    }

    fn in_words(&self) -> String {
        let Self { source, destination, protocol, .. } = self;
        let between = |what: &dyn Display| format!("{what} {source} to {destination}");
        if self.is_fragment {
            return between(&"ip fragment");
        }
        match protocol {
            IpProtocol::Udp => {
                self.datagram().map(|udp| format!("udp {} to {}", udp.source, udp.destination))
            }
            IpProtocol::Tcp => TcpPacket::new_checked(self.payload).ok().map(|tcp| {
                let (source, destination) =
                    (SocketAddr::new(*source, tcp.src_port()), SocketAddr::new(*destination, tcp.dst_port()));
                format!("tcp {source} to {destination}")
            }),
            IpProtocol::Icmp => {
                let message = Icmpv4Packet::new_checked(self.payload).ok();
                message.map(|message| between(&format_args!("icmp {},", message.msg_type())))
            }
            IpProtocol::Icmpv6 => {
                let message = Icmpv6Packet::new_checked(self.payload).ok();
                message.map(|message| between(&format_args!("icmp {},", message.msg_type())))
            }
            _ => None,
        }
        .unwrap_or_else(|| between(&format_args!("ip {protocol},")))
    }
}
