//! A received frame as a checked view, and the writing of headers.
//!
//! [`Frame::parse`] is the one gate: what comes out of it has room for every field that its kind promises, a hop check
//! that fits, and no more bytes than it says. It never panics, whatever the bytes.

use super::check::{end_to_end_check, hop_check};
use super::layout::*;
use crate::event::DropReason;
use crate::ids::{Channel, Class, NodeId, Tenant};

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// Routed; carries operations; costs link credits.
    Data = 1,
    /// Routed; carries acknowledgements; costs no credits.
    Ack = 2,
    /// To the neighbour: who I am.
    Hello = 3,
    /// To the neighbour: I live and hear you.
    Heartbeat = 4,
    /// To the neighbour, flooded: who has which links up.
    Report = 5,
    /// To the neighbour: credits freed.
    Credit = 6,
    /// To the neighbour: routed frames up to the link ack have arrived.
    LinkAck = 7,
    /// To the neighbour: the routed frame after the link ack is missing.
    LinkNack = 8,
    /// To the neighbour: my link sequence stands here.
    LinkInit = 9,
    /// To the neighbour: I follow your link sequence.
    LinkInitEcho = 10,
    /// To the neighbour: send no data of the channel for a while, or go on.
    Pause = 11,
}

impl FrameKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Data,
        Self::Ack,
        Self::Hello,
        Self::Heartbeat,
        Self::Report,
        Self::Credit,
        Self::LinkAck,
        Self::LinkNack,
        Self::LinkInit,
        Self::LinkInitEcho,
        Self::Pause,
    ];

    const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Data),
            2 => Some(Self::Ack),
            3 => Some(Self::Hello),
            4 => Some(Self::Heartbeat),
            5 => Some(Self::Report),
            6 => Some(Self::Credit),
            7 => Some(Self::LinkAck),
            8 => Some(Self::LinkNack),
            9 => Some(Self::LinkInit),
            10 => Some(Self::LinkInitEcho),
            11 => Some(Self::Pause),
            _ => None,
        }
    }

    /// Lower-case name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Ack => "ack",
            Self::Hello => "hello",
            Self::Heartbeat => "heartbeat",
            Self::Report => "report",
            Self::Credit => "credit",
            Self::LinkAck => "link-ack",
            Self::LinkNack => "link-nack",
            Self::LinkInit => "link-init",
            Self::LinkInitEcho => "link-init-echo",
            Self::Pause => "pause",
        }
    }

    /// The kind that a frame says it is of, without any look at the rest; for whoever counts frames or harms them.
    #[must_use]
    pub fn peek(frame: &[u8]) -> Option<Self> {
        frame.get(VERSION_KIND).and_then(|byte| Self::from_number(byte & 0x0f))
    }

    /// Whether the frame has a fabric header and may be passed on.
    #[must_use]
    pub const fn is_routed(self) -> bool {
        matches!(self, Self::Data | Self::Ack)
    }
}

/// What a hop changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkHeader {
    /// What the frame is for.
    pub kind: FrameKind,
    /// Rack epoch.
    pub epoch: u16,
    /// Bytes after the link header.
    pub length: u16,
    /// Hops left.
    pub hop_limit: u8,
    /// Virtual channel of the link that the frame travels on; the counters below are its own.
    pub channel: Channel,
    /// Low 16 bits of the sending neighbour's incarnation tag.
    pub session: u16,
    /// Data frames sent on this link direction, this one included.
    pub sequence: u32,
    /// Last link sequence received in order.
    pub link_ack: u32,
    /// Credits consumed on this link direction, this frame included.
    pub consumed: u32,
    /// Credits freed for the opposite direction.
    pub freed: u32,
    /// The end-to-end check is present.
    pub has_end_to_end_check: bool,
    /// The hop check is present, as in every frame that is not routed.
    pub has_hop_check: bool,
    /// The hop check covers the body too, as in every frame that is not routed.
    pub hop_check_covers_all: bool,
    /// The link sequence is not this frame's own.
    pub is_unprotected: bool,
    /// It has met congestion on its way.
    pub is_marked: bool,
}

/// What no hop changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricHeader {
    /// Where to.
    pub destination: NodeId,
    /// Where from.
    pub source: NodeId,
    /// Message class.
    pub class: Class,
    /// Operations in the frame.
    pub operation_count: u8,
    /// Tenant of the source's seat.
    pub tenant: Tenant,
    /// Chooses among equal paths.
    pub entropy: u16,
    /// The sender wants an acknowledgement now.
    pub ack_now: bool,
    /// The packet has been sent before.
    pub again: bool,
    /// Piggybacked acknowledgement.
    pub ack: Option<PiggybackAck>,
    /// Tag of the source's life.
    pub source_incarnation: u32,
    /// Tag of the destination's life as the source knows it.
    pub destination_incarnation: u32,
    /// Packet sequence number.
    pub psn: u32,
    /// Number of the first operation.
    pub first_operation: u32,
}

/// An acknowledgement that rides on a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PiggybackAck {
    /// The class it speaks of.
    pub class: Class,
    /// Next packet expected.
    pub psn: u32,
    /// Next operation that is not yet visible.
    pub operation: u32,
}

/// A frame whose shape has been checked.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    /// The link header.
    pub link: LinkHeader,
}

impl<'a> Frame<'a> {
    /// Check the shape of received bytes. `address`: the MAC of the receiving port; `neighbour`: that of the sender.
    ///
    /// Sections 2 and 3 of the wire format, in the order of its table of refusals.
    pub fn parse(
        bytes: &'a [u8],
        ether_type: u16,
        address: [u8; 6],
        neighbour: [u8; 6],
        epoch: u16,
    ) -> Result<Self, DropReason> {
        if bytes.len() < LINK {
            return Err(DropReason::Truncated);
        }
        // W-2
        if u16::from_be_bytes([bytes[ETHER_TYPE], bytes[ETHER_TYPE + 1]]) != ether_type {
            return Err(DropReason::ForeignEtherType);
        }
        // W-1
        if bytes[DESTINATION_MAC..SOURCE_MAC] != address || bytes[SOURCE_MAC..ETHER_TYPE] != neighbour {
            return Err(DropReason::WrongAddress);
        }
        let header = bytes.first_chunk::<FABRIC>().ok_or(DropReason::Truncated)?;
        // W-4
        if u16_at(header, MAGIC) != MAGIC_VALUE {
            return Err(DropReason::BadMagic);
        }
        if header[VERSION_KIND] >> 4 != VERSION {
            return Err(DropReason::BadVersion);
        }
        let kind = FrameKind::from_number(header[VERSION_KIND] & 15).ok_or(DropReason::Malformed)?;
        let length = u16_at(header, LENGTH);
        let end = FABRIC + usize::from(length);
        // W-3
        if bytes.len() < end || (kind.is_routed() && end < OPERATIONS) {
            return Err(DropReason::Truncated);
        }
        let bytes = &bytes[..end];
        let link = LinkHeader::read(header, kind);
        // W-8
        let check = if link.has_hop_check { hop_check(bytes, link.hop_check_covers_all) } else { 0 };
        if u32_at(header, HOP_CHECK) != check {
            return Err(DropReason::HopCheck);
        }
        if link.epoch != epoch {
            return Err(DropReason::WrongEpoch);
        }
        Ok(Self { bytes, link })
    }

    /// The frame without padding.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What follows the link header.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[FABRIC..]
    }

    /// Destination of a routed frame, without reading the rest of its header (a forwarder needs no more).
    #[must_use]
    pub fn destination(&self) -> NodeId {
        NodeId(u16_at(self.bytes, DESTINATION))
    }

    /// Source of a routed frame.
    #[must_use]
    pub fn source(&self) -> NodeId {
        NodeId(u16_at(self.bytes, SOURCE))
    }

    /// Path entropy of a routed frame.
    #[must_use]
    pub fn entropy(&self) -> u16 {
        u16_at(self.bytes, ENTROPY)
    }

    /// Whether the end-to-end check of a routed frame fits.
    #[must_use]
    pub fn end_to_end_check_holds(&self) -> bool {
        u32_at(self.bytes, END_TO_END_CHECK) == end_to_end_check(self.bytes)
    }

    /// The fabric header of a routed frame.
    pub fn fabric(&self) -> Result<FabricHeader, DropReason> {
        FabricHeader::of(self.bytes)
    }

    /// The packed operations of a routed frame.
    #[must_use]
    pub fn operations(&self) -> &'a [u8] {
        &self.bytes[OPERATIONS..]
    }
}

impl LinkHeader {
    // Fields are read from and written to arrays whose length the compiler knows: one bounds check for all of them.
    fn read(bytes: &[u8; FABRIC], kind: FrameKind) -> Self {
        Self {
            kind,
            epoch: u16_at(bytes, EPOCH),
            length: u16_at(bytes, LENGTH),
            hop_limit: bytes[HOP_LIMIT],
            channel: Channel(bytes[CHANNEL]),
            session: u16_at(bytes, SESSION),
            sequence: u32_at(bytes, SEQUENCE),
            link_ack: u32_at(bytes, LINK_ACK),
            consumed: u32_at(bytes, CONSUMED),
            freed: u32_at(bytes, FREED),
            has_end_to_end_check: bytes[FLAGS] & FLAG_END_TO_END != 0,
            has_hop_check: bytes[FLAGS] & FLAG_NO_HOP_CHECK == 0 || !kind.is_routed(),
            hop_check_covers_all: bytes[FLAGS] & FLAG_HOP_CHECK_OF_ALL != 0 || !kind.is_routed(),
            is_unprotected: bytes[FLAGS] & FLAG_UNPROTECTED != 0,
            is_marked: bytes[FLAGS] & FLAG_MARKED != 0,
        }
    }

    /// Write the Ethernet and the link header, and seal the hop if it is to be checked. The body must already be in place for frames that
    /// are not routed; where the check covers the body of a routed frame, [`seal_hop`](super::seal_hop) follows once that is.
    ///
    /// A frame too short for the header is left alone.
    pub fn write(&self, out: &mut [u8], ether_type: u16, source: [u8; 6], destination: [u8; 6]) {
        let Some(frame) = out.first_chunk_mut::<FABRIC>() else { return };
        frame[DESTINATION_MAC..SOURCE_MAC].copy_from_slice(&destination);
        frame[SOURCE_MAC..ETHER_TYPE].copy_from_slice(&source);
        frame[ETHER_TYPE..LINK].copy_from_slice(&ether_type.to_be_bytes());
        put_u16(frame, MAGIC, MAGIC_VALUE);
        frame[VERSION_KIND] = VERSION << 4 | self.kind as u8;
        let has_hop_check = self.has_hop_check || !self.kind.is_routed();
        frame[FLAGS] = (u8::from(self.has_end_to_end_check) * FLAG_END_TO_END)
            | (u8::from(!has_hop_check) * FLAG_NO_HOP_CHECK)
            | (u8::from(self.hop_check_covers_all && self.kind.is_routed()) * FLAG_HOP_CHECK_OF_ALL)
            | (u8::from(self.is_unprotected) * FLAG_UNPROTECTED)
            | (u8::from(self.is_marked) * FLAG_MARKED);
        put_u16(frame, EPOCH, self.epoch);
        put_u16(frame, LENGTH, self.length);
        frame[HOP_LIMIT] = self.hop_limit;
        frame[CHANNEL] = self.channel.0;
        put_u16(frame, SESSION, self.session);
        put_u32(frame, SEQUENCE, self.sequence);
        put_u32(frame, LINK_ACK, self.link_ack);
        put_u32(frame, CONSUMED, self.consumed);
        put_u32(frame, FREED, self.freed);
        put_u32(frame, HOP_CHECK, 0);
        let is_sealed_later = self.hop_check_covers_all && self.kind.is_routed();
        if has_hop_check && !is_sealed_later {
            let check = hop_check(out, !self.kind.is_routed());
            put_u32(out, HOP_CHECK, check);
        }
    }
}

/// The traffic field of a routed frame.
#[inline]
pub(super) const fn traffic(ack_now: bool, again: bool) -> u8 {
    (ack_now as u8 * TRAFFIC_ACK_NOW) | (again as u8 * TRAFFIC_AGAIN)
}

impl FabricHeader {
    fn read(bytes: &[u8; OPERATIONS]) -> Option<Self> {
        let ack = match bytes[ACK_CLASS] {
            NO_CLASS => None,
            number => Some(PiggybackAck {
                class: Class::from_number(number)?,
                psn: u32_at(bytes, ACK_PSN),
                operation: u32_at(bytes, ACK_OPERATION),
            }),
        };
        Some(Self {
            destination: NodeId(u16_at(bytes, DESTINATION)),
            source: NodeId(u16_at(bytes, SOURCE)),
            class: Class::from_number(bytes[CLASS])?,
            operation_count: bytes[OPERATION_COUNT],
            tenant: Tenant(u16_at(bytes, TENANT)),
            entropy: u16_at(bytes, ENTROPY),
            ack_now: bytes[TRAFFIC] & TRAFFIC_ACK_NOW != 0,
            again: bytes[TRAFFIC] & TRAFFIC_AGAIN != 0,
            ack,
            source_incarnation: u32_at(bytes, SOURCE_INCARNATION),
            destination_incarnation: u32_at(bytes, DESTINATION_INCARNATION),
            psn: u32_at(bytes, PSN),
            first_operation: u32_at(bytes, FIRST_OPERATION),
        })
    }

    /// The fabric header of a routed frame that has been checked before.
    pub fn of(frame: &[u8]) -> Result<Self, DropReason> {
        let header = frame.first_chunk().ok_or(DropReason::Truncated)?;
        Self::read(header).ok_or(DropReason::Malformed)
    }

    /// Write the fabric header, the end-to-end check left zero. A frame too short for the header is left alone.
    pub fn write(&self, out: &mut [u8]) {
        let Some(frame) = out.first_chunk_mut::<OPERATIONS>() else { return };
        put_u16(frame, DESTINATION, self.destination.0);
        put_u16(frame, SOURCE, self.source.0);
        frame[CLASS] = self.class as u8;
        frame[OPERATION_COUNT] = self.operation_count;
        put_u16(frame, TENANT, self.tenant.0);
        put_u16(frame, ENTROPY, self.entropy);
        // W-36
        frame[TRAFFIC] = traffic(self.ack_now, self.again);
        frame[ACK_CLASS] = self.ack.map_or(NO_CLASS, |ack| ack.class as u8);
        put_u32(frame, SOURCE_INCARNATION, self.source_incarnation);
        put_u32(frame, DESTINATION_INCARNATION, self.destination_incarnation);
        put_u32(frame, PSN, self.psn);
        put_u32(frame, FIRST_OPERATION, self.first_operation);
        put_u32(frame, ACK_PSN, self.ack.map_or(0, |ack| ack.psn));
        put_u32(frame, ACK_OPERATION, self.ack.map_or(0, |ack| ack.operation));
        put_u32(frame, END_TO_END_CHECK, 0);
    }
}
