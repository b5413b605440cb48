//! Header prediction: the fixed bytes of consecutive data frames of a stream, and the numbers that change.
//!
//! Most frames continue a stream whose last frame has passed all checks. One comparison of the fixed bytes then
//! replaces all checks that depend on nothing else, and only numbers remain to be read ([`FixedFields`], [`Numbers`]).
//! Likewise the next header of a stream is the last one with other numbers ([`Template`]). TCP implementations have
//! used header prediction since Van Jacobson.
//!
//! This file does not validate headers. The caller has checked a header that it stores, and discards it when the
//! settings that the checks depend on change. A header with a check over itself or its body is never predicted.

use super::demand::Demand;
use super::frame::{StreamAck, traffic};
use super::layout::*;
use crate::ids::Class;

/// Fields that change from frame to frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Number of bytes after the link header.
    pub length: u16,
    /// Link fields of the frame.
    pub link: LinkNumbers,
    /// Number of numbered operations.
    pub operation_count: u8,
    /// True if the sender requests an acknowledgement at once.
    pub ack_now: bool,
    /// True if the packet is a retransmission.
    pub again: bool,
    /// Packets that wait behind this one.
    pub demand: Demand,
    /// Piggybacked acknowledgement.
    pub ack: Option<StreamAck>,
    /// Packet sequence number.
    pub psn: u32,
    /// Number of the first operation.
    pub first_operation: u32,
}

/// Fields of a packet that is sent for the first time. A frame that only acknowledges has just a number of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreshPacket {
    /// Packet sequence number.
    pub psn: u32,
    /// Number of the first operation.
    pub first_operation: u32,
    /// Number of operations.
    pub operation_count: u8,
    /// True if the sender requests an acknowledgement at once.
    pub ack_now: bool,
    /// Packets that wait behind this one.
    pub demand: Demand,
}

/// Link fields of a data frame on a link without retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkNumbers {
    /// Link sequence.
    pub sequence: u32,
    /// Link acknowledgement.
    pub link_ack: u32,
    /// Credits consumed.
    pub consumed: u32,
    /// Credits freed.
    pub freed: u32,
}

impl Numbers {
    /// Reads the numbers of a header. Returns `None` if it acknowledges an invalid class.
    #[must_use]
    #[inline]
    pub fn read(header: &[u8; OPERATIONS]) -> Option<Self> {
        let ack = match header[ACK_CLASS] {
            NO_CLASS => None,
            number => Some(StreamAck {
                class: Class::from_number(number)?,
                psn: u32_at(header, ACK_PSN),
                operation: u32_at(header, ACK_OPERATION),
            }),
        };
        Some(Self {
            length: u16_at(header, LENGTH),
            link: LinkNumbers {
                sequence: u32_at(header, SEQUENCE),
                link_ack: u32_at(header, LINK_ACK),
                consumed: u32_at(header, CONSUMED),
                freed: u32_at(header, FREED),
            },
            operation_count: header[OPERATION_COUNT],
            ack_now: header[TRAFFIC] & TRAFFIC_ACK_NOW != 0,
            again: header[TRAFFIC] & TRAFFIC_AGAIN != 0,
            demand: Demand::of_traffic(header[TRAFFIC]),
            ack,
            psn: u32_at(header, PSN),
            first_operation: u32_at(header, FIRST_OPERATION),
        })
    }

    /// Writes all numbers except the acknowledgement.
    #[inline(always)]
    fn write_own(&self, header: &mut [u8; OPERATIONS]) {
        put_u16(header, LENGTH, self.length);
        put_u32(header, SEQUENCE, self.link.sequence);
        put_u32(header, LINK_ACK, self.link.link_ack);
        put_u32(header, CONSUMED, self.link.consumed);
        put_u32(header, FREED, self.link.freed);
        header[OPERATION_COUNT] = self.operation_count;
        header[TRAFFIC] = traffic(self.ack_now, self.again, self.demand);
        put_u32(header, PSN, self.psn);
        put_u32(header, FIRST_OPERATION, self.first_operation);
    }
}

#[inline(always)]
fn put_ack(header: &mut [u8; OPERATIONS], ack: Option<StreamAck>) {
    header[ACK_CLASS] = ack.map_or(NO_CLASS, |ack| ack.class as u8);
    put_u32(header, ACK_PSN, ack.map_or(0, |ack| ack.psn));
    put_u32(header, ACK_OPERATION, ack.map_or(0, |ack| ack.operation));
}

/// Offsets of the fixed bytes of a header, eight at a time, and masks that select them.
const FIXED: [(usize, u64); 7] = [
    (DESTINATION_MAC, u64::MAX),
    (DESTINATION_MAC + 8, u64::MAX),
    (VERSION_KIND, 0xffff_ffff),
    // Channel and session; the hop limit is before them, the link sequence after.
    (HOP_LIMIT, 0xffff_ff00),
    (HOP_CHECK, u64::MAX),
    // Class and tenant; the operation count is between them.
    (CLASS, 0xffff_00ff),
    (SOURCE_INCARNATION, u64::MAX),
];

/// Fixed bytes of a checked header: addresses, type, version, kind, flags, epoch, channel, session, an empty hop
/// check, members, class, tenant, incarnations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedFields([u64; FIXED.len()]);

impl FixedFields {
    /// Returns the fixed bytes of this header, or `None` if it has a check, which must be verified per frame.
    #[must_use]
    pub fn of(header: &[u8; OPERATIONS]) -> Option<Self> {
        let is_unchecked = header[FLAGS] == FLAG_NO_HOP_CHECK;
        is_unchecked.then(|| Self(FIXED.map(|(at, mask)| u64_at(header, at) & mask)))
    }

    /// Returns true if a header has these fixed bytes.
    #[must_use]
    #[inline]
    pub fn is_like(&self, header: &[u8; OPERATIONS]) -> bool {
        let differences = FIXED
            .iter()
            .zip(&self.0)
            .fold(0, |differences, ((at, mask), known)| differences | (u64_at(header, *at) & mask) ^ known);
        differences == 0
    }
}

/// Header that was sent, as a template for the next one of its stream through the same port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template([u8; OPERATIONS]);

impl Template {
    /// Returns the template of this frame, or `None` if its checks must be computed.
    #[must_use]
    pub fn of(frame: &[u8]) -> Option<Self> {
        let mut header = *frame.first_chunk::<OPERATIONS>()?;
        // Most frames have no acknowledgement, so the template has none.
        put_ack(&mut header, None);
        (header[FLAGS] == FLAG_NO_HOP_CHECK).then_some(Self(header))
    }

    /// Writes the header of a packet that is sent for the first time, without an acknowledgement. `length` is the number
    /// of bytes after the link header. A frame shorter than the header is not changed.
    #[inline(always)]
    pub fn write_fresh(&self, out: &mut [u8], length: usize, link: &LinkNumbers, packet: FreshPacket) {
        let FreshPacket { psn, first_operation, operation_count, ack_now, demand } = packet;
        let Some(header) = out.first_chunk_mut::<OPERATIONS>() else { return };
        *header = self.0;
        let (length, link, again, ack) = (length as u16, *link, false, None);
        Numbers { length, link, operation_count, ack_now, again, demand, ack, psn, first_operation }
            .write_own(header);
    }

    /// Writes the header with these numbers. A frame shorter than the header is not changed.
    #[inline(always)]
    pub fn write(&self, out: &mut [u8], numbers: &Numbers) {
        let Some(header) = out.first_chunk_mut::<OPERATIONS>() else { return };
        *header = self.0;
        numbers.write_own(header);
        put_ack(header, numbers.ack);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Channel, NodeId, Tenant};
    use crate::wire::frame::{FabricHeader, FrameKind, HopCheck, LinkHeader};

    const NUMBERS: Numbers = Numbers {
        length: 132,
        link: LinkNumbers {
            sequence: 0x0102_0304,
            link_ack: 0x1112_1314,
            consumed: 0x2122_2324,
            freed: 0x3132_3334,
        },
        operation_count: 7,
        ack_now: true,
        again: true,
        demand: Demand::of_packets(40),
        ack: Some(StreamAck { class: Class::Bulk, psn: 0x4142_4344, operation: 0x5152_5354 }),
        psn: 0x6162_6364,
        first_operation: 0x7172_7374,
    };

    /// Returns a header from the general writers.
    fn header(numbers: &Numbers, has_hop_check: bool) -> [u8; OPERATIONS] {
        let mut out = [0xee; OPERATIONS];
        FabricHeader {
            destination: NodeId(3),
            source: NodeId(4),
            class: Class::Reply,
            operation_count: numbers.operation_count,
            tenant: Tenant(5),
            entropy: 6,
            ack_now: numbers.ack_now,
            again: numbers.again,
            demand: numbers.demand,
            ack: numbers.ack,
            source_incarnation: 7,
            destination_incarnation: 8,
            psn: numbers.psn,
            first_operation: numbers.first_operation,
        }
        .write(&mut out);
        LinkHeader {
            kind: FrameKind::Data,
            epoch: 9,
            length: numbers.length,
            hop_limit: 255,
            channel: Channel(0),
            session: 10,
            sequence: numbers.link.sequence,
            link_ack: numbers.link.link_ack,
            consumed: numbers.link.consumed,
            freed: numbers.link.freed,
            has_end_to_end_check: false,
            hop_check: HopCheck::new(has_hop_check, false),
            is_unprotected: false,
            is_marked: false,
        }
        .write(&mut out, 0x88b5, [1; 6], [2; 6]);
        out
    }

    #[test]
    fn a_template_writes_what_the_ordinary_writers_write() {
        let plain = Numbers {
            ack: None,
            ack_now: false,
            again: false,
            demand: Demand::NONE,
            link: LinkNumbers { sequence: 1, ..NUMBERS.link },
            psn: 2,
            operation_count: 1,
            ..NUMBERS
        };
        for (before, after) in [(plain, NUMBERS), (NUMBERS, plain)] {
            let template = Template::of(&header(&before, false)).unwrap();
            let mut out = [0xdd; OPERATIONS];
            template.write(&mut out, &after);
            assert_eq!(out, header(&after, false));
            assert_eq!(Numbers::read(&out), Some(after));
        }
    }

    #[test]
    fn a_header_with_a_check_is_never_predicted() {
        assert_eq!(FixedFields::of(&header(&NUMBERS, true)), None);
        assert_eq!(Template::of(&header(&NUMBERS, true)), None);
    }

    /// Every byte of a header is compared, or is one of the numbers, or has no effect at the destination.
    #[test]
    fn every_significant_byte_is_compared() {
        let good = header(&NUMBERS, false);
        let predicted = FixedFields::of(&good).unwrap();
        assert!(predicted.is_like(&good));
        let free = |at: usize| match at {
            // Hop limit, entropy and the field of an absent check have no effect at the destination.
            HOP_LIMIT | ENTROPY..TRAFFIC | END_TO_END_CHECK..OPERATIONS => true,
            LENGTH..HOP_LIMIT | SEQUENCE..HOP_CHECK | OPERATION_COUNT => true,
            TRAFFIC..SOURCE_INCARNATION | PSN..END_TO_END_CHECK => true,
            _ => false,
        };
        for at in 0..OPERATIONS {
            let mut other = good;
            other[at] ^= 0x40;
            assert_eq!(predicted.is_like(&other), free(at), "byte {at}");
        }
    }

    #[test]
    fn an_acknowledgement_of_no_class_has_no_numbers() {
        let mut header = header(&NUMBERS, false);
        header[ACK_CLASS] = 4;
        assert_eq!(Numbers::read(&header), None);
    }
}
