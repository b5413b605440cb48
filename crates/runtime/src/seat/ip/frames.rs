//! Destinations of a frame that a program has sent.

use rackloom::ip::{node_at, node_with};
use smoltcp::wire::{ArpOperation, ArpPacket, EthernetFrame, EthernetProtocol};

/// Nodes to which a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// One node.
    Node(u16),
    /// All other nodes that are reached.
    Others,
    /// None: the frame is no Ethernet frame, or its address belongs to no node.
    Nowhere,
}

/// Returns the destination of an Ethernet frame. A question for the hardware address of a node goes to that node alone, so no question floods the
/// rack, and a node that is lost does not answer.
pub(super) fn destination_of(frame: &[u8]) -> Destination {
    let Ok(ethernet) = EthernetFrame::new_checked(frame) else { return Destination::Nowhere };
    let to = ethernet.dst_addr();
    if to.is_unicast() {
        return node_with(to.0).map_or(Destination::Nowhere, Destination::Node);
    }
    if ethernet.ethertype() != EthernetProtocol::Arp {
        return Destination::Others;
    }
    let Ok(arp) = ArpPacket::new_checked(ethernet.payload()) else { return Destination::Nowhere };
    let address = <[u8; 4]>::try_from(arp.target_protocol_addr()).ok();
    match (arp.operation(), address) {
        (ArpOperation::Request, Some(address)) => {
            node_at(address.into()).map_or(Destination::Nowhere, Destination::Node)
        }
        _ => Destination::Others,
    }
}

#[cfg(test)]
mod tests {
    use rackloom::ip::{address_of, hardware_address_of};
    use smoltcp::wire::{ArpRepr, EthernetAddress, EthernetRepr};

    use super::*;

    fn frame(to: [u8; 6], ethertype: EthernetProtocol, payload: &[u8]) -> Vec<u8> {
        let header = EthernetRepr {
            src_addr: EthernetAddress(hardware_address_of(0)),
            dst_addr: EthernetAddress(to),
            ethertype,
        };
        let mut bytes = vec![0; header.buffer_len() + payload.len()];
        header.emit(&mut EthernetFrame::new_unchecked(&mut bytes));
        bytes[header.buffer_len()..].copy_from_slice(payload);
        bytes
    }

    fn question(operation: ArpOperation, address: std::net::Ipv4Addr) -> Vec<u8> {
        let question = ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: EthernetAddress(hardware_address_of(0)),
            source_protocol_addr: address_of(0),
            target_hardware_addr: EthernetAddress([0; 6]),
            target_protocol_addr: address,
        };
        let mut bytes = vec![0; question.buffer_len()];
        question.emit(&mut ArpPacket::new_unchecked(&mut bytes));
        bytes
    }

    #[test]
    fn a_frame_goes_to_the_node_with_its_address() {
        let to = |address, kind| destination_of(&frame(address, kind, &[1, 2, 3]));
        assert_eq!(to(hardware_address_of(7), EthernetProtocol::Ipv4), Destination::Node(7));
        assert_eq!(to([2, 0, 0, 0, 0, 7], EthernetProtocol::Ipv4), Destination::Nowhere);
        assert_eq!(to([0xff; 6], EthernetProtocol::Ipv4), Destination::Others);
        assert_eq!(to([0x01, 0, 0x5e, 0, 0, 1], EthernetProtocol::Ipv4), Destination::Others);
    }

    #[test]
    fn a_question_for_an_address_goes_to_its_node_alone() {
        let goes_to = |operation, address| {
            destination_of(&frame([0xff; 6], EthernetProtocol::Arp, &question(operation, address)))
        };
        assert_eq!(goes_to(ArpOperation::Request, address_of(300)), Destination::Node(300));
        assert_eq!(goes_to(ArpOperation::Request, [10, 82, 0, 0].into()), Destination::Nowhere);
        assert_eq!(goes_to(ArpOperation::Reply, address_of(3)), Destination::Others);
    }

    #[test]
    fn no_bytes_cause_a_panic() {
        let whole = frame([0xff; 6], EthernetProtocol::Arp, &question(ArpOperation::Request, address_of(1)));
        for length in 0..whole.len() {
            assert_eq!(destination_of(&whole[..length]), Destination::Nowhere, "{length} bytes");
        }
        let hostile = frame([0xff; 6], EthernetProtocol::Arp, &[0xff; 40]);
        let _ = destination_of(&hostile);
    }
}
