//! Frames between neighbours (wire-format section 5): Hello, heartbeat, link reports, how link sequences begin, and pauses.

use alloc::vec::Vec;
use core::num::NonZeroU16;

use super::layout::{put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::ids::{Incarnation, NodeId, Plane, PortId};
use crate::link::state::LinkState;
use crate::route::table::stir;

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

/// What a link init calls the numbers that it begins, or an echo those that it follows; `None` if the body is too short.
#[must_use]
pub fn numbering(body: &[u8]) -> Option<u32> {
    (body.len() >= NUMBERING_BYTES).then(|| u32_at(body, 0))
}

/// Bytes of what a link init says of one channel beside the first.
pub const CONSUMED_BYTES: usize = 4;

/// What a link init says was consumed on the second channel, the third and so on.
pub fn consumed_beside(body: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let rest = body.get(NUMBERING_BYTES..).unwrap_or_default();
    rest.chunks_exact(CONSUMED_BYTES).map(|consumed| u32_at(consumed, 0))
}

/// Bytes of a pause's body.
pub const PAUSE_BYTES: usize = 2;

/// For how many quanta a pause asks; `None` if the body is too short.
#[must_use]
pub fn pause_quanta(body: &[u8]) -> Option<u16> {
    (body.len() >= PAUSE_BYTES).then(|| u16_at(body, 0))
}

/// Who I am, and whom I have heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The sender.
    pub node: NodeId,
    /// The sender's port.
    pub port: PortId,
    /// The link's plane.
    pub plane: Plane,
    /// The sender has not yet been answered and wants to be.
    pub answer_wanted: bool,
    /// Largest frame that the sender accepts.
    pub frame_bytes_max: u16,
    /// The sender's life.
    pub incarnation: Incarnation,
    /// The life of the receiver that the sender has heard of; zero if none.
    pub heard: Incarnation,
    /// Hash of what both ends must agree on.
    pub options: u32,
}

impl Hello {
    /// Write the body.
    pub fn write(&self, body: &mut [u8]) {
        put_u16(body, 0, self.node.0);
        put_u16(body, 2, self.port.0);
        body[4] = self.plane.0;
        body[5] = u8::from(self.answer_wanted);
        put_u16(body, 6, self.frame_bytes_max);
        put_u64(body, 8, self.incarnation.0);
        put_u64(body, 16, self.heard.0);
        put_u32(body, 24, self.options);
    }

    /// Read the body; `None` if it is too short.
    #[must_use]
    pub fn read(body: &[u8]) -> Option<Self> {
        (body.len() >= HELLO_BYTES).then(|| Self {
            node: NodeId(u16_at(body, 0)),
            port: PortId(u16_at(body, 2)),
            plane: Plane(body[4]),
            answer_wanted: body[5] != 0,
            frame_bytes_max: u16_at(body, 6),
            incarnation: Incarnation(u64_at(body, 8)),
            heard: Incarnation(u64_at(body, 16)),
            options: u32_at(body, 24),
        })
    }
}

/// I live, and this is how I see the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Counts the sender's heartbeats on this link.
    pub number: u32,
    /// The last number heard from the receiver.
    pub heard: u32,
    /// The link's state as the sender sees it.
    pub state: LinkState,
    /// Intervals until the sender's next heartbeat, at most.
    pub intervals: u16,
    /// Hash of all link reports that the sender holds; a difference makes the receiver send its own.
    pub digest: u32,
}

impl Heartbeat {
    /// Write the body.
    pub fn write(&self, body: &mut [u8]) {
        put_u32(body, 0, self.number);
        put_u32(body, 4, self.heard);
        put_u16(body, 8, self.state as u16);
        put_u16(body, 10, self.intervals);
        put_u32(body, 12, self.digest);
    }

    /// Read the body; `None` if it is too short or names no state.
    #[must_use]
    pub fn read(body: &[u8]) -> Option<Self> {
        if body.len() < HEARTBEAT_BYTES {
            return None;
        }
        Some(Self {
            number: u32_at(body, 0),
            heard: u32_at(body, 4),
            state: *LinkState::ALL.get(usize::from(u16_at(body, 8)))?,
            intervals: u16_at(body, 10),
            digest: u32_at(body, 12),
        })
    }
}

/// By which a life is told from another of the same member where there is no room for the whole: 14 bits, well mixed.
///
/// Kept as one more than they say: what members say of links is kept by every member for every link, and no mark takes no room beside one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifeMark(NonZeroU16);

impl LifeMark {
    /// The mark of a life.
    #[must_use]
    pub const fn of(life: Incarnation) -> Self {
        Self::said((stir(life.0 as u32 ^ stir((life.0 >> 32) as u32)) >> 18) as u16)
    }

    /// The mark of these 14 bits.
    const fn said(bits: u16) -> Self {
        Self(NonZeroU16::MIN.saturating_add(bits))
    }

    /// What is said of it.
    const fn bits(self) -> u16 {
        self.0.get() - 1
    }
}

/// What one member says of its own links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkReport {
    /// The member that speaks.
    pub origin: NodeId,
    /// Its life.
    pub incarnation: Incarnation,
    /// Counts its reports; (incarnation, number) orders them.
    pub number: u32,
    /// Every link of the member (edge), and with which life of its neighbour it carries data, if it does.
    pub edges: Vec<(u16, Option<LifeMark>)>,
    /// The member leaves: none of its links carries data any more, and that it is lost is no death.
    pub is_farewell: bool,
}

/// What an entry of a report says of a link in its two low bits: it carries data, to the life whose mark is in the others.
const CARRIES_DATA: u16 = 1;
/// It does not, because the origin leaves.
const LEFT: u16 = 2;
/// Bits of an entry that say so.
const STATE_BITS: u32 = 2;

impl LinkReport {
    /// Bytes of the body.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        REPORT_BYTES + REPORT_ENTRY_BYTES * self.edges.len()
    }

    /// Write the body; returns its length.
    pub fn write(&self, body: &mut [u8]) -> usize {
        put_u16(body, 0, self.origin.0);
        put_u16(body, 2, self.edges.len() as u16);
        put_u64(body, 4, self.incarnation.0);
        put_u32(body, 12, self.number);
        for (index, (edge, life)) in self.edges.iter().enumerate() {
            let at = REPORT_BYTES + REPORT_ENTRY_BYTES * index;
            put_u16(body, at, *edge);
            let state = match (self.is_farewell, life) {
                (true, _) => LEFT,
                (false, Some(mark)) => CARRIES_DATA | mark.bits() << STATE_BITS,
                (false, None) => 0,
            };
            put_u16(body, at + 2, state);
        }
        self.encoded_bytes()
    }

    /// Read the body; `None` if it is too short for its own count.
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
            edges: entries().map(|(edge, state)| (edge, life_in(state))).collect(),
            // W-50
            is_farewell: count > 0 && entries().all(|(_, state)| state == LEFT),
        })
    }
}

fn life_in(state: u16) -> Option<LifeMark> {
    (state & ((1 << STATE_BITS) - 1) == CARRIES_DATA).then_some(LifeMark::said(state >> STATE_BITS))
}
