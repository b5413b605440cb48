//! Memory layout of the litmus: one pure function of the number of ranks and the settings, with the same result for
//! every rank.
//!
//! Every rank must know every address at every other rank without messages. So an owner's memory is divided by
//! *distance*: the writer `w` of owner `o` uses the area of distance `(o - w) mod N`, and all owners have the same
//! layout. Distance 1 (the neighbour) has an area of its own kind, because the largest transfers may be limited to
//! neighbours. Two objects that a writer may write are separated by at least [`GUARD_BYTES`] of guard. Extents cover a
//! region without a gap: all bytes that are not a slot or a word are guard.
//!
//! | region | access | holds |
//! |---|---|---|
//! | [`CONTROL`] | all | words: abort notice, barrier, flags |
//! | [`DATA`] | all | contended atomics, slots |
//! | [`LANES`] | none | sources of puts, targets of loads and gets |
//! | [`READABLE`] | read | one pattern that others read, and that messages are taken from |
//! | [`MAIL`] | none | slots for received messages |

use std::fmt;

use rackloom_collectives::Reason;
use rackloom_protocol::RegionId;

use super::case::{Case, ReadCase, SIZES, cases, read_cases};
use super::settings::LitmusSettings;
use crate::ranks::barrier::BARRIER_WORDS;

/// Region of words: abort notice, barrier, flags.
pub(crate) const CONTROL: RegionId = RegionId(1);
/// Region of contended atomics and slots.
pub(crate) const DATA: RegionId = RegionId(2);
/// Region of sources and targets of the rank's own transfers.
pub(crate) const LANES: RegionId = RegionId(3);
/// Region that others may read and must not write.
pub(crate) const READABLE: RegionId = RegionId(4);

/// Region that received messages arrive in.
pub(crate) const MAIL: RegionId = RegionId(5);

/// Least distance in bytes between two objects that are written.
pub(crate) const GUARD_BYTES: u64 = 64;
/// Bytes of a lane beyond its capacity, for guards and misalignment on both sides.
pub(crate) const LANE_MARGIN_BYTES: u64 = 2 * GUARD_BYTES;
/// Number of lanes for transfers of up to [`SMALL_LANE_BYTES`].
pub(crate) const SMALL_LANES: u64 = 16;
/// Capacity of a small lane in bytes.
pub(crate) const SMALL_LANE_BYTES: u64 = 4608;
/// Number of lanes for larger transfers.
pub(crate) const LARGE_LANES: u64 = 2;

/// Number of receives that are posted at a time for the messages of one writer.
pub(crate) const MAIL_SLOTS: u64 = 4;
/// Length of the longest message in bytes: several frames, and more than is sent before the receiver requests it.
const MESSAGE_BYTES_MAX: u64 = 20_000;
/// Bytes in [`MAIL`] for a short message from any rank, with its guards.
const MAIL_ANY_STRIDE: u64 = 256;

/// Transfer size in bytes, on the bulk path and of several frames, that distant ranks keep before the sizes between
/// neighbours are reduced.
const FAR_BYTES_WANTED: u64 = 4097;

/// Contended words of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ContendedWord {
    FetchAddFour,
    FetchAddEight,
    CompareSwapFour,
    CompareSwapEight,
    SwapFour,
    SwapEight,
}

impl ContendedWord {
    pub(crate) const ALL: [Self; 6] = [
        Self::FetchAddFour,
        Self::FetchAddEight,
        Self::CompareSwapFour,
        Self::CompareSwapEight,
        Self::SwapFour,
        Self::SwapEight,
    ];

    pub(crate) const fn is_four(self) -> bool {
        matches!(self, Self::FetchAddFour | Self::CompareSwapFour | Self::SwapFour)
    }

    const fn bytes(self) -> u64 {
        if self.is_four() { 4 } else { 8 }
    }
}

/// Content of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Content {
    /// Guard: no rank writes here.
    Guard,
    /// Slot with the bytes of a case. `case` indexes [`Layout::cases`] of that distance.
    Slot { distance: u16, case: u16 },
    /// Flag of a case.
    Flag { distance: u16, case: u16 },
    /// Word for the notices of ranks that broke off.
    Abort,
    /// Word of one round of the barrier.
    Barrier { round: u16 },
    /// Word that all ranks modify.
    Contended(ContendedWord),
    /// Word in which the ranks add up the values that the contended word returned.
    Ledger(ContendedWord),
}

/// Consecutive bytes of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) content: Content,
}

/// Error: the litmus does not fit into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutError {
    needed_bytes: u64,
    memory_bytes: u64,
}

impl LayoutError {
    /// Returns message and hint.
    #[must_use]
    pub fn reason(&self) -> Reason {
        let Self { needed_bytes, memory_bytes } = self;
        Reason::new(
            format!("litmus needs {needed_bytes} bytes of memory per endpoint, there are {memory_bytes}"),
            "raise `defaults.memory` in the rack file",
        )
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason().fmt(formatter)
    }
}

impl core::error::Error for LayoutError {}

/// Builder that places objects one after the other, with guards between them.
#[derive(Default)]
struct Builder {
    extents: Vec<Extent>,
    cursor: u64,
}

impl Builder {
    fn add(&mut self, content: Content, bytes: u64, misalignment: u64) {
        let offset = (self.cursor + GUARD_BYTES).next_multiple_of(64) + misalignment;
        self.guard_until(offset);
        self.extents.push(Extent { offset, bytes, content });
        self.cursor = offset + bytes;
    }

    fn guard_until(&mut self, end: u64) {
        if end > self.cursor {
            self.extents.push(Extent {
                offset: self.cursor,
                bytes: end - self.cursor,
                content: Content::Guard,
            });
            self.cursor = end;
        }
    }

    /// Returns the extents, padded so that the next part begins at a 64-byte boundary.
    fn finish(mut self) -> Part {
        self.guard_until(self.cursor.next_multiple_of(64));
        Part { extents: self.extents, bytes: self.cursor }
    }
}

/// Extents relative to the begin of the part. A part begins with a guard.
#[derive(Clone, Debug)]
struct Part {
    extents: Vec<Extent>,
    bytes: u64,
}

/// Area of one writer at one owner. There is one kind for distance 1 and one for all others.
#[derive(Clone, Debug)]
struct Area {
    cases: Vec<Case>,
    reads: Vec<ReadCase>,
    slots: Part,
    flags: Part,
    /// Offsets of each case in `slots` and in `flags`.
    offsets: Vec<(u64, u64)>,
}

impl Area {
    fn new(settings: &LitmusSettings, bytes_max: u64) -> Self {
        let cases = cases(settings, bytes_max);
        let (mut slots, mut flags) = (Builder::default(), Builder::default());
        let mut offsets = Vec::with_capacity(cases.len());
        for (number, case) in cases.iter().enumerate() {
            // The distance is set when the area is placed.
            let (distance, number) = (0, number as u16);
            slots.add(Content::Slot { distance, case: number }, case.bytes, case.misalignment);
            if case.kind.has_flag() {
                flags.add(Content::Flag { distance, case: number }, 8, 0);
            }
            offsets.push((slots.cursor - case.bytes, flags.cursor.saturating_sub(8)));
        }
        let reads = read_cases(settings, bytes_max);
        Self { cases, reads, slots: slots.finish(), flags: flags.finish(), offsets }
    }

    fn traffic_bytes(&self) -> u64 {
        let written: u64 = self.cases.iter().map(|case| case.bytes).sum();
        written + self.reads.iter().map(|case| case.bytes).sum::<u64>()
    }
}

/// Returns the largest transfers (neighbours, others) in the order in which they are tried.
fn sizes_to_try(largest: u64) -> impl Iterator<Item = (u64, u64)> {
    let up_to =
        |most: u64| std::iter::once(most).chain(SIZES.into_iter().rev().filter(move |bytes| *bytes < most));
    let wanted = up_to(largest).flat_map(move |near| {
        let least = near.min(FAR_BYTES_WANTED);
        up_to(near).filter(move |far| *far >= least).map(move |far| (near, far))
    });
    let near = largest.min(FAR_BYTES_WANTED);
    wanted.chain(up_to(near).map(move |far| (near, far)))
}

/// Layout for all ranks.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    ranks: u16,
    near_bytes_max: u64,
    far_bytes_max: u64,
    control: Part,
    contended: Part,
    near: Area,
    far: Area,
}

impl Layout {
    /// Returns the layout with the largest transfers that memory and traffic allow. First the transfers between distant
    /// ranks are reduced, down to [`FAR_BYTES_WANTED`], then those between neighbours, then all.
    pub(crate) fn new(ranks: u16, settings: &LitmusSettings) -> Result<Self, LayoutError> {
        let mut needed_bytes = 0;
        for (near_bytes_max, far_bytes_max) in sizes_to_try(settings.bytes_max.max(1)) {
            let layout = Self::with_sizes(ranks, settings, near_bytes_max, far_bytes_max);
            needed_bytes = layout.total_bytes();
            // The smallest transfers are made even if their sum exceeds the limit.
            let has_much_traffic = far_bytes_max > 1 && layout.traffic_bytes() > settings.round_bytes_max;
            if needed_bytes <= settings.memory_bytes && !has_much_traffic {
                return Ok(layout);
            }
        }
        Err(LayoutError { needed_bytes, memory_bytes: settings.memory_bytes })
    }

    /// Describes the reduced sizes, if the settings request more than fits.
    pub(crate) fn shortfall(&self, settings: &LitmusSettings) -> Option<String> {
        let (wanted, near, far) = (settings.bytes_max, self.near_bytes_max, self.far_bytes_max);
        let is_short = near < wanted || (self.ranks > 2 && far < wanted);
        is_short.then(|| {
            format!(
                "largest transfers: {near} bytes between neighbouring ranks, {far} between others, where {wanted} were \
                 requested; memory is {} bytes, traffic about {} bytes per rank and round at most",
                settings.memory_bytes, settings.round_bytes_max
            )
        })
    }

    fn with_sizes(ranks: u16, settings: &LitmusSettings, near_bytes_max: u64, far_bytes_max: u64) -> Self {
        let mut control = Builder::default();
        control.add(Content::Abort, 8, 0);
        for round in 0..BARRIER_WORDS as u16 {
            control.add(Content::Barrier { round }, 8, 0);
        }
        let mut contended = Builder::default();
        for word in ContendedWord::ALL {
            // A 4-byte word is in the upper half of an 8-byte one, so a wider update would hit guards.
            contended.add(Content::Contended(word), word.bytes(), if word.is_four() { 4 } else { 0 });
            contended.add(Content::Ledger(word), 8, 0);
        }
        Self {
            ranks,
            near_bytes_max,
            far_bytes_max,
            control: control.finish(),
            contended: contended.finish(),
            near: Area::new(settings, near_bytes_max),
            far: Area::new(settings, far_bytes_max),
        }
    }

    fn area(&self, distance: u16) -> &Area {
        if distance == 1 { &self.near } else { &self.far }
    }

    /// Returns the distance from a writer (or reader) to an owner.
    pub(crate) fn distance(&self, writer: u16, owner: u16) -> u16 {
        let ranks = u32::from(self.ranks);
        ((u32::from(owner) + ranks - u32::from(writer)) % ranks) as u16
    }

    /// Returns the writer at this distance from an owner.
    pub(crate) fn writer(&self, owner: u16, distance: u16) -> u16 {
        // Distance is its own inverse: o - (o - w) = w.
        self.distance(distance, owner)
    }

    /// Returns the transfers of a writer at this distance.
    pub(crate) fn cases(&self, distance: u16) -> &[Case] {
        &self.area(distance).cases
    }

    /// Returns the reads of a reader at this distance.
    pub(crate) fn reads(&self, distance: u16) -> &[ReadCase] {
        &self.area(distance).reads
    }

    /// Returns the offset in [`DATA`] of a case's slot.
    pub(crate) fn slot_offset(&self, distance: u16, case: u16) -> u64 {
        self.part_offset(DATA, distance) + self.area(distance).offsets[usize::from(case)].0
    }

    /// Returns the offset in [`CONTROL`] of a case's flag.
    pub(crate) fn flag_offset(&self, distance: u16, case: u16) -> u64 {
        self.part_offset(CONTROL, distance) + self.area(distance).offsets[usize::from(case)].1
    }

    fn fixed_offset(part: &Part, content: Content) -> u64 {
        let found = part.extents.iter().find(|extent| extent.content == content);
        found.expect("every word of the layout was placed by it").offset
    }

    /// Returns the offset in [`CONTROL`] of the abort word.
    pub(crate) fn abort_offset(&self) -> u64 {
        Self::fixed_offset(&self.control, Content::Abort)
    }

    /// Returns the offset in [`CONTROL`] of a barrier word.
    pub(crate) fn barrier_offset(&self, round: u16) -> u64 {
        Self::fixed_offset(&self.control, Content::Barrier { round })
    }

    /// Returns the offset in [`DATA`] of a contended word.
    pub(crate) fn contended_offset(&self, word: ContendedWord) -> u64 {
        Self::fixed_offset(&self.contended, Content::Contended(word))
    }

    /// Returns the offset in [`DATA`] of a contended word's ledger.
    pub(crate) fn ledger_offset(&self, word: ContendedWord) -> u64 {
        Self::fixed_offset(&self.contended, Content::Ledger(word))
    }

    /// Returns the part of an area that is in a region.
    fn area_part(&self, region: RegionId, distance: u16) -> &Part {
        let area = self.area(distance);
        if region == DATA { &area.slots } else { &area.flags }
    }

    fn fixed_part(&self, region: RegionId) -> &Part {
        if region == DATA { &self.contended } else { &self.control }
    }

    fn part_offset(&self, region: RegionId, distance: u16) -> u64 {
        let fixed = self.fixed_part(region).bytes;
        match distance {
            0 | 1 => fixed,
            _ => {
                let near = self.area_part(region, 1).bytes;
                fixed + near + u64::from(distance - 2) * self.area_part(region, 2).bytes
            }
        }
    }

    /// Returns the extents of every byte of [`CONTROL`] or [`DATA`], in order.
    pub(crate) fn extents(&self, region: RegionId) -> impl Iterator<Item = Extent> + '_ {
        let fixed = self.fixed_part(region).extents.iter().copied();
        let areas = (1..self.ranks).flat_map(move |distance| {
            let base = self.part_offset(region, distance);
            self.area_part(region, distance).extents.iter().map(move |extent| Extent {
                offset: base + extent.offset,
                bytes: extent.bytes,
                content: match extent.content {
                    Content::Slot { case, .. } => Content::Slot { distance, case },
                    Content::Flag { case, .. } => Content::Flag { distance, case },
                    other => other,
                },
            })
        });
        let tail = Extent {
            offset: self.region_bytes(region) - GUARD_BYTES,
            bytes: GUARD_BYTES,
            content: Content::Guard,
        };
        fixed.chain(areas).chain(std::iter::once(tail))
    }

    /// Returns the length of a region in bytes.
    pub(crate) fn region_bytes(&self, region: RegionId) -> u64 {
        match region {
            // A reader reads any part of the region. The largest transfer still fits if it begins a little later.
            READABLE => self.near_bytes_max + 4096,
            LANES => {
                SMALL_LANES * (SMALL_LANE_BYTES + LANE_MARGIN_BYTES) + LARGE_LANES * self.large_lane_stride()
            }
            // One slot for each rank, and one for the message that is never sent.
            MAIL => self.mail_any_offset(u64::from(self.ranks)) + MAIL_ANY_STRIDE,
            _ => self.part_offset(region, self.ranks.max(1)) + GUARD_BYTES,
        }
    }

    /// Returns the length of the longest tagged message in bytes.
    pub(crate) fn message_bytes_max(&self) -> u64 {
        self.far_bytes_max.min(MESSAGE_BYTES_MAX)
    }

    /// Returns the offset in [`MAIL`] of a slot for a message of any length, with some spare bytes.
    pub(crate) fn mail_offset(&self, slot: u64) -> u64 {
        GUARD_BYTES + slot * ((self.message_bytes_max() + 16).next_multiple_of(64) + LANE_MARGIN_BYTES)
    }

    /// Returns the offset in [`MAIL`] of a slot for a short message of any rank.
    pub(crate) fn mail_any_offset(&self, number: u64) -> u64 {
        self.mail_offset(MAIL_SLOTS) + number * MAIL_ANY_STRIDE
    }

    /// Returns the distance in bytes between two large lanes.
    pub(crate) fn large_lane_stride(&self) -> u64 {
        self.near_bytes_max.next_multiple_of(64) + LANE_MARGIN_BYTES
    }

    fn total_bytes(&self) -> u64 {
        [CONTROL, DATA, LANES, READABLE, MAIL].into_iter().map(|region| self.region_bytes(region)).sum()
    }

    fn traffic_bytes(&self) -> u64 {
        let peers = u64::from(self.ranks.saturating_sub(1));
        let near = if peers > 0 { self.near.traffic_bytes() } else { 0 };
        near + peers.saturating_sub(1) * self.far.traffic_bytes()
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
