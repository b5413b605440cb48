//! Frames of other protocols, and frames of this protocol in datagrams: built by `smoltcp`, so that the test input is independent.

use std::net::{Ipv4Addr, Ipv6Addr};

use rackloom_capture::foreign::{datagram_of_ours, in_words};
use rackloom_protocol::wire::layout::{FABRIC, LENGTH, MAGIC, MAGIC_VALUE, put_u16};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr,
    Icmpv6Packet, Icmpv6Repr, IpProtocol, Ipv4Packet, Ipv4Repr, Ipv6Packet, Ipv6Repr, NdiscRepr, TcpControl,
    TcpPacket, TcpRepr, TcpSeqNumber, UdpPacket, UdpRepr,
};

const A: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 1]);
const B: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 2]);
const A4: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const B4: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const A6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const B6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

fn ethernet(ethertype: EthernetProtocol, length: usize, fill: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = vec![0; EthernetFrame::<&[u8]>::header_len() + length];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    EthernetRepr { src_addr: A, dst_addr: B, ethertype }.emit(&mut frame);
    fill(frame.payload_mut());
    bytes
}

fn over_ipv4(next_header: IpProtocol, payload_len: usize, fill: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let header = Ipv4Repr { src_addr: A4, dst_addr: B4, next_header, payload_len, hop_limit: 64 };
    ethernet(EthernetProtocol::Ipv4, header.buffer_len() + payload_len, |bytes| {
        let mut packet = Ipv4Packet::new_unchecked(bytes);
        header.emit(&mut packet, &ChecksumCapabilities::default());
        fill(packet.payload_mut());
    })
}

fn over_ipv6(next_header: IpProtocol, payload_len: usize, fill: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let header = Ipv6Repr { src_addr: A6, dst_addr: B6, next_header, payload_len, hop_limit: 255 };
    ethernet(EthernetProtocol::Ipv6, header.buffer_len() + payload_len, |bytes| {
        let mut packet = Ipv6Packet::new_unchecked(bytes);
        header.emit(&mut packet);
        fill(packet.payload_mut());
    })
}

fn udp(payload: &[u8], is_ipv6: bool) -> Vec<u8> {
    let header = UdpRepr { src_port: 26001, dst_port: 26002 };
    let length = header.header_len() + payload.len();
    let fill = |bytes: &mut [u8]| {
        let (from, to) = if is_ipv6 { (A6.into(), B6.into()) } else { (A4.into(), B4.into()) };
        header.emit(
            &mut UdpPacket::new_unchecked(bytes),
            &from,
            &to,
            payload.len(),
            |buffer| buffer.copy_from_slice(payload),
            &ChecksumCapabilities::default(),
        );
    };
    if is_ipv6 { over_ipv6(IpProtocol::Udp, length, fill) } else { over_ipv4(IpProtocol::Udp, length, fill) }
}

/// Returns the beginning of a frame of this protocol: enough to recognise it, and its length.
fn ours(body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; FABRIC];
    put_u16(&mut frame, MAGIC, MAGIC_VALUE);
    put_u16(&mut frame, LENGTH, body.len() as u16);
    frame.extend_from_slice(body);
    frame
}

#[test]
fn frames_of_other_protocols_are_named() {
    let arp = |operation| {
        let arp = ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: A,
            source_protocol_addr: A4,
            target_hardware_addr: B,
            target_protocol_addr: B4,
        };
        let emit = |bytes: &mut [u8]| arp.emit(&mut ArpPacket::new_unchecked(bytes));
        ethernet(EthernetProtocol::Arp, arp.buffer_len(), emit)
    };
    let solicit = Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit { target_addr: B6, lladdr: None });
    let solicit = over_ipv6(IpProtocol::Icmpv6, solicit.buffer_len(), |bytes| {
        let mut packet = Icmpv6Packet::new_unchecked(bytes);
        solicit.emit(&A6, &B6, &mut packet, &ChecksumCapabilities::default());
    });
    let opening = TcpRepr {
        src_port: 40000,
        dst_port: 22,
        control: TcpControl::Syn,
        seq_number: TcpSeqNumber(1),
        ack_number: None,
        window_len: 1024,
        window_scale: None,
        max_seg_size: Some(1460),
        sack_permitted: false,
        sack_ranges: [None; 3],
        timestamp: None,
        payload: &[],
    };
    let opening = over_ipv4(IpProtocol::Tcp, opening.buffer_len(), |bytes| {
        let mut packet = TcpPacket::new_unchecked(bytes);
        opening.emit(&mut packet, &A4.into(), &B4.into(), &ChecksumCapabilities::default());
    });
    for (frame, words) in [
        (arp(ArpOperation::Request), "arp who has 10.2.0.1, asks 10.1.0.1"),
        (arp(ArpOperation::Reply), "arp 10.1.0.1 is at 02-00-00-00-00-01"),
        (solicit, "icmp neighbor solicitation, fd00::1 to fd00::2"),
        (opening, "tcp 10.1.0.1:40000 to 10.2.0.1:22"),
        (udp(b"name?", false), "udp 10.1.0.1:26001 to 10.2.0.1:26002"),
        (udp(b"name?", true), "udp [fd00::1]:26001 to [fd00::2]:26002"),
        (ethernet(EthernetProtocol::Unknown(0x8100), 4, |tag| tag[1] = 5), "tagged for vlan 5"),
    ] {
        assert_eq!(in_words(&frame).as_deref(), Some(words));
        for length in 0..frame.len() {
            let arp = in_words(&frame[..length]);
            assert!(datagram_of_ours(&frame[..length]).is_none(), "{arp:?} of {length} bytes");
        }
    }
    assert_eq!(in_words(&ethernet(EthernetProtocol::Unknown(0x88b6), 50, |_| {})), None);
}

#[test]
fn frames_of_ours_are_found_in_datagrams() {
    let frames = [ours(&[1; 40]), ours(&[2; 40]), ours(&[3; 11])];
    for is_ipv6 in [false, true] {
        let one = udp(&frames[0], is_ipv6);
        let datagram = datagram_of_ours(&one).expect("a frame of ours");
        assert_eq!((datagram.source.port(), datagram.destination.port()), (26001, 26002));
        assert_eq!(
            (datagram.source.is_ipv6(), datagram.frames().collect::<Vec<_>>()),
            (is_ipv6, vec![&frames[0][..]])
        );
        // As captured before the kernel splits it.
        let joined = udp(&frames.concat(), is_ipv6);
        let found: Vec<_> = datagram_of_ours(&joined).expect("frames of ours").frames().collect();
        assert_eq!(found, frames);
    }
    assert_eq!(datagram_of_ours(&udp(b"something else that is long enough", false)), None);
}

#[test]
fn a_frame_with_a_wrong_length_is_shown_with_the_bytes_after_it() {
    let mut mislabelled = ours(&[1; 40]);
    put_u16(&mut mislabelled, LENGTH, 7);
    let bytes = udp(&[mislabelled, ours(&[2; 40])].concat(), false);
    let found: Vec<_> =
        datagram_of_ours(&bytes).expect("a frame of ours").frames().map(<[u8]>::len).collect();
    assert_eq!(found, [2 * (FABRIC + 40)]);
}

#[test]
fn fragments_are_not_opened() {
    let mut bytes = udp(&ours(&[1; 40]), false);
    let more_to_come = 0x20;
    bytes[14 + 6] |= more_to_come;
    assert_eq!(datagram_of_ours(&bytes), None);
    assert_eq!(in_words(&bytes).as_deref(), Some("ip fragment 10.1.0.1 to 10.2.0.1"));
}
