//! A frame as fields, for `rackloom decode --json` and for its one line.
//!
//! Names are those of the fields in `scripts/rackloom.lua`, without the prefix `rackloom.`; a test reads one capture
//! with both and compares every value. Values come from the protocol's own parser, so they are those that a
//! receiver would use: none for a frame whose hop check fails, because a flipped bit may be anywhere.

mod control;
mod operation;

use rackloom_protocol::wire::demand::Demand;
use rackloom_protocol::wire::layout::{
    DESTINATION_MAC, ETHER_TYPE, LINK, MAGIC, MAGIC_VALUE, SOURCE_MAC, u16_at,
};
use rackloom_protocol::wire::{Frame, FrameKind};
use rackloom_protocol::{Class, DropReason};
use serde::Serialize;

use crate::foreign;

pub use control::{Control, Edge, MemberLinks};
pub use operation::OperationFields;

/// Fields of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Described {
    /// Destination of this hop.
    pub destination_mac: String,
    /// Source of this hop.
    pub source_mac: String,
    /// EtherType; the default of this protocol is 0x88b5.
    pub ether_type: u16,
    /// Length of the frame, in bytes.
    pub frame_bytes: usize,
    /// Description of a frame of another known protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign: Option<String>,
    /// Reason why there are no further fields, as a receiver's drop counter names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<&'static str>,
    /// Fields of the link header.
    #[serde(flatten)]
    pub link: Option<LinkFields>,
    /// Fields of the fabric header, of frames that are routed.
    #[serde(flatten)]
    pub fabric: Option<FabricFields>,
    /// Body of a frame between neighbours.
    #[serde(flatten)]
    pub control: Option<Control>,
    /// Operations, of frames that are routed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationFields>,
}

/// Fields of the link header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkFields {
    /// Kind of the frame.
    pub kind: &'static str,
    /// Identity of the rack.
    pub epoch: u16,
    /// Number of bytes after the link header.
    pub length: u16,
    /// Number of hops left.
    pub hop_limit: u8,
    /// Virtual channel of the link.
    pub channel: u8,
    /// Low bits of the sender's incarnation.
    pub session: u16,
    /// Link sequence number.
    pub seq: u32,
    /// Last link sequence number received in order.
    pub link_ack: u32,
    /// Credits consumed.
    pub consumed: u32,
    /// Credits freed.
    pub freed: u32,
    /// True if the frame has met congestion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marked: Option<bool>,
}

/// Fields of the fabric header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FabricFields {
    /// Number of the destination.
    pub destination: u16,
    /// Number of the source.
    pub source: u16,
    /// Message class.
    pub class: &'static str,
    /// Number of numbered operations (data), or of acknowledgements (ack).
    pub op_count: u8,
    /// Tenant of the source.
    pub tenant: u16,
    /// Value that selects among equal paths.
    pub entropy: u16,
    /// True if the sender requests an immediate acknowledgement.
    pub ack_now: bool,
    /// True if the packet is a retransmission.
    pub again: bool,
    /// Packets that wait at the source behind this one, if the rack has grants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demand: Option<usize>,
    /// Incarnation of the source.
    pub source_incarnation: u32,
    /// Incarnation of the destination, as the source knows it.
    pub destination_incarnation: u32,
    /// Packet sequence number.
    pub psn: u32,
    /// Number of the first operation.
    pub first_op: u32,
    /// Acknowledgement on a data frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack: Option<AckFields>,
    /// `good`, `bad` or `absent`.
    pub end_to_end_check: &'static str,
}

/// Acknowledgement on a data frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AckFields {
    /// Class of the acknowledged stream.
    pub class: &'static str,
    /// Next expected packet.
    pub psn: u32,
    /// Next operation that is not visible yet.
    pub op: u32,
}

/// Returns the fields of a frame. Accepts any bytes.
#[must_use]
pub fn describe(bytes: &[u8]) -> Described {
    let mut described = Described {
        destination_mac: mac(bytes, DESTINATION_MAC),
        source_mac: mac(bytes, SOURCE_MAC),
        ether_type: bytes.get(ETHER_TYPE..LINK).map_or(0, |field| u16::from_be_bytes([field[0], field[1]])),
        frame_bytes: bytes.len(),
        foreign: None,
        problem: None,
        link: None,
        fabric: None,
        control: None,
        operations: Vec::new(),
    };
    match parse(bytes) {
        Ok(frame) => fill(&mut described, &frame),
        Err(reason) => {
            described.problem = Some(reason.name());
            described.foreign = foreign::in_words(bytes);
        }
    }
    described
}

impl Described {
    /// Returns true if the frame belongs to this protocol.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.problem != Some(DropReason::ForeignEtherType.name())
    }
}

/// Parses a frame with the protocol's own parser, which gets this frame's addresses, type and epoch as the expected ones.
fn parse(bytes: &[u8]) -> Result<Frame<'_>, DropReason> {
    let head = bytes.get(..LINK).ok_or(DropReason::Truncated)?;
    if bytes.len() < MAGIC + 2 || u16_at(bytes, MAGIC) != MAGIC_VALUE {
        return Err(DropReason::ForeignEtherType);
    }
    let ether_type = u16::from_be_bytes([head[ETHER_TYPE], head[ETHER_TYPE + 1]]);
    let address = |at: usize| {
        let mut address = [0; 6];
        address.copy_from_slice(&head[at..at + 6]);
        address
    };
    let epoch = rackloom_protocol::wire::layout::EPOCH;
    let epoch = if bytes.len() < epoch + 2 { 0 } else { u16_at(bytes, epoch) };
    Frame::parse(bytes, ether_type, address(DESTINATION_MAC), address(SOURCE_MAC), epoch)
}

fn fill(described: &mut Described, frame: &Frame<'_>) {
    let link = &frame.link;
    described.link = Some(LinkFields {
        kind: link.kind.name(),
        epoch: link.epoch,
        length: link.length,
        hop_limit: link.hop_limit,
        channel: link.channel.0,
        session: link.session,
        seq: link.sequence,
        link_ack: link.link_ack,
        consumed: link.consumed,
        freed: link.freed,
        marked: link.is_marked.then_some(true),
    });
    if !link.kind.is_routed() {
        described.control = Control::of(link.kind, frame.body());
        let has_body = !matches!(link.kind, FrameKind::LinkAck | FrameKind::LinkNack);
        let is_malformed = has_body && described.control.is_none();
        described.problem = is_malformed.then(|| DropReason::Malformed.name());
        return;
    }
    let Ok(header) = frame.fabric() else {
        described.problem = Some(DropReason::Malformed.name());
        return;
    };
    let end_to_end_check = match link.has_end_to_end_check {
        false => "absent",
        true if frame.end_to_end_check_holds() => "good",
        true => "bad",
    };
    described.fabric = Some(FabricFields {
        destination: header.destination.0,
        source: header.source.0,
        class: header.class.name(),
        op_count: header.operation_count,
        tenant: header.tenant.0,
        entropy: header.entropy,
        ack_now: header.ack_now,
        again: header.again,
        demand: (header.demand != Demand::NONE).then(|| header.demand.packets()),
        source_incarnation: header.source_incarnation,
        destination_incarnation: header.destination_incarnation,
        psn: header.psn,
        first_op: header.first_operation,
        ack: header.ack.map(|ack| AckFields { class: ack.class.name(), psn: ack.psn, op: ack.operation }),
        end_to_end_check,
    });
    let complete = operation::describe(frame.operations(), header.first_operation, &mut described.operations);
    described.problem = match end_to_end_check {
        "bad" => Some(DropReason::EndToEndCheck.name()),
        _ => (!complete).then(|| DropReason::Malformed.name()),
    };
}

/// Returns all kinds of frame by name, in order of their numbers.
#[must_use]
pub fn kinds() -> [&'static str; FrameKind::ALL.len()] {
    FrameKind::ALL.map(FrameKind::name)
}

/// Returns all classes by name, in order of their numbers.
#[must_use]
pub fn classes() -> [&'static str; Class::COUNT] {
    Class::ALL.map(Class::name)
}

fn mac(bytes: &[u8], at: usize) -> String {
    let address: Vec<_> = bytes.iter().skip(at).take(6).map(|byte| format!("{byte:02x}")).collect();
    address.join(":")
}
