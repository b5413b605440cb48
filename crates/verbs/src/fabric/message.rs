//! Messages between two processes that have the device, and their bytes.
//!
//! Numbers are in little-endian order. A message that is too short, too long or of an unknown kind is dropped: peers are other programs.

use super::datagrams::Position;
use crate::engine::{Datagram, NOTE_BYTES, Outcome, Remote};
use crate::layout::Gid;

/// Largest message.
pub(super) const MESSAGE_BYTES: usize = 4096 + 256;
/// Most bytes of data of a datagram.
const DATAGRAM_BYTES: usize = 4096;
/// Most bytes of data that a message for a receive carries. Inline data fit, and the message fits the 4096 bytes that the fabric sends at once.
pub(super) const DATA_BYTES: usize = 4096 - 32;
/// Most outcomes of a message.
pub(super) const REPLIES_MAX: usize = 64;
/// Most parts of memory from which the data of a message are fetched.
pub(super) const SOURCES_MAX: usize = 32;

/// Memory of the sender that the receiver reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) region: u32,
    pub(super) key: u64,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// Right of a queue pair to access a region of its peer with operations of the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    /// Address of the first byte in requests.
    pub(super) virtual_base: u64,
    pub(super) length: u64,
    /// Key of the region in the fabric.
    pub(super) key: u64,
}

impl Grant {
    /// Returns the offset of an access in the region, or `None` if the access is not within it. An access of no bytes is anywhere.
    pub(super) fn offset(&self, remote: Remote, length: usize) -> Option<u64> {
        let offset = remote.address.wrapping_sub(self.virtual_base);
        let is_within = offset.checked_add(length as u64).is_some_and(|end| end <= self.length);
        (length == 0 || is_within).then_some(offset)
    }
}

/// Data of a message for a receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    Sources(Vec<Source>),
}

/// Sender and destination of a request, and its number at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) number: u64,
    pub(super) from: u32,
    pub(super) to: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Message for a receive of a connected queue pair.
    Send { route: Route, message: u32, immediate: Option<u32>, is_solicited: bool, content: Content },
    /// The data of a write with immediate data have been written.
    Written { route: Route, message: u32, length: u64, immediate: u32, is_solicited: bool },
    /// Application for a grant, with the first access.
    Apply { route: Route, key: u32, address: u64, length: u64, right: u32 },
    /// Datagram.
    Datagram {
        from: u32,
        to: u32,
        immediate: Option<u32>,
        is_solicited: bool,
        header: Datagram,
        /// Position among the datagrams between the two processes. It is set when the datagram leaves.
        at: Position,
        data: Vec<u8>,
    },
    /// Outcomes of requests, by the numbers of the requests.
    Replies(Vec<(u64, Outcome)>),
    /// Answer to an application.
    Granted { number: u64, grant: Grant },
    /// The queue pair executes requests of its peer no longer: grants for it are over.
    Closed { queue_pair: u32 },
    /// Note of connection management.
    Note(Vec<u8>),
}

const SEND: u8 = 1;
const WRITTEN: u8 = 2;
const APPLY: u8 = 3;
const DATAGRAM: u8 = 4;
const REPLIES: u8 = 5;
const GRANTED: u8 = 6;
const CLOSED: u8 = 7;
const NOTE: u8 = 8;

const HAS_IMMEDIATE: u8 = 1;
const IS_SOLICITED: u8 = 2;
const HAS_SOURCES: u8 = 4;

fn flags(immediate: Option<u32>, is_solicited: bool) -> u8 {
    (if immediate.is_some() { HAS_IMMEDIATE } else { 0 }) | if is_solicited { IS_SOLICITED } else { 0 }
}

struct Writer(Vec<u8>);

impl Writer {
    fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.0.extend_from_slice(value);
        self
    }

    fn route(&mut self, route: Route) -> &mut Self {
        self.u64(route.number).u32(route.from).u32(route.to)
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(|[value]| value)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn route(&mut self) -> Option<Route> {
        Some(Route { number: self.u64()?, from: self.u32()?, to: self.u32()? })
    }

    fn immediate(&mut self, flags: u8) -> Option<Option<u32>> {
        let value = self.u32()?;
        Some((flags & HAS_IMMEDIATE != 0).then_some(value))
    }

    /// Returns the rest, if it is data of at most this length.
    fn data(&mut self, bytes_max: usize) -> Option<&'a [u8]> {
        let rest = std::mem::take(&mut self.0);
        (rest.len() <= bytes_max).then_some(rest)
    }

    fn source(&mut self) -> Option<Source> {
        Some(Source { region: self.u32()?, key: self.u64()?, offset: self.u64()?, length: self.u64()? })
    }

    fn sources(&mut self) -> Option<Vec<Source>> {
        let count = usize::from(self.u8()?);
        if count > SOURCES_MAX {
            return None;
        }
        let sources: Vec<_> = (0..count).map(|_| self.source()).collect::<Option<_>>()?;
        // The sum of the lengths is the length of the message.
        sources.iter().try_fold(0_u64, |sum, source| sum.checked_add(source.length)).map(|_| sources)
    }

    fn datagram(&mut self) -> Option<Datagram> {
        Some(Datagram {
            key: self.u32()?,
            source: self.take::<16>()? as Gid,
            destination: self.take::<16>()? as Gid,
            traffic_class: self.u8()?,
            flow_label: self.u32()?,
            hop_limit: self.u8()?,
        })
    }

    fn replies(&mut self) -> Option<Vec<(u64, Outcome)>> {
        let mut replies = Vec::new();
        while !self.0.is_empty() {
            replies.push((self.u64()?, self.outcome()?));
        }
        (replies.len() <= REPLIES_MAX).then_some(replies)
    }

    fn outcome(&mut self) -> Option<Outcome> {
        let (code, wait_ns) = (self.u8()?, self.u64()?);
        Some(match code {
            0 => Outcome::Done,
            1 => Outcome::NotReady { wait_ns },
            2 => Outcome::NoAnswer,
            3 => Outcome::InvalidRequest,
            4 => Outcome::AccessDenied,
            5 => Outcome::OperationFailed,
            _ => return None,
        })
    }
}

fn outcome_code(outcome: Outcome) -> (u8, u64) {
    match outcome {
        Outcome::Done => (0, 0),
        Outcome::NotReady { wait_ns } => (1, wait_ns),
        // A peer that answers is not lost.
        Outcome::NoAnswer | Outcome::Lost => (2, 0),
        Outcome::InvalidRequest => (3, 0),
        Outcome::AccessDenied => (4, 0),
        Outcome::OperationFailed => (5, 0),
    }
}

impl Message {
    /// Returns the bytes of the message.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut to = Writer(Vec::with_capacity(128));
        match self {
            Self::Send { route, message, immediate, is_solicited, content } => {
                let more = if matches!(content, Content::Sources(_)) { HAS_SOURCES } else { 0 };
                to.u8(SEND).u8(flags(*immediate, *is_solicited) | more).route(*route);
                to.u32(*message).u32(immediate.unwrap_or(0));
                match content {
                    Content::Bytes(bytes) => drop(to.bytes(bytes)),
                    Content::Sources(sources) => {
                        to.u8(u8::try_from(sources.len()).unwrap_or(u8::MAX));
                        for source in sources {
                            to.u32(source.region).u64(source.key).u64(source.offset).u64(source.length);
                        }
                    }
                }
            }
            Self::Written { route, message, length, immediate, is_solicited } => {
                to.u8(WRITTEN).u8(flags(None, *is_solicited)).route(*route).u32(*message);
                to.u32(*immediate).u64(*length);
            }
            Self::Apply { route, key, address, length, right } => {
                to.u8(APPLY).u8(0).route(*route).u32(*key).u64(*address).u64(*length).u32(*right);
            }
            Self::Datagram { from, to: destination, immediate, is_solicited, header, at, data } => {
                to.u8(DATAGRAM).u8(flags(*immediate, *is_solicited)).u32(*from).u32(*destination);
                to.u32(immediate.unwrap_or(0))
                    .u32(header.key)
                    .bytes(&header.source)
                    .bytes(&header.destination);
                to.u8(header.traffic_class).u32(header.flow_label).u8(header.hop_limit);
                to.u64(at.stream).u64(at.number).bytes(data);
            }
            Self::Replies(replies) => {
                to.u8(REPLIES).u8(0);
                for (number, outcome) in replies {
                    let (code, wait_ns) = outcome_code(*outcome);
                    to.u64(*number).u8(code).u64(wait_ns);
                }
            }
            Self::Granted { number, grant } => {
                to.u8(GRANTED).u8(0).u64(*number).u64(grant.virtual_base).u64(grant.length);
                to.u64(grant.key);
            }
            Self::Closed { queue_pair } => drop(to.u8(CLOSED).u8(0).u32(*queue_pair)),
            Self::Note(bytes) => drop(to.u8(NOTE).u8(0).bytes(bytes)),
        }
        debug_assert!(to.0.len() <= MESSAGE_BYTES, "a message fits into a slot");
        to.0
    }

    /// Returns the message with these bytes, or `None` if there is none.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let (kind, flags) = (from.u8()?, from.u8()?);
        let is_solicited = flags & IS_SOLICITED != 0;
        let message = match kind {
            SEND => {
                let (route, message, immediate) = (from.route()?, from.u32()?, from.immediate(flags)?);
                let content = match flags & HAS_SOURCES {
                    0 => Content::Bytes(from.data(DATA_BYTES)?.to_vec()),
                    _ => Content::Sources(from.sources()?),
                };
                Self::Send { route, message, immediate, is_solicited, content }
            }
            WRITTEN => {
                let (route, message) = (from.route()?, from.u32()?);
                let (immediate, length) = (from.u32()?, from.u64()?);
                Self::Written { route, message, length, immediate, is_solicited }
            }
            APPLY => Self::Apply {
                route: from.route()?,
                key: from.u32()?,
                address: from.u64()?,
                length: from.u64()?,
                right: from.u32()?,
            },
            DATAGRAM => {
                let (sender, to, immediate) = (from.u32()?, from.u32()?, from.immediate(flags)?);
                let header = from.datagram()?;
                let at = Position { stream: from.u64()?, number: from.u64()? };
                let data = from.data(DATAGRAM_BYTES)?.to_vec();
                Self::Datagram { from: sender, to, immediate, is_solicited, header, at, data }
            }
            REPLIES => Self::Replies(from.replies()?),
            GRANTED => Self::Granted {
                number: from.u64()?,
                grant: Grant { virtual_base: from.u64()?, length: from.u64()?, key: from.u64()? },
            },
            CLOSED => Self::Closed { queue_pair: from.u32()? },
            NOTE => Self::Note(from.data(NOTE_BYTES)?.to_vec()),
            _ => return None,
        };
        from.0.is_empty().then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples() -> Vec<Message> {
        let route = Route { number: 1 << 40, from: 0x10_0011, to: 0xff_ffff };
        let source = Source { region: 0x8000_0101, key: u64::MAX - 3, offset: 7, length: 1 << 31 };
        let header = Datagram {
            key: 0x1111,
            source: [3; 16],
            destination: [4; 16],
            traffic_class: 5,
            flow_label: 0xf_ffff,
            hop_limit: 64,
        };
        let send = |immediate, content| Message::Send {
            route,
            message: 0xff_ffff,
            immediate,
            is_solicited: true,
            content,
        };
        let outcomes = [
            Outcome::Done,
            Outcome::NotReady { wait_ns: 655_360_000 },
            Outcome::NoAnswer,
            Outcome::InvalidRequest,
            Outcome::AccessDenied,
            Outcome::OperationFailed,
        ];
        let mut all = vec![
            send(None, Content::Bytes(Vec::new())),
            send(Some(0), Content::Bytes(vec![9; DATA_BYTES])),
            send(Some(u32::MAX), Content::Sources(vec![source; SOURCES_MAX])),
            Message::Written { route, message: 5, length: 1 << 31, immediate: 8, is_solicited: false },
            Message::Apply { route, key: 0x101, address: u64::MAX, length: 4, right: 2 },
            Message::Datagram {
                from: 1,
                to: 2,
                immediate: None,
                is_solicited: false,
                header,
                at: Position { stream: u64::MAX, number: 1 << 40 },
                data: vec![1; DATAGRAM_BYTES],
            },
            Message::Granted { number: 4, grant: Grant { virtual_base: 0x1000, length: 64, key: 99 } },
            Message::Closed { queue_pair: 17 },
            Message::Note(Vec::new()),
            Message::Note(vec![7; NOTE_BYTES]),
        ];
        all.push(Message::Replies(vec![(u64::MAX, Outcome::Done); REPLIES_MAX]));
        all.push(Message::Replies((7..).zip(outcomes).collect()));
        all
    }

    #[test]
    fn messages_are_restored_from_their_bytes() {
        for message in examples() {
            let bytes = message.encode();
            assert!(bytes.len() <= MESSAGE_BYTES, "{message:?}");
            assert_eq!(Message::decode(&bytes), Some(message));
        }
    }

    #[test]
    fn no_bytes_of_a_peer_cause_a_panic() {
        for message in examples() {
            let bytes = message.encode();
            for length in 0..bytes.len().min(200) {
                let _ = Message::decode(&bytes[..length]);
            }
            let longer = [&bytes[..], &[0; DATAGRAM_BYTES + 1]].concat();
            assert_eq!(Message::decode(&longer), None, "{message:?} with more bytes");
        }
        assert_eq!(Message::decode(&[99, 0]), None);
        // More parts than a message has.
        let route = Route { number: 0, from: 0, to: 0 };
        let content = Content::Sources(Vec::new());
        let send = Message::Send { route, message: 0, immediate: None, is_solicited: false, content };
        let mut bytes = send.encode();
        *bytes.last_mut().expect("the count") = 33;
        assert_eq!(Message::decode(&bytes), None);
    }
}
