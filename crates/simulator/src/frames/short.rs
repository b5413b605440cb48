//! Frames without the bytes that a payload would have.
//!
//! Where a sender's memory lends a payload, or something stands in for it, a frame is kept without that part and is *short*. Whoever
//! looks at it sees it at its full length, with zeros there; the core never reads them, except where it sums whole frames up, and
//! then both ends see the same zeros.

use std::ops::Range;

use super::{FrameId, FrameSlab};
use crate::payload::Payload;

/// Zeros, and the ends of the short frame that was looked at last.
#[derive(Debug)]
pub(super) struct Blank {
    bytes: Box<[u8]>,
    head: usize,
    tail: Range<usize>,
    /// Whose they are.
    of: FrameId,
}

impl Blank {
    pub(super) fn new(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes].into_boxed_slice(), head: 0, tail: 0..0, of: FrameId(u32::MAX) }
    }

    /// What is stored, apart: up to `head` in front, the rest at `tail`.
    fn write(&mut self, stored: &[u8], head: usize, tail: Range<usize>) -> &[u8] {
        if (self.head, &self.tail) != (head, &tail) {
            self.bytes[..self.head].fill(0);
            self.bytes[self.tail.clone()].fill(0);
            (self.head, self.tail) = (head, tail);
        }
        let (stored_head, stored_tail) = stored.split_at(head);
        self.bytes[..head].copy_from_slice(stored_head);
        self.bytes[self.tail.clone()].copy_from_slice(stored_tail);
        &self.bytes[..self.tail.end]
    }
}

impl FrameSlab {
    /// The frame that is being written carries lent bytes. `is_whole`: somebody looks at it before it leaves, and sees zeros.
    pub(crate) fn load(&mut self, id: FrameId, payload: Payload, is_whole: bool) {
        let frame = &mut self.frames[id.index()];
        frame.payload = payload;
        let (at, end) = (usize::from(payload.at), payload.end());
        let stand_in = at + self.books.stand_in_bytes(usize::from(payload.length));
        self.books.write_stand_in(&mut frame.room[at..stand_in]);
        if is_whole {
            frame.room[stand_in..end].fill(0);
        }
    }

    /// Which bytes of a frame that is written need not be stored.
    pub(super) fn left_out(&self, id: FrameId) -> std::ops::Range<usize> {
        let frame = &self.frames[id.index()];
        if frame.payload.is_none() || self.books.is_watched.get() {
            return 0..0;
        }
        let stand_in = self.books.stand_in_bytes(usize::from(frame.payload.length));
        usize::from(frame.payload.at) + stand_in..frame.payload.end()
    }

    /// Copy a written frame without the bytes that are left out; the payload moves along.
    pub(super) fn shorten(
        &mut self,
        from: FrameId,
        to: FrameId,
        left_out: std::ops::Range<usize>,
        length: usize,
    ) {
        let Ok([from, to]) = self.frames.get_disjoint_mut([from.index(), to.index()]) else { return };
        let head = if left_out.is_empty() { length } else { left_out.start };
        to.room[..head].copy_from_slice(&from.room[..head]);
        if !left_out.is_empty() {
            let tail = &from.room[left_out.end..length];
            to.room[head..head + tail.len()].copy_from_slice(tail);
        }
        to.payload = std::mem::take(&mut from.payload);
        to.body = from.body;
    }

    /// The frame as its receiver sees it.
    pub(crate) fn full(&mut self, id: FrameId) -> &[u8] {
        let frame = &self.frames[id.index()];
        if !frame.is_short() {
            return frame.stored();
        }
        let (length, missing) = (usize::from(frame.length), usize::from(frame.length - frame.stored));
        let (head, end) = (frame.payload.end() - missing, frame.payload.end());
        self.blank.of = id;
        self.blank.write(frame.stored(), head, end..length)
    }

    /// The same of a frame that was looked at since it came, perhaps just now.
    pub(crate) fn full_again(&mut self, id: FrameId) -> &[u8] {
        if self.blank.of == id && self.frames[id.index()].is_short() {
            return &self.blank.bytes[..self.blank.tail.end];
        }
        self.full(id)
    }

    /// The frame with the bytes that are lent to it, for a witness. What only stands in for bytes is followed by zeros.
    pub(crate) fn shown(&mut self, id: FrameId) -> &[u8] {
        let payload = self.payload(id);
        if payload.is_none() {
            return self.bytes(id);
        }
        let mut shown = std::mem::take(&mut self.shown);
        shown.clear();
        shown.extend_from_slice(self.full(id));
        self.books.show(&payload, &mut shown);
        self.shown = shown;
        &self.shown
    }

    /// The lent bytes that a frame carries.
    pub(crate) fn payload(&self, id: FrameId) -> Payload {
        self.frames[id.index()].payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_the_ends_of_a_frame_there_is_nothing_left_of_others() {
        let mut blank = Blank::new(100);
        let stored: Vec<u8> = (1..=30).collect();
        for (head, tail) in [(10, 80..100), (25, 30..35), (5, 75..100), (30, 60..60), (10, 80..100)] {
            let whole = blank.write(&stored[..head + tail.len()], head, tail.clone());
            assert_eq!(whole.len(), tail.end);
            assert_eq!(whole[..head], stored[..head]);
            assert_eq!(whole[tail.clone()], stored[head..head + tail.len()]);
            assert!(whole[head..tail.start].iter().all(|byte| *byte == 0), "{head}, {tail:?}: {whole:?}");
        }
    }
}
