//! Copies of frames that a link may have to send again.
//!
//! A copy is as short as its frame will be under way: a payload that is lent is lent once more and not copied. It is no frame under way
//! itself, and is counted as none.

use super::{FrameId, FrameSlab, LARGE};

impl FrameSlab {
    /// A copy of the frame of this length that is written in a room.
    pub(crate) fn keep(&mut self, room: FrameId, length: usize) -> FrameId {
        let left_out = self.left_out(room);
        let stored = length - left_out.len();
        let kind = self.kind_for(stored);
        let copy = self.take_kind(kind, self.frames[room.index()].channel);
        let Ok([from, to]) = self.frames.get_disjoint_mut([room.index(), copy.index()]) else { return copy };
        if kind == LARGE {
            to.room[..length].copy_from_slice(&from.room[..length]);
        } else {
            let head = if left_out.is_empty() { length } else { left_out.start };
            to.room[..head].copy_from_slice(&from.room[..head]);
            to.room[head..stored].copy_from_slice(&from.room[length - (stored - head)..length]);
        }
        to.stored = if kind == LARGE { length as u16 } else { stored as u16 };
        to.payload = from.payload;
        self.books.share(&to.payload);
        copy
    }

    /// Write a kept frame of this length into a room, and let it carry what the first one carried.
    pub(crate) fn recall(&mut self, kept: FrameId, room: FrameId, length: usize) {
        let Ok([from, to]) = self.frames.get_disjoint_mut([kept.index(), room.index()]) else { return };
        let stored = usize::from(from.stored);
        let (head, end) = match length - stored {
            0 => (length, length),
            missing => (from.payload.end() - missing, from.payload.end()),
        };
        to.room[..head].copy_from_slice(&from.room[..head]);
        if self.books.is_summed.get() || self.books.is_watched.get() {
            to.room[head..end].fill(0);
        }
        to.room[end..length].copy_from_slice(&from.room[head..stored]);
        self.books.give_back(&std::mem::replace(&mut to.payload, from.payload));
        self.books.share(&from.payload);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use rackloom_plan::PayloadMode;
    use rackloom_protocol::{NodeId, RegionId};

    use super::*;
    use crate::link::ChannelId;
    use crate::payload::{Books, Payload};

    const CHANNEL: ChannelId = ChannelId(3);
    const LENGTH: usize = 1_000;
    const REGION: RegionId = RegionId(1);

    /// A frame that is being written, with 800 lent bytes in it.
    fn written(frames: &mut FrameSlab, books: &Books) -> FrameId {
        let room = frames.take(CHANNEL);
        frames.room_mut(room)[..LENGTH].iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
        let loan = books.loans.borrow_mut()[0].lend(REGION, 0, 800);
        frames.load(room, Payload { at: 100, length: 800, source: NodeId(0), loan }, false);
        room
    }

    #[test]
    fn a_kept_frame_leaves_again_as_it_was_with_its_loan_and_is_none_under_way() {
        let books = Rc::new(Books::new(PayloadMode::Full, 1));
        let mut frames = FrameSlab::new(4_096, Rc::clone(&books));
        let room = written(&mut frames, &books);
        let loan = frames.payload(room);
        let kept = frames.keep(room, LENGTH);
        let first = frames.seal(room, LENGTH, 0);
        let bytes = frames.bytes(first).to_vec();
        assert_eq!((frames.bytes(kept), bytes.len()), (&bytes[..], LENGTH - 800));
        frames.release(first);
        assert_eq!(frames.alive_max(), 1);

        let room = frames.take(CHANNEL);
        frames.recall(kept, room, LENGTH);
        let again = frames.seal(room, LENGTH, 0);
        assert_eq!((frames.bytes(again), frames.payload(again)), (&bytes[..], loan));
        frames.release(kept);
        let is_lent = || books.loans.borrow()[0].loaned(loan.loan).is_some();
        assert!(is_lent(), "the frame under way still carries it");
        frames.release(again);
        assert!(!is_lent());
        assert_eq!(frames.alive_max(), 1);
    }

    #[test]
    fn frames_without_a_payload_are_kept_at_any_length() {
        for length in [1, 128, 129, 768, 769, 4_096] {
            let mut frames = FrameSlab::new(4_096, Rc::new(Books::new(PayloadMode::Full, 1)));
            let room = frames.take(CHANNEL);
            frames.room_mut(room)[..length].fill(7);
            let kept = frames.keep(room, length);
            frames.room_mut(room)[..length].fill(9);
            frames.recall(kept, room, length);
            let again = frames.seal(room, length, 0);
            assert!(frames.bytes(again).len() == length && frames.bytes(again).iter().all(|byte| *byte == 7));
        }
    }
}
