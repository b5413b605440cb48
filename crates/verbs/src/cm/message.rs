//! Messages between two identifiers of connections, and their bytes.
//!
//! Numbers are in little-endian order. A message that is too short, too long or of an unknown kind is dropped: peers are other programs.

use crate::engine::NOTE_BYTES;

/// Most bytes of private data of a request.
pub const REQUEST_DATA_BYTES: usize = 56;
/// Most bytes of private data of a reply.
pub const ACCEPT_DATA_BYTES: usize = 196;
/// Most bytes of private data of a rejection.
pub const REJECT_DATA_BYTES: usize = 148;

/// Reason of a rejection: too many requests wait.
pub(super) const REASON_NO_RESOURCES: u16 = 3;
/// Reason of a rejection: the other side has ended its attempt.
pub(super) const REASON_TIMEOUT: u16 = 4;
/// Reason of a rejection: no program listens at the port.
pub const REASON_NO_LISTENER: u16 = 8;
/// Reason of a rejection: the program has rejected the request.
pub const REASON_CONSUMER: u16 = 28;

/// Queue pair of one side of a connection, as the other side needs to know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Number of the queue pair.
    pub queue_pair: u32,
    /// Number of the first message that the side sends.
    pub first_message: u32,
    /// Reads and atomic operations of the peer that the side executes at a time.
    pub responder_resources: u8,
    /// Reads and atomic operations that the side has outstanding at a time.
    pub initiator_depth: u8,
    /// The side wants flow control. Programs see the value, and nothing else uses it.
    pub flow_control: u8,
    /// Retries of the peer if no receive is posted.
    pub rnr_retry_count: u8,
    /// The side has a shared receive queue.
    pub has_shared: u8,
}

/// Content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Looks for a listener.
    Find {
        /// Port space.
        space: u16,
        /// Port.
        port: u16,
    },
    /// Answer to a search.
    Found {
        /// A program listens at the port.
        listens: bool,
    },
    /// Request for a connection.
    Request {
        /// Port space.
        space: u16,
        /// Port of the listener.
        port: u16,
        /// Port of the sender.
        source_port: u16,
        /// Retries without an answer.
        retry_count: u8,
        /// Sender.
        side: Side,
        /// Private data.
        data: Vec<u8>,
    },
    /// The request is accepted.
    Reply {
        /// Sender.
        side: Side,
        /// Private data.
        data: Vec<u8>,
    },
    /// The queue pair of the side that sent the request is ready.
    Ready,
    /// There is no connection.
    Reject {
        /// Reason, of the InfiniBand specification.
        reason: u16,
        /// Private data.
        data: Vec<u8>,
    },
    /// The connection ends.
    Disconnect,
    /// Answer to the end.
    Disconnected,
}

/// Message from one identifier to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number of the receiver. 0 if the sender does not know it.
    pub to: u64,
    /// Number of the sender.
    pub from: u64,
    /// Content.
    pub body: Body,
}

const FIND: u8 = 1;
const FOUND: u8 = 2;
const REQUEST: u8 = 3;
const REPLY: u8 = 4;
const READY: u8 = 5;
const REJECT: u8 = 6;
const DISCONNECT: u8 = 7;
const DISCONNECTED: u8 = 8;

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(|[value]| value)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn side(&mut self) -> Option<Side> {
        let (queue_pair, first_message) = (self.u32()?, self.u32()?);
        let [responder_resources, initiator_depth, flow_control, rnr_retry_count, has_shared] =
            self.take()?;
        let is_right = queue_pair < 1 << 24 && first_message < 1 << 24 && rnr_retry_count < 8;
        is_right.then_some(Side {
            queue_pair,
            first_message,
            responder_resources,
            initiator_depth,
            flow_control,
            rnr_retry_count,
            has_shared,
        })
    }

    /// Returns the rest, if it is data of at most this length.
    fn data(&mut self, bytes_max: usize) -> Option<Vec<u8>> {
        let rest = std::mem::take(&mut self.0);
        (rest.len() <= bytes_max).then(|| rest.to_vec())
    }
}

fn put_side(bytes: &mut Vec<u8>, side: &Side) {
    bytes.extend(side.queue_pair.to_le_bytes());
    bytes.extend(side.first_message.to_le_bytes());
    let rest = [
        side.responder_resources,
        side.initiator_depth,
        side.flow_control,
        side.rnr_retry_count,
        side.has_shared,
    ];
    bytes.extend(rest);
}

impl Message {
    /// Returns the bytes of the message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let kind = match &self.body {
            Body::Find { .. } => FIND,
            Body::Found { .. } => FOUND,
            Body::Request { .. } => REQUEST,
            Body::Reply { .. } => REPLY,
            Body::Ready => READY,
            Body::Reject { .. } => REJECT,
            Body::Disconnect => DISCONNECT,
            Body::Disconnected => DISCONNECTED,
        };
        let mut bytes = vec![kind];
        bytes.extend(self.to.to_le_bytes());
        bytes.extend(self.from.to_le_bytes());
        match &self.body {
            Body::Find { space, port } => {
                [space, port].iter().for_each(|value| bytes.extend(value.to_le_bytes()));
            }
            Body::Found { listens } => bytes.push(u8::from(*listens)),
            Body::Request { space, port, source_port, retry_count, side, data } => {
                [space, port, source_port].iter().for_each(|value| bytes.extend(value.to_le_bytes()));
                bytes.push(*retry_count);
                put_side(&mut bytes, side);
                bytes.extend(data);
            }
            Body::Reply { side, data } => {
                put_side(&mut bytes, side);
                bytes.extend(data);
            }
            Body::Reject { reason, data } => {
                bytes.extend(reason.to_le_bytes());
                bytes.extend(data);
            }
            Body::Ready | Body::Disconnect | Body::Disconnected => {}
        }
        debug_assert!(bytes.len() <= NOTE_BYTES, "a message fits a note");
        bytes
    }

    /// Returns the message with these bytes, or `None` if there is none.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut read = Reader(bytes);
        let (kind, to, from) = (read.u8()?, read.u64()?, read.u64()?);
        let body = match kind {
            FIND => Body::Find { space: read.u16()?, port: read.u16()? },
            FOUND => Body::Found { listens: read.u8()? == 1 },
            REQUEST => {
                let (space, port, source_port) = (read.u16()?, read.u16()?, read.u16()?);
                let (retry_count, side) = (read.u8()?, read.side()?);
                let data = read.data(REQUEST_DATA_BYTES)?;
                if retry_count > 7 {
                    return None;
                }
                Body::Request { space, port, source_port, retry_count, side, data }
            }
            REPLY => Body::Reply { side: read.side()?, data: read.data(ACCEPT_DATA_BYTES)? },
            READY => Body::Ready,
            REJECT => Body::Reject { reason: read.u16()?, data: read.data(REJECT_DATA_BYTES)? },
            DISCONNECT => Body::Disconnect,
            DISCONNECTED => Body::Disconnected,
            _ => return None,
        };
        read.0.is_empty().then_some(Self { to, from, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples() -> Vec<Message> {
        let side = Side {
            queue_pair: 0xff_ffff,
            first_message: 0x12_3456,
            responder_resources: 255,
            initiator_depth: 16,
            flow_control: 1,
            rnr_retry_count: 7,
            has_shared: 1,
        };
        let request = Body::Request {
            space: 0x106,
            port: 7174,
            source_port: u16::MAX,
            retry_count: 7,
            side,
            data: vec![5; REQUEST_DATA_BYTES],
        };
        let bodies = [
            Body::Find { space: 0x106, port: 1 },
            Body::Found { listens: true },
            Body::Found { listens: false },
            request,
            Body::Reply { side, data: vec![6; ACCEPT_DATA_BYTES] },
            Body::Reply { side, data: Vec::new() },
            Body::Ready,
            Body::Reject { reason: REASON_CONSUMER, data: vec![7; REJECT_DATA_BYTES] },
            Body::Disconnect,
            Body::Disconnected,
        ];
        bodies.into_iter().map(|body| Message { to: u64::MAX - 1, from: 9, body }).collect()
    }

    #[test]
    fn messages_are_restored_from_their_bytes() {
        for message in examples() {
            let bytes = message.encode();
            assert!(bytes.len() <= NOTE_BYTES, "{message:?}");
            assert_eq!(Message::decode(&bytes), Some(message));
        }
    }

    #[test]
    fn no_bytes_of_a_peer_cause_a_panic_and_too_long_data_are_refused() {
        for message in examples() {
            let bytes = message.encode();
            for length in 0..bytes.len() {
                let _ = Message::decode(&bytes[..length]);
            }
            let longer = [&bytes[..], &[0; NOTE_BYTES]].concat();
            assert_eq!(Message::decode(&longer), None, "{message:?} with more bytes");
        }
        assert_eq!(Message::decode(&[99; 17]), None);
    }

    #[test]
    fn values_that_no_queue_pair_has_are_refused() {
        for side in
            [Side { queue_pair: 1 << 24, ..Side::default() }, Side { rnr_retry_count: 8, ..Side::default() }]
        {
            let message = Message { to: 1, from: 2, body: Body::Reply { side, data: Vec::new() } };
            assert_eq!(Message::decode(&message.encode()), None, "{side:?}");
        }
    }
}
