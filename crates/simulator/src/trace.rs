//! The hash of everything that happened, so that two runs can be compared by sixteen digits.
//!
//! Every fate of a frame (delivered or dropped, when, where, its bytes, why) and every event of a member goes in, in
//! order. What a long frame carries goes in as a hash of its own, so that it is read once and not at every hop; where a memory only
//! lends it, that is done when another one has copied it, and joins the rest at the end. The same plan, jobs and seed give the same hash on every machine; two runs that differ in
//! anything that could matter differ in it. It is not a signature: nobody is kept from forging it.

use std::hash::Hash;

use rackloom_protocol::{Event, Instant, NodeId};
use xxhash_rust::xxh3::Xxh3;

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

/// The running hash.
#[derive(Clone, Default)]
pub(crate) struct Trace {
    state: Xxh3,
}

impl Trace {
    /// A frame met its fate.
    pub(crate) fn frame(&mut self, now: Instant, channel: ChannelId, fate: Fate, frame: Traced<'_>) {
        self.head(now, fate as u8, channel.0, frame.length as u32);
        self.state.update(frame.head);
        if frame.length > frame.head.len() {
            self.state.update(&frame.body_hash.to_le_bytes());
        }
    }

    /// Something happened at a member.
    pub(crate) fn event(&mut self, now: Instant, node: NodeId, event: &Event) {
        self.head(now, EVENT, u32::from(node.0), 0);
        event.hash(&mut self.state);
    }

    fn head(&mut self, now: Instant, what: u8, place: u32, length: u32) {
        let mut head = [0; 17];
        head[..8].copy_from_slice(&now.0.to_le_bytes());
        head[8] = what;
        head[9..13].copy_from_slice(&place.to_le_bytes());
        head[13..].copy_from_slice(&length.to_le_bytes());
        self.state.update(&head);
    }

    /// The hash until now. `payloads`: of what memories have taken from each other; 0 if that is nothing.
    pub(crate) fn digest(&self, payloads: u64) -> u64 {
        if payloads == 0 {
            return self.state.digest();
        }
        let mut all = self.state.clone();
        all.update(&payloads.to_le_bytes());
        all.digest()
    }
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
        let base = |trace: &mut Trace| trace.frame(Instant(5), ChannelId(2), Fate::Delivered, whole(b"abc"));
        let variants = [
            hash(base),
            hash(|trace| trace.frame(Instant(6), ChannelId(2), Fate::Delivered, whole(b"abc"))),
            hash(|trace| trace.frame(Instant(5), ChannelId(3), Fate::Delivered, whole(b"abc"))),
            hash(|trace| trace.frame(Instant(5), ChannelId(2), Fate::Lost, whole(b"abc"))),
            hash(|trace| trace.frame(Instant(5), ChannelId(2), Fate::Delivered, whole(b"abd"))),
            hash(|trace| trace.frame(Instant(5), ChannelId(2), Fate::Delivered, long(1))),
            hash(|trace| trace.frame(Instant(5), ChannelId(2), Fate::Delivered, long(2))),
            Trace::default().digest(1),
            Trace::default().digest(2),
            hash(|trace| trace.event(Instant(5), NodeId(2), &Event::NodeLost { node: NodeId(1) })),
            hash(|trace| trace.event(Instant(5), NodeId(2), &Event::NodeReached { node: NodeId(1) })),
        ];
        let distinct: std::collections::BTreeSet<_> = variants.iter().collect();
        assert_eq!(distinct.len(), variants.len());
        assert_eq!(hash(base), variants[0]);
    }

    #[test]
    fn where_a_frame_ends_is_part_of_it() {
        let two = hash(|trace| {
            trace.frame(Instant(0), ChannelId(0), Fate::Delivered, whole(b"ab"));
            trace.frame(Instant(0), ChannelId(0), Fate::Delivered, whole(b"c"));
        });
        let other_two = hash(|trace| {
            trace.frame(Instant(0), ChannelId(0), Fate::Delivered, whole(b"a"));
            trace.frame(Instant(0), ChannelId(0), Fate::Delivered, whole(b"bc"));
        });
        assert_ne!(two, other_two);
    }
}
