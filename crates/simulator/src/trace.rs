//! The hash of everything that happened, so that two runs can be compared by sixteen digits.
//!
//! Every outcome of a frame (delivered or dropped, when, where, its bytes, why) and every event of a member is a record with
//! its time and its number on its link or at its member. The hash is a sum over the records, so that
//! it does not depend on the order in which members are polled.
//! The payload of a long frame is added as its own hash, so that it is read once and not at every hop. If a memory only
//! references it, it is hashed when another one has copied it, and added at the end. The same plan, jobs and seed give the
//! same hash on every machine; two runs that differ in anything that could matter differ in it. It is not a
//! signature: it can be forged.

use std::hash::{Hash, Hasher};

use rackloom_protocol::{Event, Instant, NodeId};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::ids::ChannelId;

/// FrameOutcome of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameOutcome {
    /// Delivered to a member.
    Delivered = 1,
    /// Lost by the link's profile or an action when it was sent.
    Lost = 2,
    /// In flight when the link was cut.
    CutOff = 3,
    /// The receiver was dead.
    ReceiverDead = 4,
    /// The receiver was paused and its device full.
    ReceiverFull = 5,
}

impl FrameOutcome {
    /// Returns the reason why a frame was lost although its verdict let it pass.
    pub(crate) const fn beyond_verdict(self) -> Option<&'static str> {
        match self {
            Self::Delivered | Self::Lost => None,
            Self::CutOff => Some("the link was cut"),
            Self::ReceiverDead => Some("the receiver was dead"),
            Self::ReceiverFull => Some("the receiver was stopped and its device was full"),
        }
    }
}

/// Parts of a frame that are added to the hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traced<'a> {
    pub(crate) length: usize,
    /// First bytes of the frame, or all.
    pub(crate) head: &'a [u8],
    /// Hash of the other bytes.
    pub(crate) body_hash: u64,
}

const EVENT: u8 = 0;

/// Running hash: a sum over all records.
#[derive(Clone, Default)]
pub(crate) struct Trace {
    sum: u64,
    /// Record of the current event.
    record: Record,
}

/// Bytes of an event.
#[derive(Clone, Default)]
struct Record(Vec<u8>);

impl Hasher for Record {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        xxh3_64(&self.0)
    }
}

impl Trace {
    /// Adds the outcome of a frame. `number`: its number on its channel.
    pub(crate) fn frame(
        &mut self,
        now: Instant,
        channel: ChannelId,
        outcome: FrameOutcome,
        number: u64,
        frame: Traced<'_>,
    ) {
        let length = frame.length as u32;
        let seed = folded(seed(now, outcome as u8, channel.0, length, number), frame.body_hash ^ FACTORS[4]);
        self.add(xxh3_64_with_seed(frame.head, seed));
    }

    /// Adds an event of a member. `number`: how many events the member has reported before.
    pub(crate) fn event(&mut self, now: Instant, node: NodeId, number: u64, event: &Event) {
        self.record.0.clear();
        event.hash(&mut self.record);
        self.add(xxh3_64_with_seed(&self.record.0, seed(now, EVENT, u32::from(node.0), 0, number)));
    }

    const fn add(&mut self, record: u64) {
        self.sum = self.sum.wrapping_add(record);
    }

    /// Returns the sums until now. `payloads`: hash of the payloads that memories have taken from each other; 0 if there are none.
    pub(crate) const fn sums(&self, payloads: u64) -> TraceSums {
        TraceSums { records: self.sum, payloads }
    }
}

/// Sums over the records and the payloads of some members. Those of different members may be added.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TraceSums {
    records: u64,
    payloads: u64,
}

impl TraceSums {
    /// Adds the sums of other members.
    pub(crate) const fn add(&mut self, other: Self) {
        self.records = self.records.wrapping_add(other.records);
        self.payloads = self.payloads.wrapping_add(other.payloads);
    }

    /// Returns the hash of the run.
    pub(crate) fn digest(self) -> u64 {
        let mut all = [0; 16];
        all[..8].copy_from_slice(&self.records.to_le_bytes());
        all[8..].copy_from_slice(&self.payloads.to_le_bytes());
        xxh3_64(&all)
    }
}

/// Digits of pi.
const FACTORS: [u64; 5] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7344,
    0xa409_3822_299f_31d0,
    0x082e_fa98_ec4e_6c89,
    0x4528_21e6_38d0_1377,
];

/// Returns the seed of a record: time, kind of event, link or member, length of the frame, and number there.
const fn seed(now: Instant, what: u8, location: u32, length: u32, number: u64) -> u64 {
    let location = (location as u64) << 32 | length as u64;
    let when = folded(now.0 ^ FACTORS[0], number ^ FACTORS[1]);
    folded(when ^ FACTORS[2], location ^ (what as u64).rotate_right(8) ^ FACTORS[3])
}

/// Combines both halves of a product.
const fn folded(one: u64, other: u64) -> u64 {
    let product = one as u128 * other as u128;
    product as u64 ^ (product >> 64) as u64
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Trace({:016x})", self.sums(0).digest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(record: impl FnOnce(&mut Trace)) -> u64 {
        let mut trace = Trace::default();
        record(&mut trace);
        trace.sums(0).digest()
    }

    const fn whole(head: &[u8]) -> Traced<'_> {
        Traced { length: head.len(), head, body_hash: 0 }
    }

    const fn long(body_hash: u64) -> Traced<'static> {
        Traced { length: 99, head: b"abc", body_hash }
    }

    #[test]
    fn every_difference_changes_the_hash() {
        let base = |trace: &mut Trace| {
            trace.frame(Instant(5), ChannelId(2), FrameOutcome::Delivered, 1, whole(b"abc"))
        };
        let variants = [
            hash(base),
            hash(|trace| trace.frame(Instant(6), ChannelId(2), FrameOutcome::Delivered, 1, whole(b"abc"))),
            hash(|trace| trace.frame(Instant(5), ChannelId(3), FrameOutcome::Delivered, 1, whole(b"abc"))),
            hash(|trace| trace.frame(Instant(5), ChannelId(2), FrameOutcome::Lost, 1, whole(b"abc"))),
            hash(|trace| trace.frame(Instant(5), ChannelId(2), FrameOutcome::Delivered, 1, whole(b"abd"))),
            hash(|trace| trace.frame(Instant(5), ChannelId(2), FrameOutcome::Delivered, 2, whole(b"abc"))),
            hash(|trace| trace.frame(Instant(5), ChannelId(2), FrameOutcome::Delivered, 1, long(1))),
            hash(|trace| trace.frame(Instant(5), ChannelId(2), FrameOutcome::Delivered, 1, long(2))),
            Trace::default().sums(1).digest(),
            Trace::default().sums(2).digest(),
            hash(|trace| trace.event(Instant(5), NodeId(2), 1, &Event::NodeLost { node: NodeId(1) })),
            hash(|trace| trace.event(Instant(5), NodeId(2), 2, &Event::NodeLost { node: NodeId(1) })),
            hash(|trace| trace.event(Instant(5), NodeId(2), 1, &Event::NodeReached { node: NodeId(1) })),
        ];
        let distinct: std::collections::BTreeSet<_> = variants.iter().collect();
        assert_eq!(distinct.len(), variants.len());
        assert_eq!(hash(base), variants[0]);
    }

    #[test]
    fn the_end_of_a_frame_is_part_of_the_hash() {
        let two = hash(|trace| {
            trace.frame(Instant(0), ChannelId(0), FrameOutcome::Delivered, 1, whole(b"ab"));
            trace.frame(Instant(0), ChannelId(0), FrameOutcome::Delivered, 1, whole(b"c"));
        });
        let other_two = hash(|trace| {
            trace.frame(Instant(0), ChannelId(0), FrameOutcome::Delivered, 1, whole(b"a"));
            trace.frame(Instant(0), ChannelId(0), FrameOutcome::Delivered, 1, whole(b"bc"));
        });
        assert_ne!(two, other_two);
    }
}
