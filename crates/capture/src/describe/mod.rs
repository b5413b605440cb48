//! A frame as fields, for `rackloom decode --json` and for its one line.
//!
//! Names are those of the fields in `scripts/rackloom.lua`, without their `rackloom.` in front; a test reads one capture
//! with both and compares every value. Meaning comes from the protocol's own parser, so what is shown here is what a
//! receiver would believe: nothing of a frame whose hop check fails, because a flipped bit may be anywhere.

mod control;
mod operation;

use rackloom_protocol::wire::layout::{
    DESTINATION_MAC, ETHER_TYPE, LINK, MAGIC, MAGIC_VALUE, SOURCE_MAC, u16_at,
};
use rackloom_protocol::wire::{Frame, FrameKind};
use rackloom_protocol::{Class, DropReason};
use serde::Serialize;

use crate::foreign;

pub use control::{Control, Edge};
pub use operation::OperationFields;

/// What a frame says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Described {
    /// Of this hop.
    pub destination_mac: String,
    /// Of this hop.
    pub source_mac: String,
    /// Ours by default is 0x88b5.
    pub ether_type: u16,
    /// Bytes of the frame.
    pub frame_bytes: usize,
    /// Which protocol it is of, if it is none of ours and known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign: Option<String>,
    /// Why nothing more is said, in the words in which a receiver counts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<&'static str>,
    /// The link header.
    #[serde(flatten)]
    pub link: Option<LinkFields>,
    /// The fabric header, of frames that are routed.
    #[serde(flatten)]
    pub fabric: Option<FabricFields>,
    /// What neighbours say to each other.
    #[serde(flatten)]
    pub control: Option<Control>,
    /// The operations, of frames that are routed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationFields>,
}

/// The link header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkFields {
    /// What the frame is for.
    pub kind: &'static str,
    /// The rack's identity.
    pub epoch: u16,
    /// Bytes after the link header.
    pub length: u16,
    /// Hops left.
    pub hop_limit: u8,
    /// Virtual channel of the link.
    pub channel: u8,
    /// Low bits of the sender's life.
    pub session: u16,
    /// Link sequence.
    pub seq: u32,
    /// Last link sequence received in order.
    pub link_ack: u32,
    /// Credits consumed.
    pub consumed: u32,
    /// Credits freed.
    pub freed: u32,
    /// It has met congestion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marked: Option<bool>,
}

/// The fabric header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FabricFields {
    /// Member.
    pub destination: u16,
    /// Member.
    pub source: u16,
    /// Message class.
    pub class: &'static str,
    /// Numbered operations (data), acknowledgements (ack).
    pub op_count: u8,
    /// Of the source.
    pub tenant: u16,
    /// Chooses among equal paths.
    pub entropy: u16,
    /// The sender wants to be acknowledged at once.
    pub ack_now: bool,
    /// The packet has been sent before.
    pub again: bool,
    /// Life of the source.
    pub source_life: u32,
    /// Life of the destination, as the source knows it.
    pub destination_life: u32,
    /// Packet sequence number.
    pub psn: u32,
    /// Number of the first operation.
    pub first_op: u32,
    /// The acknowledgement that rides along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack: Option<AckFields>,
    /// `good`, `bad` or `absent`.
    pub end_to_end_check: &'static str,
}

/// The acknowledgement that rides on a data frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AckFields {
    /// Of which class.
    pub class: &'static str,
    /// Next packet expected.
    pub psn: u32,
    /// Next operation not yet visible.
    pub op: u32,
}

/// Describe the bytes of a frame. Takes any bytes.
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
    /// Whether the frame is one of ours at all.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.problem != Some(DropReason::ForeignEtherType.name())
    }
}

/// The protocol's own parser, told to expect this frame's addresses, type and epoch.
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
        source_life: header.source_incarnation,
        destination_life: header.destination_incarnation,
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

/// All kinds of frame by name, in order of their numbers.
#[must_use]
pub fn kinds() -> [&'static str; FrameKind::ALL.len()] {
    FrameKind::ALL.map(FrameKind::name)
}

/// All classes by name, in order of their numbers.
#[must_use]
pub fn classes() -> [&'static str; Class::COUNT] {
    Class::ALL.map(Class::name)
}

fn mac(bytes: &[u8], at: usize) -> String {
    let address: Vec<_> = bytes.iter().skip(at).take(6).map(|byte| format!("{byte:02x}")).collect();
    address.join(":")
}
