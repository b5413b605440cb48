//! Operations inside a routed frame (wire-format section 4): a list of 12-byte headers with their payloads.
//!
//! An address consists of (region, key), which [`Operation::Select`] sets until the next select in the frame, and the
//! offset in each header. Eighteen 64-byte stores fit into a 1500-byte frame that way.

use super::layout::{OPERATION_HEADER, put_u16, put_u64, u16_at, u32_at, u64_at};
use crate::ids::{Class, Key, RegionId};
use crate::operation::{Atomic, AtomicKind, SignalKind, Width};

pub(super) const SELECT: u8 = 1;
pub(super) const STORE: u8 = 2;
const LOAD: u8 = 3;
const ATOMIC: u8 = 4;
const SIGNAL: u8 = 5;
pub(super) const PUT: u8 = 6;
const GET: u8 = 7;
const MESSAGE: u8 = 8;
const OFFER: u8 = 9;
const PULL: u8 = 10;
const VOID: u8 = 11;
const LOAD_REPLY: u8 = 16;
const ATOMIC_REPLY: u8 = 17;
const GET_DATA: u8 = 18;
const REFUSAL: u8 = 19;
const RECEIVED: u8 = 20;
pub(super) const ACK: u8 = 32;
const GRANT: u8 = 33;

/// Bytes of an [`Operation::Select`] in a frame.
pub const SELECT_BYTES: usize = OPERATION_HEADER + 4;
/// Largest load request, in bytes; a request never crosses a boundary of this size.
pub const LOAD_BYTES_MAX: usize = 256;
/// Largest bitmap of an acknowledgement, in bytes.
pub const BITMAP_BYTES_MAX: usize = 512;

/// One operation of a frame. Payloads borrow the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Sets region and key of the operations that follow in this frame. Has no operation number.
    Select {
        /// Region at the destination.
        region: RegionId,
        /// Key of the region.
        key: Key,
    },
    /// Writes `data` at `offset`.
    Store {
        /// First byte in the region.
        offset: u64,
        /// Bytes to write.
        data: &'a [u8],
    },
    /// Reads `length` bytes at `offset`.
    Load {
        /// First byte in the region.
        offset: u64,
        /// Number of bytes, at most 256.
        length: u32,
    },
    /// Performs an atomic operation.
    Atomic {
        /// Offset in the region, in bytes.
        offset: u64,
        /// Operation to perform.
        atomic: Atomic,
    },
    /// Updates a signal word.
    Signal {
        /// Offset in the region, in bytes.
        offset: u64,
        /// Set or add.
        kind: SignalKind,
        /// Operand.
        value: u64,
        /// Number of operations directly before it that must be executed first: the parts of its put.
        counted: u32,
    },
    /// Part of a put: writes `data` at `offset`. The whole put is `[start, start + total)`, so that an invalid range
    /// writes no byte.
    Put {
        /// First byte of this part in the region.
        offset: u64,
        /// First byte of the whole put.
        start: u64,
        /// Length of the whole put.
        total: u64,
        /// Bytes to write.
        data: &'a [u8],
    },
    /// Requests `length` bytes at `offset`.
    Get {
        /// First byte in the region.
        offset: u64,
        /// Number of bytes.
        length: u32,
    },
    /// Tagged message with its data.
    Message {
        /// Tag of the message.
        tag: u64,
        /// Data of the message.
        data: &'a [u8],
    },
    /// Tagged message whose data is still at the sender.
    Offer {
        /// Tag of the message.
        tag: u64,
        /// Length of the message, in bytes.
        length: u32,
    },
    /// Requests the data of the offer with this number.
    Pull {
        /// Number of the offer in the request stream towards the sender of the pull.
        offer: u32,
        /// Number of bytes requested.
        length: u32,
    },
    /// Data of the load with this number.
    LoadReply {
        /// Number of the load in the request stream.
        operation: u32,
        /// Bytes read.
        data: &'a [u8],
    },
    /// Old value of the atomic with this number.
    AtomicReply {
        /// Number of the atomic in the request stream.
        operation: u32,
        /// Value before the operation.
        value: u64,
    },
    /// Part of the data of the get with this number.
    GetData {
        /// Number of the get in the request stream.
        operation: u32,
        /// Offset of this part within the get, in bytes.
        position: u32,
        /// Bytes read.
        data: &'a [u8],
    },
    /// The message with this number was taken by a receive.
    Received {
        /// Number of the message or offer in the request stream.
        operation: u32,
        /// Eager budget that is returned, in bytes.
        cost: u64,
    },
    /// The operation with this number was refused.
    Refusal {
        /// Number of the operation in its stream.
        operation: u32,
        /// Class of that stream.
        class: Class,
        /// Error code, see `OperationError::wire_code`.
        code: u8,
    },
    /// Replaces a part of a put, a message or get data whose bytes could not be read when the frame left.
    Void {
        /// Field of the replaced operation: for get data, the number of the get.
        field: u64,
        /// Number of meaningless payload bytes.
        length: usize,
    },
    /// Acknowledgement of a stream (only in frames of kind Ack).
    Ack {
        /// Class of the stream.
        class: Class,
        /// Next packet expected.
        psn: u32,
        /// Next operation that is not yet visible.
        operation: u32,
        /// True if a gap was seen: the sender goes back to `psn` (go-back-N only).
        hole: bool,
        /// True if a packet accepted since the last acknowledgement was marked.
        marked: bool,
        /// Bit i is set if packet `psn + 1 + i` is held (selective retransmission only).
        bitmap: &'a [u8],
    },
    /// Grant to a stream (only in frames of kind Ack).
    Grant {
        /// Class of the stream.
        class: Class,
        /// First packet that may not be sent.
        psn: u32,
    },
}

impl Operation<'_> {
    // W-11
    /// Returns true if the operation has a number in its stream.
    #[must_use]
    pub const fn is_numbered(&self) -> bool {
        !matches!(self, Self::Select { .. } | Self::Ack { .. } | Self::Grant { .. })
    }

    /// Returns the number of bytes of the operation in a frame.
    #[must_use]
    #[inline]
    pub fn encoded_bytes(&self) -> usize {
        OPERATION_HEADER
            + match self {
                Self::Select { .. }
                | Self::Load { .. }
                | Self::Get { .. }
                | Self::Offer { .. }
                | Self::Pull { .. } => 4,
                Self::Store { data, .. }
                | Self::Message { data, .. }
                | Self::LoadReply { data, .. }
                | Self::GetData { data, .. } => data.len(),
                Self::Atomic { .. } => 16,
                Self::Signal { .. } => 12,
                Self::AtomicReply { .. } | Self::Received { .. } => 8,
                Self::Put { data, .. } => 16 + data.len(),
                Self::Refusal { .. } | Self::Grant { .. } => 0,
                Self::Void { length, .. } => *length,
                Self::Ack { bitmap, .. } => bitmap.len(),
            }
    }

    /// Appends the operation to `out`. Inlined, because callers pass a constant kind of operation.
    #[inline(always)]
    pub fn encode(&self, out: &mut alloc::vec::Vec<u8>) {
        match *self {
            Self::Select { region, key } => {
                header(out, SELECT, 0, 4, key.0);
                out.extend_from_slice(&region.0.to_le_bytes());
            }
            Self::Store { offset, data } => {
                header(out, STORE, 0, data.len(), offset);
                out.extend_from_slice(data);
            }
            Self::Load { offset, length } => {
                header(out, LOAD, 0, 4, offset);
                out.extend_from_slice(&length.to_le_bytes());
            }
            Self::Atomic { offset, atomic } => {
                header(out, ATOMIC, atomic_flags(&atomic), 16, offset);
                out.extend_from_slice(&atomic.operand.to_le_bytes());
                out.extend_from_slice(&atomic.compare.to_le_bytes());
            }
            Self::Signal { offset, kind, value, counted } => {
                header(out, SIGNAL, u8::from(kind == SignalKind::Add), 12, offset);
                out.extend_from_slice(&value.to_le_bytes());
                out.extend_from_slice(&counted.to_le_bytes());
            }
            Self::Put { offset, start, total, data } => {
                put_header(out, offset, start, total, data.len());
                out.extend_from_slice(data);
            }
            Self::Get { offset, length } => {
                header(out, GET, 0, 4, offset);
                out.extend_from_slice(&length.to_le_bytes());
            }
            Self::Message { tag, data } => {
                header(out, MESSAGE, 0, data.len(), tag);
                out.extend_from_slice(data);
            }
            Self::Offer { tag, length } => {
                header(out, OFFER, 0, 4, tag);
                out.extend_from_slice(&length.to_le_bytes());
            }
            Self::Pull { offer, length } => {
                header(out, PULL, 0, 4, u64::from(offer));
                out.extend_from_slice(&length.to_le_bytes());
            }
            Self::Received { operation, cost } => {
                header(out, RECEIVED, 0, 8, u64::from(operation));
                out.extend_from_slice(&cost.to_le_bytes());
            }
            Self::LoadReply { operation, data } => {
                header(out, LOAD_REPLY, 0, data.len(), u64::from(operation));
                out.extend_from_slice(data);
            }
            Self::AtomicReply { operation, value } => {
                header(out, ATOMIC_REPLY, 0, 8, u64::from(operation));
                out.extend_from_slice(&value.to_le_bytes());
            }
            Self::GetData { operation, position, data } => {
                get_data_header(out, operation, position, data.len());
                out.extend_from_slice(data);
            }
            Self::Refusal { operation, class, code } => {
                header(out, REFUSAL, code, 0, u64::from(operation) | (class as u64) << 32);
            }
            Self::Void { field, length } => {
                header(out, VOID, 0, length, field);
                out.resize(out.len() + length, 0);
            }
            Self::Ack { class, psn, operation, hole, marked, bitmap } => {
                let flags = class as u8 | u8::from(marked) << 6 | u8::from(hole) << 7;
                header(out, ACK, flags, bitmap.len(), u64::from(psn) | u64::from(operation) << 32);
                out.extend_from_slice(bitmap);
            }
            Self::Grant { class, psn } => header(out, GRANT, class as u8, 0, u64::from(psn)),
        }
    }
}

/// Appends the header of a put whose `length` payload bytes follow separately.
pub fn put_header(out: &mut alloc::vec::Vec<u8>, offset: u64, start: u64, total: u64, length: usize) {
    header(out, PUT, 0, 16 + length, offset);
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(&total.to_le_bytes());
}

/// Appends the header of a message whose `length` payload bytes follow separately.
pub fn message_header(out: &mut alloc::vec::Vec<u8>, tag: u64, length: usize) {
    header(out, MESSAGE, 0, length, tag);
}

/// Appends the header of get data whose `length` payload bytes follow separately.
pub fn get_data_header(out: &mut alloc::vec::Vec<u8>, operation: u32, position: u32, length: usize) {
    header(out, GET_DATA, 0, length, u64::from(operation) | u64::from(position) << 32);
}

// W-52
/// Makes the operation void whose payload begins at `at`, in a list that is about to leave. It keeps its length, and
/// the receiver does not use its payload.
pub fn make_void(operations: &mut [u8], at: usize) {
    let mut start = 0;
    while let Some(header) = operations.get(start..start + OPERATION_HEADER) {
        let end = start + OPERATION_HEADER + usize::from(u16_at(header, 2));
        if end > at {
            operations[start] = VOID;
            let payload = start + OPERATION_HEADER..end.min(operations.len());
            operations[payload].fill(0);
            return;
        }
        start = end;
    }
}

/// Length of a put's header with its range, in bytes.
pub const PUT_BYTES: usize = OPERATION_HEADER + 16;

fn header(out: &mut alloc::vec::Vec<u8>, kind: u8, flags: u8, length: usize, field: u64) {
    let mut bytes = [0; OPERATION_HEADER];
    bytes[0] = kind;
    bytes[1] = flags;
    put_u16(&mut bytes, 2, length as u16);
    put_u64(&mut bytes, 4, field);
    out.extend_from_slice(&bytes);
}

fn atomic_flags(atomic: &Atomic) -> u8 {
    atomic.kind as u8 | if atomic.width == Width::Eight { 0x80 } else { 0 }
}

/// Iterator over the operations of a frame. Ends with an error at the first malformed one.
#[derive(Clone, Debug)]
pub struct Operations<'a> {
    bytes: &'a [u8],
    position: usize,
}

/// Error: the list of operations is malformed, and nothing of the frame may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadOperation;

impl<'a> Operations<'a> {
    /// Returns an iterator over the operations in `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Offset of the next operation, in bytes.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }

    #[inline]
    fn read(&mut self) -> Result<Operation<'a>, BadOperation> {
        let (operation, length) = first(&self.bytes[self.position..]).ok_or(BadOperation)?;
        self.position += length;
        Ok(operation)
    }
}

impl<'a> Iterator for Operations<'a> {
    type Item = Result<Operation<'a>, BadOperation>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.position >= self.bytes.len() {
            return None;
        }
        let result = self.read();
        if result.is_err() {
            self.position = self.bytes.len();
        }
        Some(result)
    }
}

/// Numbers of operations in a list, by sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationCounts {
    /// Operations that have a number in their stream.
    pub numbered: usize,
    /// Acknowledgements and grants.
    pub acknowledgements: usize,
    /// All operations, selects included.
    pub all: usize,
}

/// Counts the operations of a list without using them.
///
/// # Errors
/// If the list is malformed.
pub fn count_operations(bytes: &[u8]) -> Result<OperationCounts, BadOperation> {
    let mut count_operations = OperationCounts::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (operation, length) = first(rest).ok_or(BadOperation)?;
        count_operations.all += 1;
        count_operations.numbered += usize::from(operation.is_numbered());
        let is_answer = matches!(operation, Operation::Ack { .. } | Operation::Grant { .. });
        count_operations.acknowledgements += usize::from(is_answer);
        rest = &rest[length..];
    }
    Ok(count_operations)
}

/// Returns the first operation, and its length with header and payload. Inlined like `decode`, so that counting
/// operations does not build them, and serving one does not store it first.
#[inline(always)]
fn first(rest: &[u8]) -> Option<(Operation<'_>, usize)> {
    let header = rest.first_chunk::<OPERATION_HEADER>()?;
    let end = OPERATION_HEADER + usize::from(u16_at(header, 2));
    let payload = rest.get(OPERATION_HEADER..end)?;
    Some((decode(header[0], header[1], u64_at(header, 4), payload)?, end))
}

#[inline(always)]
fn decode(kind: u8, flags: u8, field: u64, payload: &[u8]) -> Option<Operation<'_>> {
    let exactly = |length: usize| (payload.len() == length).then_some(());
    Some(match kind {
        SELECT => {
            exactly(4)?;
            Operation::Select { region: RegionId(u32_at(payload, 0)), key: Key(field) }
        }
        STORE => Operation::Store { offset: field, data: payload },
        LOAD => {
            exactly(4)?;
            let length = u32_at(payload, 0);
            (length as usize <= LOAD_BYTES_MAX).then_some(())?;
            Operation::Load { offset: field, length }
        }
        ATOMIC => {
            exactly(16)?;
            Operation::Atomic { offset: field, atomic: decode_atomic(flags, payload)? }
        }
        SIGNAL => {
            exactly(12)?;
            let kind = match flags {
                0 => SignalKind::Set,
                1 => SignalKind::Add,
                _ => return None,
            };
            let counted = u32_at(payload, 8);
            Operation::Signal { offset: field, kind, value: u64_at(payload, 0), counted }
        }
        PUT => {
            let data = payload.get(16..)?;
            Operation::Put { offset: field, start: u64_at(payload, 0), total: u64_at(payload, 8), data }
        }
        GET => {
            exactly(4)?;
            Operation::Get { offset: field, length: u32_at(payload, 0) }
        }
        MESSAGE => Operation::Message { tag: field, data: payload },
        OFFER => {
            exactly(4)?;
            Operation::Offer { tag: field, length: u32_at(payload, 0) }
        }
        PULL => {
            exactly(4)?;
            Operation::Pull { offer: field as u32, length: u32_at(payload, 0) }
        }
        RECEIVED => {
            exactly(8)?;
            Operation::Received { operation: field as u32, cost: u64_at(payload, 0) }
        }
        LOAD_REPLY => Operation::LoadReply { operation: field as u32, data: payload },
        ATOMIC_REPLY => {
            exactly(8)?;
            Operation::AtomicReply { operation: field as u32, value: u64_at(payload, 0) }
        }
        GET_DATA => {
            Operation::GetData { operation: field as u32, position: (field >> 32) as u32, data: payload }
        }
        REFUSAL => {
            exactly(0)?;
            let class = Class::from_number(u8::try_from(field >> 32).ok()?)?;
            Operation::Refusal { operation: field as u32, class, code: flags }
        }
        VOID => Operation::Void { field, length: payload.len() },
        ACK => {
            (payload.len() <= BITMAP_BYTES_MAX).then_some(())?;
            Operation::Ack {
                class: Class::from_number(flags & 0x3f)?,
                psn: field as u32,
                operation: (field >> 32) as u32,
                hole: flags & 0x80 != 0,
                marked: flags & 0x40 != 0,
                bitmap: payload,
            }
        }
        GRANT => {
            exactly(0)?;
            Operation::Grant { class: Class::from_number(flags)?, psn: u32::try_from(field).ok()? }
        }
        _ => return None,
    })
}

fn decode_atomic(flags: u8, payload: &[u8]) -> Option<Atomic> {
    let kind = *AtomicKind::ALL.get(usize::from(flags & 0x7f))?;
    let width = if flags & 0x80 == 0 { Width::Four } else { Width::Eight };
    Some(Atomic { kind, width, operand: u64_at(payload, 0), compare: u64_at(payload, 8) })
}
