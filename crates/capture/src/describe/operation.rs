//! The operations of a frame as fields. Payload is shown by its length only.

use rackloom_protocol::operation::SignalKind;
use rackloom_protocol::wire::packed::{Operation, Operations};
use rackloom_protocol::{OperationError, RegionId};
use serde::Serialize;

/// Fields of an operation. Fields that it does not have are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OperationFields {
    /// Name of the operation.
    pub op: &'static str,
    /// Number within the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Region of the operation: its own field, or that of the last select.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<u32>,
    /// Key of a select.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<u64>,
    /// Offset of the first byte in the region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Number of bytes that it carries or requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// `fetch-add`, `compare-swap`, `swap` or `set`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub atomic: Option<&'static str>,
    /// Width of an atomic, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u64>,
    /// Operand of an atomic or a signal; old value in an atomic's reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// Expected value of a compare-swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare: Option<u64>,
    /// Kind of signal: `set` or `add`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<&'static str>,
    /// Number of operations directly before a signal that it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<u32>,
    /// Offset of the first byte of the whole put.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// Length of the whole put.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Tag of a message or offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<u64>,
    /// Number of the operation to which this one refers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
    /// Class of that operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_class: Option<&'static str>,
    /// Offset of a part of a get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// Code of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<u8>,
    /// Name of that code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Eager budget that is returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// Next expected packet; first packet that a grant does not contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_psn: Option<u32>,
    /// Next operation that is not visible yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_op: Option<u32>,
    /// True if a packet is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hole: Option<bool>,
    /// True if an accepted packet had met congestion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marked: Option<bool>,
    /// Packets beyond the missing one, as hexadecimal bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bitmap: Option<String>,
}

/// Appends the operations in these bytes. Returns true if all of them could be parsed.
pub(super) fn describe(bytes: &[u8], first_number: u32, out: &mut Vec<OperationFields>) -> bool {
    let mut number = first_number;
    let mut selected = None;
    for operation in Operations::new(bytes) {
        let Ok(operation) = operation else { return false };
        let mut fields = fields(&operation);
        if let Operation::Select { region: RegionId(region), .. } = operation {
            selected = Some(region);
        }
        if fields.offset.is_some() {
            fields.region = selected;
        }
        if operation.is_numbered() {
            fields.number = Some(number);
            number = number.wrapping_add(1);
        }
        out.push(fields);
    }
    true
}

fn fields(operation: &Operation<'_>) -> OperationFields {
    let named = |op| OperationFields { op, ..OperationFields::default() };
    let bytes = |data: &[u8]| Some(data.len() as u64);
    match *operation {
        Operation::Select { region, key } => {
            OperationFields { region: Some(region.0), key: Some(key.0), ..named("select") }
        }
        Operation::Store { offset, data } => {
            OperationFields { offset: Some(offset), length: bytes(data), ..named("store") }
        }
        Operation::Load { offset, length } => {
            OperationFields { offset: Some(offset), length: Some(length.into()), ..named("load") }
        }
        Operation::Atomic { offset, atomic } => OperationFields {
            offset: Some(offset),
            atomic: Some(atomic.kind.name()),
            width: Some(atomic.width.bytes()),
            value: Some(atomic.operand),
            compare: Some(atomic.compare),
            ..named("atomic")
        },
        Operation::Signal { offset, kind, value, counted } => OperationFields {
            counted: Some(counted),
            offset: Some(offset),
            signal: Some(if kind == SignalKind::Set { "set" } else { "add" }),
            value: Some(value),
            ..named("signal")
        },
        Operation::Put { offset, start, total, data } => OperationFields {
            offset: Some(offset),
            length: bytes(data),
            start: Some(start),
            total: Some(total),
            ..named("put")
        },
        Operation::Get { offset, length } => {
            OperationFields { offset: Some(offset), length: Some(length.into()), ..named("get") }
        }
        Operation::Message { tag, data } => {
            OperationFields { tag: Some(tag), length: bytes(data), ..named("message") }
        }
        Operation::Offer { tag, length } => {
            OperationFields { tag: Some(tag), length: Some(length.into()), ..named("offer") }
        }
        Operation::Void { length, .. } => OperationFields { length: Some(length as u64), ..named("void") },
        _ => answer(operation),
    }
}

/// Returns the fields of an operation that refers to another one.
fn answer(operation: &Operation<'_>) -> OperationFields {
    let about = |op, of| OperationFields { op, of: Some(of), ..OperationFields::default() };
    let bytes = |data: &[u8]| Some(data.len() as u64);
    match *operation {
        Operation::Pull { offer, length } => {
            OperationFields { length: Some(length.into()), ..about("pull", offer) }
        }
        Operation::LoadReply { operation, data } => {
            OperationFields { length: bytes(data), ..about("load-reply", operation) }
        }
        Operation::AtomicReply { operation, value } => {
            OperationFields { value: Some(value), ..about("atomic-reply", operation) }
        }
        Operation::GetData { operation, position, data } => {
            OperationFields { position: Some(position), length: bytes(data), ..about("get-data", operation) }
        }
        Operation::Received { operation, cost } => {
            OperationFields { budget: Some(cost), ..about("received", operation) }
        }
        Operation::Refusal { operation, class, code } => OperationFields {
            of_class: Some(class.name()),
            code: Some(code),
            reason: OperationError::from_wire_code(code).map(OperationError::name),
            ..about("refusal", operation)
        },
        Operation::Ack { class, psn, operation, hole, marked, bitmap } => OperationFields {
            op: "ack",
            of_class: Some(class.name()),
            next_psn: Some(psn),
            next_op: Some(operation),
            hole: Some(hole),
            marked: marked.then_some(true),
            bitmap: (!bitmap.is_empty()).then(|| bitmap.iter().map(|byte| format!("{byte:02x}")).collect()),
            ..OperationFields::default()
        },
        Operation::Grant { class, psn } => OperationFields {
            op: "grant",
            of_class: Some(class.name()),
            next_psn: Some(psn),
            ..OperationFields::default()
        },
        // All other operations were handled before.
        _ => OperationFields::default(),
    }
}
