//! Frames without the bytes that a payload would have.
//!
//! If a sender's memory references a payload, or it is elided, the frame is stored without that part and is *short*. Readers
//! see it at its full length, with zeros there. The core never reads them, except where it computes a sum over whole frames, and
//! then both ends see the same zeros.

use super::FrameSlab;
use crate::ids::FrameId;
use crate::memory::payload::Payload;

impl FrameSlab {
    /// Sets the borrowed bytes of the frame that is being written. `is_whole`: the frame is read before it leaves,
    /// with zeros there.
    pub(crate) fn load(&mut self, id: FrameId, payload: Payload, is_whole: bool) {
        let frame = &mut self.frames[id.index()];
        frame.payload = payload;
        if is_whole {
            frame.buffer[usize::from(payload.at)..payload.end()].fill(0);
        }
    }

    /// Returns the range of a written frame that need not be stored.
    pub(super) fn left_out(&self, id: FrameId) -> std::ops::Range<usize> {
        let frame = &self.frames[id.index()];
        if frame.payload.is_none() || self.payload_table.is_watched.get() {
            return 0..0;
        }
        usize::from(frame.payload.at)..frame.payload.end()
    }

    /// Copies a written frame without the bytes that are left out; the payload moves along.
    pub(super) fn shorten(
        &mut self,
        from: FrameId,
        to: FrameId,
        left_out: std::ops::Range<usize>,
        length: usize,
    ) {
        let Ok([from, to]) = self.frames.get_disjoint_mut([from.index(), to.index()]) else { return };
        let head = if left_out.is_empty() { length } else { left_out.start };
        to.buffer[..head].copy_from_slice(&from.buffer[..head]);
        if !left_out.is_empty() {
            let tail = &from.buffer[left_out.end..length];
            to.buffer[head..head + tail.len()].copy_from_slice(tail);
        }
        to.payload = std::mem::take(&mut from.payload);
        to.body = from.body;
    }

    /// Returns the frame as its receiver sees it.
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

    /// Returns a frame that was read before, possibly just now, as its receiver sees it.
    pub(crate) fn full_again(&mut self, id: FrameId) -> &[u8] {
        if self.blank.of == id && self.frames[id.index()].is_short() {
            return &self.blank.bytes[..self.blank.tail.end];
        }
        self.full(id)
    }

    /// Returns the frame with its borrowed bytes, for an observer. Elided bytes are zeros.
    pub(crate) fn shown(&mut self, id: FrameId) -> &[u8] {
        let payload = self.payload(id);
        if payload.is_none() {
            return self.bytes(id);
        }
        let mut shown = std::mem::take(&mut self.shown);
        shown.clear();
        shown.extend_from_slice(self.full(id));
        self.payload_table.show(&payload, &mut shown);
        self.shown = shown;
        &self.shown
    }

    /// Returns the borrowed bytes that a frame carries.
    pub(crate) fn payload(&self, id: FrameId) -> Payload {
        self.frames[id.index()].payload
    }
}
