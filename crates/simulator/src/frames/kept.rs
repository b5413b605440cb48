//! Frames that a link may have to send again.
//!
//! A kept frame is the one that was sent. It stays after its arrival; only if its bits are flipped in flight is the kept frame
//! a copy. So it is as short as it travels, and costs nothing until it is forgotten. It does not count as in flight.

use super::FrameSlab;
use crate::ids::FrameId;

impl FrameSlab {
    /// Keeps a sealed frame until it is forgotten.
    pub(crate) fn keep(&mut self, id: FrameId) -> FrameId {
        self.frames[id.index()].is_kept = true;
        id
    }

    /// Keeps a copy of a sealed frame, because the frame itself is about to change.
    pub(crate) fn keep_copy(&mut self, id: FrameId) -> FrameId {
        let copy = self.copy(id);
        self.frames[copy.index()].is_over = true;
        self.keep(copy)
    }

    /// Forgets a kept frame, which will not be sent again.
    pub(crate) fn forget(&mut self, id: FrameId) {
        let Some(frame) = self.frames.get_mut(id.index()) else { return };
        if std::mem::take(&mut frame.is_kept) && frame.is_over {
            self.free(id);
        }
    }

    /// Writes a kept frame of this length into a buffer, with the payload that the first one carried.
    pub(crate) fn load_kept(&mut self, kept: FrameId, buffer: FrameId, length: usize) {
        let Ok([from, to]) = self.frames.get_disjoint_mut([kept.index(), buffer.index()]) else { return };
        let stored = usize::from(from.stored);
        let (head, end) = match length - stored {
            0 => (length, length),
            missing => (from.payload.end() - missing, from.payload.end()),
        };
        to.buffer[..head].copy_from_slice(&from.buffer[..head]);
        if self.payload_table.is_summed.get() || self.payload_table.is_watched.get() {
            to.buffer[head..end].fill(0);
        }
        to.buffer[end..length].copy_from_slice(&from.buffer[head..stored]);
        self.payload_table.give_back(&std::mem::replace(&mut to.payload, from.payload));
        self.payload_table.share(&from.payload);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rackloom_plan::PayloadMode;
    use rackloom_protocol::{NodeId, RegionId};

    use super::*;
    use crate::ids::ChannelId;
    use crate::memory::payload::{Payload, PayloadTable};

    const CHANNEL: ChannelId = ChannelId(3);
    const LENGTH: usize = 1_000;
    const REGION: RegionId = RegionId(1);

    /// Returns a frame that is being written, with 800 borrowed bytes in it.
    fn written(frames: &mut FrameSlab, payload_table: &PayloadTable) -> FrameId {
        let buffer = frames.take(CHANNEL);
        frames.buffer_mut(buffer)[..LENGTH].iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
        let reference = payload_table.references()[0].add(REGION, 0, 800);
        frames.load(buffer, Payload { at: 100, length: 800, source: NodeId(0), reference }, false);
        buffer
    }

    #[test]
    fn a_kept_frame_is_sent_again_unchanged_with_its_reference_and_is_not_in_flight() {
        let payload_table = Arc::new(PayloadTable::new(PayloadMode::Full, 1));
        let mut frames = FrameSlab::new(4_096, Arc::clone(&payload_table));
        let buffer = written(&mut frames, &payload_table);
        let reference = frames.payload(buffer);
        let first = frames.seal(buffer, LENGTH, 0);
        frames.keep(first);
        let bytes = frames.bytes(first).to_vec();
        assert_eq!(bytes.len(), LENGTH - 800);
        frames.release(first);
        frames.release(first);
        assert_eq!((frames.alive_max(), frames.alive), (1, 0));

        let buffer = frames.take(CHANNEL);
        frames.load_kept(first, buffer, LENGTH);
        let again = frames.seal(buffer, LENGTH, 0);
        assert_eq!((frames.bytes(again), frames.payload(again)), (&bytes[..], reference));
        frames.forget(first);
        let is_referenced = || payload_table.references()[0].locate(reference.reference).is_some();
        assert!(is_referenced(), "the frame in flight still carries it");
        frames.release(again);
        assert!(!is_referenced());
        assert_eq!(frames.alive_max(), 1);
    }

    #[test]
    fn a_frame_forgotten_in_flight_is_freed_on_arrival() {
        let payload_table = Arc::new(PayloadTable::new(PayloadMode::Full, 1));
        let mut frames = FrameSlab::new(4_096, Arc::clone(&payload_table));
        let buffer = written(&mut frames, &payload_table);
        let frame = frames.seal(buffer, LENGTH, 0);
        frames.keep(frame);
        frames.forget(frame);
        assert_eq!(frames.bytes(frame).len(), LENGTH - 800, "it is still in flight");
        frames.release(frame);
        assert!(frames.frames[frame.index()].is_free);
    }

    /// A frame that is passed on has its bytes, short or whole, and the link's kept frame still has them, too.
    #[test]
    fn a_kept_frame_that_is_handed_over_stays_unchanged() {
        for (is_referenced, length) in [(true, LENGTH), (false, LENGTH), (false, 50)] {
            let payload_table = Arc::new(PayloadTable::new(PayloadMode::Full, 1));
            let mut frames = FrameSlab::new(1_024, Arc::clone(&payload_table));
            let buffer =
                if is_referenced { written(&mut frames, &payload_table) } else { frames.take(CHANNEL) };
            frames.buffer_mut(buffer)[..50].fill(7);
            let kept = frames.seal(buffer, length, 0);
            frames.keep(kept);
            let (bytes, payload) = (frames.bytes(kept).to_vec(), frames.payload(kept));
            let next = frames.take(CHANNEL);
            frames.buffer_mut(next)[..20].fill(9);
            frames.hand_over(kept, next, 20, length - 20);
            let next = frames.seal(next, length, 0);
            frames.release(kept);
            assert_eq!((frames.bytes(kept), frames.payload(kept)), (&bytes[..], payload));
            assert_eq!((&frames.bytes(next)[20..], frames.payload(next)), (&bytes[20..], payload));
            frames.release(next);
            let is_there = || payload_table.references()[0].locate(payload.reference).is_some();
            assert_eq!(is_there(), is_referenced, "the kept one carries it");
            frames.forget(kept);
            assert!(!is_there());
        }
    }

    #[test]
    fn a_frame_damaged_in_flight_is_kept_undamaged() {
        let mut frames = FrameSlab::new(4_096, Arc::new(PayloadTable::new(PayloadMode::Full, 1)));
        let buffer = frames.take(CHANNEL);
        frames.buffer_mut(buffer)[..100].fill(7);
        let frame = frames.seal(buffer, 100, 0);
        let kept = frames.keep_copy(frame);
        frames.flip_bit(frame, 3);
        frames.release(frame);
        let buffer = frames.take(CHANNEL);
        frames.load_kept(kept, buffer, 100);
        let again = frames.seal(buffer, 100, 0);
        assert_eq!(frames.bytes(again), [7; 100]);
        frames.forget(kept);
        assert!(frames.frames[kept.index()].is_free && frames.alive_max() == 1);
    }

    #[test]
    fn frames_without_a_payload_are_kept_at_any_length() {
        for length in [1, 128, 129, 768, 769, 4_096] {
            let mut frames = FrameSlab::new(4_096, Arc::new(PayloadTable::new(PayloadMode::Full, 1)));
            let buffer = frames.take(CHANNEL);
            frames.buffer_mut(buffer)[..length].fill(7);
            let kept = frames.seal(buffer, length, 0);
            frames.keep(kept);
            frames.release(kept);
            let buffer = frames.take(CHANNEL);
            frames.buffer_mut(buffer)[..length].fill(9);
            frames.load_kept(kept, buffer, length);
            let again = frames.seal(buffer, length, 0);
            assert!(frames.bytes(again).len() == length && frames.bytes(again).iter().all(|byte| *byte == 7));
        }
    }
}
