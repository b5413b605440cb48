//! Frames between neighbours (wire-format section 5): Hello, heartbeat, link reports, link init, pauses.

use alloc::vec::Vec;
use core::num::NonZeroU16;

use super::layout::{put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::ids::{Incarnation, NodeId, Plane, PortId};
use crate::link::state::LinkState;
use crate::route::table::hash_word;

/// Bytes of a Hello's body.
pub const HELLO_BYTES: usize = 28;
/// Bytes of a heartbeat's body.
pub const HEARTBEAT_BYTES: usize = 16;
/// Bytes of a report before its entries.
pub const REPORT_BYTES: usize = 16;
/// Bytes of one entry of a report.
pub const REPORT_ENTRY_BYTES: usize = 4;

/// Bytes of the body of a link init and of its echo.
pub const NUMBERING_BYTES: usize = 4;

/// Returns the name of the numbering that a link init begins or an echo confirms, or `None` if the body is too short.
#[must_use]
pub fn numbering(body: &[u8]) -> Option<u32> {
    (body.len() >= NUMBERING_BYTES).then(|| u32_at(body, 0))
}

/// Bytes of a link init per additional channel.
pub const CONSUMED_BYTES: usize = 4;

/// Iterates over the credits consumed on the second and further channels, from the body of a link init.
pub fn consumed_beside(body: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let rest = body.get(NUMBERING_BYTES..).unwrap_or_default();
    rest.chunks_exact(CONSUMED_BYTES).map(|consumed| u32_at(consumed, 0))
}

/// Bytes of a pause's body.
pub const PAUSE_BYTES: usize = 2;

/// Returns the requested pause in quanta, or `None` if the body is too short.
#[must_use]
pub fn pause_quanta(body: &[u8]) -> Option<u16> {
    (body.len() >= PAUSE_BYTES).then(|| u16_at(body, 0))
}

/// Announces the sender to its neighbour, and confirms the neighbour's incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Sender of the frame.
    pub node: NodeId,
    /// Port of the sender.
    pub port: PortId,
    /// Plane of the link.
    pub plane: Plane,
    /// True if the sender requests an answer.
    pub requests_answer: bool,
    /// Largest frame that the sender accepts, in bytes.
    pub frame_bytes_max: u16,
    /// Incarnation of the sender.
    pub incarnation: Incarnation,
    /// Incarnation of the receiver as last received by the sender; zero if none.
    pub received_incarnation: Incarnation,
    /// Hash of the settings that both ends must share.
    pub options: u32,
}

impl Hello {
    /// Writes the body.
    pub fn write(&self, body: &mut [u8]) {
        put_u16(body, 0, self.node.0);
        put_u16(body, 2, self.port.0);
        body[4] = self.plane.0;
        body[5] = u8::from(self.requests_answer);
        put_u16(body, 6, self.frame_bytes_max);
        put_u64(body, 8, self.incarnation.0);
        put_u64(body, 16, self.received_incarnation.0);
        put_u32(body, 24, self.options);
    }

    /// Reads the body. Returns `None` if it is too short.
    #[must_use]
    pub fn read(body: &[u8]) -> Option<Self> {
        (body.len() >= HELLO_BYTES).then(|| Self {
            node: NodeId(u16_at(body, 0)),
            port: PortId(u16_at(body, 2)),
            plane: Plane(body[4]),
            requests_answer: body[5] != 0,
            frame_bytes_max: u16_at(body, 6),
            incarnation: Incarnation(u64_at(body, 8)),
            received_incarnation: Incarnation(u64_at(body, 16)),
            options: u32_at(body, 24),
        })
    }
}

/// Shows that the sender is alive, and reports its view of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Sequence number of the sender's heartbeats on this link.
    pub number: u32,
    /// Last heartbeat number received from the other end.
    pub received_number: u32,
    /// State of the link as seen by the sender.
    pub state: LinkState,
    /// Largest number of intervals until the sender's next heartbeat.
    pub intervals: u16,
    /// Hash of all link reports that the sender holds. A receiver with another hash sends its reports.
    pub digest: u32,
}

impl Heartbeat {
    /// Writes the body.
    pub fn write(&self, body: &mut [u8]) {
        put_u32(body, 0, self.number);
        put_u32(body, 4, self.received_number);
        put_u16(body, 8, self.state as u16);
        put_u16(body, 10, self.intervals);
        put_u32(body, 12, self.digest);
    }

    /// Reads the body. Returns `None` if it is too short or contains no valid state.
    #[must_use]
    pub fn read(body: &[u8]) -> Option<Self> {
        if body.len() < HEARTBEAT_BYTES {
            return None;
        }
        Some(Self {
            number: u32_at(body, 0),
            received_number: u32_at(body, 4),
            state: *LinkState::ALL.get(usize::from(u16_at(body, 8)))?,
            intervals: u16_at(body, 10),
            digest: u32_at(body, 12),
        })
    }
}

/// Mark of 14 bits that distinguishes incarnations of one member where the full value does not fit.
///
/// The value is stored plus one, so that an `Option` of it needs no more memory: every member keeps one per link of
/// the rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncarnationMark(NonZeroU16);

impl IncarnationMark {
    /// Returns the mark of an incarnation.
    #[must_use]
    pub const fn of(incarnation: Incarnation) -> Self {
        Self::of_bits(
            (hash_word(incarnation.0 as u32 ^ hash_word((incarnation.0 >> 32) as u32)) >> 18) as u16,
        )
    }

    /// Returns the mark with these 14 bits.
    const fn of_bits(bits: u16) -> Self {
        Self(NonZeroU16::MIN.saturating_add(bits))
    }

    /// Returns the 14 bits of the mark.
    const fn bits(self) -> u16 {
        self.0.get() - 1
    }
}

/// Report of one member about its own links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkReport {
    /// Member that sends the report.
    pub origin: NodeId,
    /// Incarnation of the origin.
    pub incarnation: Incarnation,
    /// Sequence number of the origin's reports. (incarnation, number) orders them.
    pub number: u32,
    /// All links of the origin by edge number, with the mark of the neighbour's incarnation if the link carries data.
    pub edges: Vec<(u16, Option<IncarnationMark>)>,
    /// True if the origin leaves: none of its links carries data any more, and its loss is not a death.
    pub is_departure: bool,
}

/// State bits of an entry: the link carries data, to the incarnation with the mark in the other bits.
const CARRIES_DATA: u16 = 1;
/// State bits of an entry: the link carries no data because the origin leaves.
const LEFT: u16 = 2;
/// Number of state bits of an entry.
const STATE_BITS: u32 = 2;

impl LinkReport {
    /// Returns the length of the report, in bytes.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        Self::bytes_of(self.edges.len())
    }

    /// Returns the length of a report about this number of links, in bytes.
    #[must_use]
    pub const fn bytes_of(links: usize) -> usize {
        REPORT_BYTES + REPORT_ENTRY_BYTES * links
    }

    /// Writes the report to the beginning of `body`. Returns its length in bytes.
    pub fn write(&self, body: &mut [u8]) -> usize {
        put_u16(body, 0, self.origin.0);
        put_u16(body, 2, self.edges.len() as u16);
        put_u64(body, 4, self.incarnation.0);
        put_u32(body, 12, self.number);
        for (index, (edge, incarnation)) in self.edges.iter().enumerate() {
            let at = REPORT_BYTES + REPORT_ENTRY_BYTES * index;
            put_u16(body, at, *edge);
            let state = match (self.is_departure, incarnation) {
                (true, _) => LEFT,
                (false, Some(mark)) => CARRIES_DATA | mark.bits() << STATE_BITS,
                (false, None) => 0,
            };
            put_u16(body, at + 2, state);
        }
        self.encoded_bytes()
    }

    /// Reads the body of a frame: one report or several, one after the other. Returns `None` if it is empty or the last
    /// report is cut.
    #[must_use]
    pub fn read_all(mut body: &[u8]) -> Option<Vec<Self>> {
        let mut reports = Vec::new();
        while reports.is_empty() || !body.is_empty() {
            let report = Self::read(body)?;
            body = body.get(report.encoded_bytes()..)?;
            reports.push(report);
        }
        Some(reports)
    }

    /// Reads the first report of a body. Returns `None` if the body is shorter than its count requires.
    #[must_use]
    pub fn read(body: &[u8]) -> Option<Self> {
        if body.len() < REPORT_BYTES {
            return None;
        }
        let count = usize::from(u16_at(body, 2));
        let entries = body.get(REPORT_BYTES..REPORT_BYTES + REPORT_ENTRY_BYTES * count)?;
        let entries =
            || entries.chunks_exact(REPORT_ENTRY_BYTES).map(|entry| (u16_at(entry, 0), u16_at(entry, 2)));
        Some(Self {
            origin: NodeId(u16_at(body, 0)),
            incarnation: Incarnation(u64_at(body, 4)),
            number: u32_at(body, 12),
            edges: entries().map(|(edge, state)| (edge, incarnation_in(state))).collect(),
            // W-50
            is_departure: count > 0 && entries().all(|(_, state)| state == LEFT),
        })
    }
}

fn incarnation_in(state: u16) -> Option<IncarnationMark> {
    (state & ((1 << STATE_BITS) - 1) == CARRIES_DATA).then_some(IncarnationMark::of_bits(state >> STATE_BITS))
}
