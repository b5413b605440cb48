//! Checked view of a received frame, and the writer of headers.
//!
//! [`Frame::parse`] is the only entry: its result has space for every field of its kind, a valid hop check, and no
//! more bytes than it states. It never panics, on any bytes.

use super::check::{end_to_end_check, hop_check};
use super::demand::Demand;
use super::layout::*;
use crate::event::DropReason;
use crate::ids::{Channel, Class, NodeId, Tenant};

/// Purpose of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// Routed. Carries operations and costs link credits.
    Data = 1,
    /// Routed. Carries acknowledgements and costs no credits.
    Ack = 2,
    /// To the neighbour: announces the sender.
    Hello = 3,
    /// To the neighbour: shows that the sender is alive and receives.
    Heartbeat = 4,
    /// To the neighbour, flooded: the links of a member that carry data.
    Report = 5,
    /// To the neighbour: credits freed.
    Credit = 6,
    /// To the neighbour: acknowledges the routed frames up to the link ack.
    LinkAck = 7,
    /// To the neighbour: the routed frame after the link ack is missing.
    LinkNack = 8,
    /// To the neighbour: announces the present link sequence of the sender.
    LinkInit = 9,
    /// To the neighbour: confirms its link sequence.
    LinkInitEcho = 10,
    /// To the neighbour: pauses or resumes the data of a channel.
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

    /// Returns the lower-case name.
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

    /// Reads the kind of a frame without checking the rest, for counting and fault injection.
    #[must_use]
    pub fn peek(frame: &[u8]) -> Option<Self> {
        frame.get(VERSION_KIND).and_then(|byte| Self::from_number(byte & 0x0f))
    }

    /// Returns true if the frame has a fabric header and may be forwarded.
    #[must_use]
    pub const fn is_routed(self) -> bool {
        matches!(self, Self::Data | Self::Ack)
    }
}

/// Presence and coverage of a frame's hop check. Frames that are not routed always have [`HopCheck::Frame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopCheck {
    /// The check is present and covers the link header.
    Header,
    /// The check is present and covers the link header and the body.
    Frame,
    /// The check is absent from a frame in which it would cover the link header.
    NoneOfHeader,
    /// The check is absent from a frame in which it would cover the whole frame, because link-level retry keeps the
    /// frame.
    NoneOfFrame,
}

impl HopCheck {
    /// Returns the state for a check that is present or not, and that covers the body or not.
    #[inline]
    #[must_use]
    pub const fn new(is_present: bool, covers_body: bool) -> Self {
        match (is_present, covers_body) {
            (true, false) => Self::Header,
            (true, true) => Self::Frame,
            (false, false) => Self::NoneOfHeader,
            (false, true) => Self::NoneOfFrame,
        }
    }

    /// Returns true if the check is present.
    #[inline]
    #[must_use]
    pub const fn is_present(self) -> bool {
        matches!(self, Self::Header | Self::Frame)
    }

    /// Returns true if the check covers the body, or would if it were present.
    #[inline]
    #[must_use]
    pub const fn covers_body(self) -> bool {
        matches!(self, Self::Frame | Self::NoneOfFrame)
    }
}

/// Header fields that a hop changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkHeader {
    /// Purpose of the frame.
    pub kind: FrameKind,
    /// Rack epoch.
    pub epoch: u16,
    /// Number of bytes after the link header.
    pub length: u16,
    /// Number of hops left.
    pub hop_limit: u8,
    /// Virtual channel of the link on which the frame travels. The counters below belong to it.
    pub channel: Channel,
    /// Low 16 bits of the sending neighbour's incarnation tag.
    pub session: u16,
    /// Number of data frames sent on this link direction, this one included.
    pub sequence: u32,
    /// Last link sequence received in order.
    pub link_ack: u32,
    /// Credits consumed on this link direction, this frame included.
    pub consumed: u32,
    /// Credits freed for the opposite direction.
    pub freed: u32,
    /// True if the end-to-end check is present.
    pub has_end_to_end_check: bool,
    /// Presence and coverage of the hop check.
    pub hop_check: HopCheck,
    /// True if the link sequence is that of another frame.
    pub is_unprotected: bool,
    /// True if the frame was marked because of congestion.
    pub is_marked: bool,
}

/// Header fields that no hop changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricHeader {
    /// Destination member.
    pub destination: NodeId,
    /// Source member.
    pub source: NodeId,
    /// Message class.
    pub class: Class,
    /// Number of operations in the frame.
    pub operation_count: u8,
    /// Tenant of the source.
    pub tenant: Tenant,
    /// Number that chooses among equal paths.
    pub entropy: u16,
    /// True if the sender requests an acknowledgement at once.
    pub ack_now: bool,
    /// True if the packet is a retransmission.
    pub again: bool,
    /// Packets that wait at the source behind this one. None in racks without grants.
    pub demand: Demand,
    /// Piggybacked acknowledgement.
    pub ack: Option<StreamAck>,
    /// Tag of the source's incarnation.
    pub source_incarnation: u32,
    /// Tag of the destination's incarnation, as the source knows it.
    pub destination_incarnation: u32,
    /// Packet sequence number.
    pub psn: u32,
    /// Number of the first operation in the frame.
    pub first_operation: u32,
}

/// Acknowledgement of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamAck {
    /// Class of the stream.
    pub class: Class,
    /// Number of the next expected packet.
    pub psn: u32,
    /// Number of the first operation that is not visible.
    pub operation: u32,
}

/// Received frame whose structure has been checked.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    /// The link header.
    pub link: LinkHeader,
}

impl<'a> Frame<'a> {
    /// Checks the structure of received bytes. `address` is the MAC address of the receiving port, `neighbour` that
    /// of the sender.
    ///
    /// Follows sections 2 and 3 of the wire format, in the order of its table of drop reasons.
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
        let (is_present, covers_body) = (link.hop_check.is_present(), link.hop_check.covers_body());
        let check = if is_present { hop_check(bytes, covers_body) } else { 0 };
        if u32_at(header, HOP_CHECK) != check {
            return Err(DropReason::HopCheck);
        }
        if link.epoch != epoch {
            return Err(DropReason::WrongEpoch);
        }
        Ok(Self { bytes, link })
    }

    /// Returns the frame without padding.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the bytes after the link header.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[FABRIC..]
    }

    /// Returns the destination of a routed frame without reading the rest of its header, for forwarding.
    #[must_use]
    pub fn destination(&self) -> NodeId {
        NodeId(u16_at(self.bytes, DESTINATION))
    }

    /// Returns the source of a routed frame.
    #[must_use]
    pub fn source(&self) -> NodeId {
        NodeId(u16_at(self.bytes, SOURCE))
    }

    /// Returns the path entropy of a routed frame.
    #[must_use]
    pub fn entropy(&self) -> u16 {
        u16_at(self.bytes, ENTROPY)
    }

    /// Returns true if the end-to-end check of a routed frame is valid.
    #[must_use]
    pub fn end_to_end_check_holds(&self) -> bool {
        u32_at(self.bytes, END_TO_END_CHECK) == end_to_end_check(self.bytes)
    }

    /// Returns the fabric header of a routed frame.
    pub fn fabric(&self) -> Result<FabricHeader, DropReason> {
        FabricHeader::of(self.bytes)
    }

    /// Returns the packed operations of a routed frame.
    #[must_use]
    pub fn operations(&self) -> &'a [u8] {
        &self.bytes[OPERATIONS..]
    }
}

impl LinkHeader {
    // Fields are read from and written to arrays of constant length, so that one bounds check covers all of them.
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
            hop_check: HopCheck::new(
                bytes[FLAGS] & FLAG_NO_HOP_CHECK == 0 || !kind.is_routed(),
                bytes[FLAGS] & FLAG_HOP_CHECK_OF_ALL != 0 || !kind.is_routed(),
            ),
            is_unprotected: bytes[FLAGS] & FLAG_UNPROTECTED != 0,
            is_marked: bytes[FLAGS] & FLAG_MARKED != 0,
        }
    }

    /// Writes the Ethernet and link headers, and the hop check if it is present. The body must be written before for
    /// frames that are not routed. If the check covers the body of a routed frame, call [`seal_hop`](super::seal_hop)
    /// after the body is written.
    ///
    /// A frame shorter than the header is not changed.
    pub fn write(&self, out: &mut [u8], ether_type: u16, source: [u8; 6], destination: [u8; 6]) {
        let Some(frame) = out.first_chunk_mut::<FABRIC>() else { return };
        frame[DESTINATION_MAC..SOURCE_MAC].copy_from_slice(&destination);
        frame[SOURCE_MAC..ETHER_TYPE].copy_from_slice(&source);
        frame[ETHER_TYPE..LINK].copy_from_slice(&ether_type.to_be_bytes());
        put_u16(frame, MAGIC, MAGIC_VALUE);
        frame[VERSION_KIND] = VERSION << 4 | self.kind as u8;
        let has_hop_check = self.hop_check.is_present() || !self.kind.is_routed();
        let is_sealed_later = self.hop_check.covers_body() && self.kind.is_routed();
        frame[FLAGS] = (u8::from(self.has_end_to_end_check) * FLAG_END_TO_END)
            | (u8::from(!has_hop_check) * FLAG_NO_HOP_CHECK)
            | (u8::from(is_sealed_later) * FLAG_HOP_CHECK_OF_ALL)
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
        if has_hop_check && !is_sealed_later {
            let check = hop_check(out, !self.kind.is_routed());
            put_u32(out, HOP_CHECK, check);
        }
    }
}

/// Returns the traffic field of a routed frame.
#[inline]
pub(super) const fn traffic(ack_now: bool, again: bool, demand: Demand) -> u8 {
    (ack_now as u8 * TRAFFIC_ACK_NOW) | (again as u8 * TRAFFIC_AGAIN) | demand.traffic()
}

impl FabricHeader {
    fn read(bytes: &[u8; OPERATIONS]) -> Option<Self> {
        let ack = match bytes[ACK_CLASS] {
            NO_CLASS => None,
            number => Some(StreamAck {
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
            demand: Demand::of_traffic(bytes[TRAFFIC]),
            ack,
            source_incarnation: u32_at(bytes, SOURCE_INCARNATION),
            destination_incarnation: u32_at(bytes, DESTINATION_INCARNATION),
            psn: u32_at(bytes, PSN),
            first_operation: u32_at(bytes, FIRST_OPERATION),
        })
    }

    /// Returns the fabric header of a routed frame that was checked before.
    pub fn of(frame: &[u8]) -> Result<Self, DropReason> {
        let header = frame.first_chunk().ok_or(DropReason::Truncated)?;
        Self::read(header).ok_or(DropReason::Malformed)
    }

    /// Writes the fabric header with a zero end-to-end check. A frame shorter than the header is not changed.
    pub fn write(&self, out: &mut [u8]) {
        let Some(frame) = out.first_chunk_mut::<OPERATIONS>() else { return };
        put_u16(frame, DESTINATION, self.destination.0);
        put_u16(frame, SOURCE, self.source.0);
        frame[CLASS] = self.class as u8;
        frame[OPERATION_COUNT] = self.operation_count;
        put_u16(frame, TENANT, self.tenant.0);
        put_u16(frame, ENTROPY, self.entropy);
        // W-36
        frame[TRAFFIC] = traffic(self.ack_now, self.again, self.demand);
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
