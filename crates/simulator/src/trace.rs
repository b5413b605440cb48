//! The hash of everything that happened, so that two runs can be compared by sixteen digits.
//!
//! Every fate of a frame (delivered or dropped, when, where, its bytes, why) and every event of a member is a record that says when it happened and as which of
//! its kind on its link or at its member. The hash is a sum over the records, so that it does not hang on the order in which members' turns are computed.
//! What a long frame carries goes in as a hash of its own, so that it is read once and not at every hop; where a memory only
//! lends it, that is done when another one has copied it, and joins the rest at the end. The same plan, jobs and seed give the same hash on every machine; two runs that differ in
//! anything that could matter differ in it. It is not a signature: nobody is kept from forging it.

use std::hash::{Hash, Hasher};

use rackloom_protocol::{Event, Instant, NodeId};
use xxhash_rust::xxh3::xxh3_64;

use crate::link::ChannelId;

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Fate {
    /// A member was given it.
    Delivered = 1,
    /// The link's profile or an action lost it when it was sent.
    Lost = 2,
    /// The link was cut while it was under way.
    CutOff = 3,
    /// The receiver was dead.
    ReceiverDead = 4,
    /// The receiver was paused and its device full.
    ReceiverFull = 5,
}

impl Fate {
    /// Why a frame reached nobody although its verdict let it pass.
    pub(crate) const fn beyond_verdict(self) -> Option<&'static str> {
        match self {
            Self::Delivered | Self::Lost => None,
            Self::CutOff => Some("the link was cut"),
            Self::ReceiverDead => Some("the receiver was dead"),
            Self::ReceiverFull => Some("the receiver stood still and had no room"),
        }
    }
}

/// As many of a frame's first bytes are told one by one.
pub(crate) const FRAME_HEAD_BYTES_MAX: usize = 64;

/// What of a frame goes into the hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traced<'a> {
    pub(crate) length: usize,
    /// Its first bytes, or all.
    pub(crate) head: &'a [u8],
    /// Of the other bytes.
    pub(crate) body_hash: u64,
}

const EVENT: u8 = 0;
/// Bytes of a record before those of the frame or event.
const HEAD_BYTES: usize = 32;

/// The running hash: a sum over all records.
#[derive(Clone, Default)]
pub(crate) struct Trace {
    sum: u64,
    /// Of the event at hand.
    record: Record,
}

/// The bytes of an event.
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
    /// A frame met its fate, as one of so many on its channel.
    pub(crate) fn frame(
        &mut self,
        now: Instant,
        channel: ChannelId,
        (fate, number): (Fate, u64),
        frame: Traced<'_>,
    ) {
        let mut record = [0; HEAD_BYTES + 8 + FRAME_HEAD_BYTES_MAX];
        let end = HEAD_BYTES + 8 + frame.head.len();
        record[..HEAD_BYTES].copy_from_slice(&head(now, fate as u8, channel.0, frame.length as u32, number));
        record[HEAD_BYTES..HEAD_BYTES + 8].copy_from_slice(&frame.body_hash.to_le_bytes());
        record[HEAD_BYTES + 8..end].copy_from_slice(frame.head);
        self.add(xxh3_64(&record[..end]));
    }

    /// Something happened at a member, after so many other things.
    pub(crate) fn event(&mut self, now: Instant, node: NodeId, number: u64, event: &Event) {
        self.record.0.clear();
        self.record.write(&head(now, EVENT, u32::from(node.0), 0, number));
        event.hash(&mut self.record);
        self.add(self.record.finish());
    }

    const fn add(&mut self, record: u64) {
        self.sum = self.sum.wrapping_add(record);
    }

    /// The hash until now. `payloads`: of what memories have taken from each other; 0 if that is nothing.
    pub(crate) fn digest(&self, payloads: u64) -> u64 {
        let mut all = [0; 16];
        all[..8].copy_from_slice(&self.sum.to_le_bytes());
        all[8..].copy_from_slice(&payloads.to_le_bytes());
        xxh3_64(&all)
    }
}

/// What happened, when, where and as which of its kind there.
fn head(now: Instant, what: u8, place: u32, length: u32, number: u64) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(&now.0.to_le_bytes());
    head[8..16].copy_from_slice(&number.to_le_bytes());
    head[16..20].copy_from_slice(&place.to_le_bytes());
    head[20..24].copy_from_slice(&length.to_le_bytes());
    head[24] = what;
    head
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Trace({:016x})", self.digest(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(record: impl FnOnce(&mut Trace)) -> u64 {
        let mut trace = Trace::default();
        record(&mut trace);
        trace.digest(0)
    }

    const fn whole(head: &[u8]) -> Traced<'_> {
        Traced { length: head.len(), head, body_hash: 0 }
    }

    const fn long(body_hash: u64) -> Traced<'static> {
        Traced { length: 99, head: b"abc", body_hash }
    }

    #[test]
    fn whatever_differs_shows() {
        let base =
            |trace: &mut Trace| trace.frame(Instant(5), ChannelId(2), (Fate::Delivered, 1), whole(b"abc"));
        let variants = [
            hash(base),
            hash(|trace| trace.frame(Instant(6), ChannelId(2), (Fate::Delivered, 1), whole(b"abc"))),
            hash(|trace| trace.frame(Instant(5), ChannelId(3), (Fate::Delivered, 1), whole(b"abc"))),
            hash(|trace| trace.frame(Instant(5), ChannelId(2), (Fate::Lost, 1), whole(b"abc"))),
            hash(|trace| trace.frame(Instant(5), ChannelId(2), (Fate::Delivered, 1), whole(b"abd"))),
            hash(|trace| trace.frame(Instant(5), ChannelId(2), (Fate::Delivered, 2), whole(b"abc"))),
            hash(|trace| trace.frame(Instant(5), ChannelId(2), (Fate::Delivered, 1), long(1))),
            hash(|trace| trace.frame(Instant(5), ChannelId(2), (Fate::Delivered, 1), long(2))),
            Trace::default().digest(1),
            Trace::default().digest(2),
            hash(|trace| trace.event(Instant(5), NodeId(2), 1, &Event::NodeLost { node: NodeId(1) })),
            hash(|trace| trace.event(Instant(5), NodeId(2), 2, &Event::NodeLost { node: NodeId(1) })),
            hash(|trace| trace.event(Instant(5), NodeId(2), 1, &Event::NodeReached { node: NodeId(1) })),
        ];
        let distinct: std::collections::BTreeSet<_> = variants.iter().collect();
        assert_eq!(distinct.len(), variants.len());
        assert_eq!(hash(base), variants[0]);
    }

    #[test]
    fn where_a_frame_ends_is_part_of_it() {
        let two = hash(|trace| {
            trace.frame(Instant(0), ChannelId(0), (Fate::Delivered, 1), whole(b"ab"));
            trace.frame(Instant(0), ChannelId(0), (Fate::Delivered, 1), whole(b"c"));
        });
        let other_two = hash(|trace| {
            trace.frame(Instant(0), ChannelId(0), (Fate::Delivered, 1), whole(b"a"));
            trace.frame(Instant(0), ChannelId(0), (Fate::Delivered, 1), whole(b"bc"));
        });
        assert_ne!(two, other_two);
    }
}
