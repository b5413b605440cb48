//! The bytes of all frames that exist, in buffers that are used again.
//!
//! A buffer is big enough for the largest frame of the rack. It is taken when a sender requests a slot of its device,
//! travels by number, is held by the receiver, and is free again when the receiver releases it. Once the rack
//! is warm no frame costs an allocation. The last buffer freed is the first taken, so that its lines are in cache.
//!
//! Buffers that were unused for a while are given up (`trim`): a rack that comes up needs a hundred times as many as one at rest.
//!
//! Most frames are small, and a large mesh that comes up has a million of them in flight: a finished frame moves into
//! the smallest kind of buffer that holds it, and the large buffer goes to the next sender at once.
//!
//! A large body is hashed once: the result is passed along when a frame is handed over to the next hop. A
//! payload that its sender's memory references ([`crate::memory::payload`]) has no bytes here (`short`).
//!
//! The fabric decides which member may use a buffer; this file only stores that.

mod blank;
mod kept;
mod parcel;
mod short;
mod trim;

use std::hint::black_box;
use std::sync::Arc;

use crc_fast::crc64_nvme;

use self::blank::Blank;
pub(crate) use self::parcel::Parcel;
use crate::ids::{ChannelId, FrameId};
use crate::memory::payload::{Payload, PayloadTable};
use crate::trace::Traced;

/// For acknowledgements, heartbeats and single operations; for puts with a signal, whose payload is left out; and for a few packed operations and
/// the link reports of a member with 128 ports. Larger frames stay where they were written.
const SMALL_BUFFERS_BYTES: [usize; 3] = [128, 192, 768];
/// The kind of buffer in which senders write.
const LARGE: usize = SMALL_BUFFERS_BYTES.len();

/// Hops write into this part of a frame; what follows stays as it is from end to end.
const HEAD_BYTES: usize = 64;

/// Frames with at most this number of stored bytes are hashed as a whole at every hop.
const SHORT_BYTES_MAX: usize = 192;

const LINE_BYTES: usize = 64;
/// Lines of a frame that are loaded before it is read: those of frames that are hashed as a whole.
const LINES_LOADED: usize = SHORT_BYTES_MAX.div_ceil(LINE_BYTES);

/// One cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Frame {
    buffer: Box<[u8]>,
    length: u16,
    /// Number of bytes in the buffer; less than the length if the payload is left out.
    stored: u16,
    channel: ChannelId,
    /// Incarnation of the channel that carries the frame; a cut begins a new one.
    channel_incarnation: u32,
    kind: u8,
    is_free: bool,
    /// True if the link may have to send the frame again.
    is_kept: bool,
    /// True if the frame is no longer in flight, and only kept.
    is_over: bool,
    /// Borrowed bytes that the frame carries.
    payload: Payload,
    body: Body,
}

impl Frame {
    fn stored(&self) -> &[u8] {
        &self.buffer[..usize::from(self.stored)]
    }

    const fn is_short(&self) -> bool {
        self.stored < self.length
    }
}

/// Hash of the stored bytes of a frame from [`HEAD_BYTES`] on.
#[derive(Clone, Copy, Debug, Default)]
struct Body {
    /// Length of the frame when the hash was taken. A frame of another length has another body. 0: there is no hash.
    end: u16,
    hash: u64,
}

/// All frames.
#[derive(Debug)]
pub(crate) struct FrameSlab {
    frames: Vec<Frame>,
    /// Free frames by kind of buffer; the last one freed is at the end.
    free: [Vec<u32>; LARGE + 1],
    /// By kind of buffer: the number of buffers that were not taken since the last call of `trim`.
    unused: [usize; LARGE + 1],
    /// Frames whose buffer was given up.
    bare: Vec<u32>,
    large_buffer_bytes: usize,
    payload_table: Arc<PayloadTable>,
    alive: usize,
    alive_max: usize,
    blank: Blank,
    /// Bytes of the frame that was last shown to an observer.
    shown: Vec<u8>,
}

impl FrameSlab {
    pub(crate) fn new(large_buffer_bytes: usize, payload_table: Arc<PayloadTable>) -> Self {
        Self {
            frames: Vec::new(),
            free: Default::default(),
            unused: Default::default(),
            bare: Vec::new(),
            large_buffer_bytes,
            payload_table,
            alive: 0,
            alive_max: 0,
            blank: Blank::new(large_buffer_bytes),
            shown: Vec::new(),
        }
    }

    /// Takes a buffer for a frame of `channel` of any size. The buffer holds bytes of earlier frames.
    pub(crate) fn take(&mut self, channel: ChannelId) -> FrameId {
        self.take_kind(LARGE, channel)
    }

    fn take_kind(&mut self, kind: usize, channel: ChannelId) -> FrameId {
        if let Some(index) = self.free[kind].pop() {
            self.unused[kind] = self.unused[kind].min(self.free[kind].len());
            let frame = &mut self.frames[index as usize];
            (frame.length, frame.stored, frame.channel, frame.is_free) = (0, 0, channel, false);
            (frame.payload, frame.body) = (Payload::default(), Body::default());
            return FrameId(index);
        }
        self.make(kind, channel)
    }

    /// Makes a frame with a new buffer.
    #[cold]
    fn make(&mut self, kind: usize, channel: ChannelId) -> FrameId {
        let bytes = SMALL_BUFFERS_BYTES.get(kind).map_or(self.large_buffer_bytes, |bytes| *bytes);
        let frame = Frame {
            buffer: vec![0; bytes].into_boxed_slice(),
            length: 0,
            stored: 0,
            channel,
            channel_incarnation: 0,
            kind: kind as u8,
            is_free: false,
            is_kept: false,
            is_over: false,
            payload: Payload::default(),
            body: Body::default(),
        };
        if let Some(index) = self.bare.pop() {
            self.frames[index as usize] = frame;
            return FrameId(index);
        }
        self.frames.push(frame);
        FrameId(self.frames.len() as u32 - 1)
    }

    /// Returns the smallest kind of buffer that holds so many bytes.
    fn kind_for(&self, bytes: usize) -> usize {
        let small = SMALL_BUFFERS_BYTES
            .iter()
            .position(|buffer| bytes <= *buffer && *buffer < self.large_buffer_bytes);
        small.unwrap_or(LARGE)
    }

    /// Returns the whole buffer, to be written.
    pub(crate) fn buffer_mut(&mut self, id: FrameId) -> &mut [u8] {
        &mut self.frames[id.index()].buffer
    }

    /// Returns the frame that is being written, at its future length.
    pub(crate) fn draft(&self, id: FrameId, length: usize) -> &[u8] {
        let buffer = &self.frames[id.index()].buffer;
        &buffer[..length.min(buffer.len())]
    }

    /// Finishes a written frame: fixes its length and the incarnation of the channel that carries it. Its number may change.
    pub(crate) fn seal(&mut self, written: FrameId, length: usize, channel_incarnation: u32) -> FrameId {
        let length = length.min(self.large_buffer_bytes);
        let left_out = self.left_out(written);
        let stored = length - left_out.len();
        let kind = self.kind_for(stored);
        let mut id = written;
        if kind != LARGE {
            id = self.take_kind(kind, self.frames[written.index()].channel);
            self.shorten(written, id, left_out, length);
            self.release(written);
        } else if !left_out.is_empty() {
            // The rest of the frame is too large for a small buffer. The payload's range holds bytes of earlier frames.
            self.frames[id.index()].buffer[left_out].fill(0);
        }
        let frame = &mut self.frames[id.index()];
        frame.stored = if kind == LARGE { length as u16 } else { stored as u16 };
        (frame.length, frame.channel_incarnation) = (length as u16, channel_incarnation);
        self.note_alive();
        // Now, while the sender's bytes are in cache: thousands of other frames are looked at before this one arrives.
        self.body_hash(id);
        id
    }

    /// Returns a hash of the frame's stored bytes from [`HEAD_BYTES`] on; 0 if there are few. Computed once for all hops. A
    /// CRC of 64 bits, because that is the quickest where the processor multiplies without carries, and equal on all machines.
    fn body_hash(&mut self, id: FrameId) -> u64 {
        let frame = &mut self.frames[id.index()];
        if usize::from(frame.stored) <= SHORT_BYTES_MAX {
            return 0;
        }
        let bytes = &frame.buffer[HEAD_BYTES..usize::from(frame.stored)];
        if frame.body.end != frame.stored {
            frame.body = Body { end: frame.stored, hash: crc64_nvme(bytes) };
        }
        frame.body.hash
    }

    /// Returns the parts of the frame that are added to the hash of a run.
    pub(crate) fn traced(&mut self, id: FrameId) -> Traced<'_> {
        let body_hash = self.body_hash(id);
        let frame = &self.frames[id.index()];
        let stored = frame.stored();
        let head = if stored.len() <= SHORT_BYTES_MAX { stored } else { &stored[..HEAD_BYTES] };
        Traced { length: frame.length.into(), head, body_hash }
    }

    /// Returns the stored bytes of the frame.
    pub(crate) fn bytes(&self, id: FrameId) -> &[u8] {
        self.frames[id.index()].stored()
    }

    /// Loads the stored bytes of frames into the cache: first what says where they are, then the bytes, so that the loads of each kind do not
    /// wait for each other. It has no other effect.
    pub(crate) fn load_into_cache(&self, ids: impl Iterator<Item = FrameId> + Clone) {
        for id in ids.clone() {
            black_box(self.frames[id.index()].stored);
        }
        for id in ids {
            let stored = self.frames[id.index()].stored();
            for at in (0..stored.len()).step_by(LINE_BYTES).take(LINES_LOADED) {
                black_box(stored[at]);
            }
        }
    }

    /// Returns true if the slab has such a frame, used or not.
    pub(crate) fn has(&self, id: FrameId) -> bool {
        id.index() < self.frames.len()
    }

    /// Returns the channel that carries the frame, and the incarnation of the channel.
    pub(crate) fn carrier(&self, id: FrameId) -> (ChannelId, u32) {
        let frame = &self.frames[id.index()];
        (frame.channel, frame.channel_incarnation)
    }

    /// Flips one bit of the frame.
    pub(crate) fn flip_bit(&mut self, id: FrameId, bit: u32) {
        let frame = &mut self.frames[id.index()];
        let stored = usize::from(frame.stored);
        if let Some(byte) = frame.buffer[..stored].get_mut(bit as usize / 8) {
            *byte ^= 1 << (bit % 8);
            frame.body = Body::default();
        }
    }

    /// Moves everything from `at` on to the same offset in another frame's buffer. The first frame then holds undefined bytes and
    /// must not be read, unless it is kept.
    pub(crate) fn hand_over(&mut self, from: FrameId, to: FrameId, at: usize, length: usize) {
        let Ok([source, target]) = self.frames.get_disjoint_mut([from.index(), to.index()]) else { return };
        target.payload = source.payload;
        if at <= HEAD_BYTES {
            target.body = source.body;
        }
        if source.is_kept {
            self.payload_table.share(&source.payload);
        } else {
            (source.payload, source.body) = (Payload::default(), Body::default());
        }
        if source.is_short() {
            let (end, missing) = (target.payload.end(), usize::from(source.length - source.stored));
            let head = end - missing;
            target.buffer[at..head].copy_from_slice(&source.buffer[at..head]);
            if self.payload_table.is_summed.get() || self.payload_table.is_watched.get() {
                target.buffer[head..end].fill(0);
            }
            let tail = &source.buffer[head..usize::from(source.stored)];
            target.buffer[end..end + tail.len()].copy_from_slice(tail);
        } else if !source.is_kept && source.buffer.len() == target.buffer.len() && length > at {
            // A large frame: its few new bytes move into its buffer, and the two frames swap buffers.
            source.buffer[..at].copy_from_slice(&target.buffer[..at]);
            std::mem::swap(&mut source.buffer, &mut target.buffer);
        } else {
            target.buffer[at..at + length].copy_from_slice(&source.buffer[at..at + length]);
        }
    }

    /// Returns a copy of this frame, also in flight.
    pub(crate) fn duplicate(&mut self, id: FrameId) -> FrameId {
        let copy = self.copy(id);
        self.note_alive();
        copy
    }

    fn copy(&mut self, id: FrameId) -> FrameId {
        let frame = &self.frames[id.index()];
        let copy = self.take_kind(usize::from(frame.kind), frame.channel);
        if let Ok([frame, copy]) = self.frames.get_disjoint_mut([id.index(), copy.index()]) {
            let stored = usize::from(frame.stored);
            copy.buffer[..stored].copy_from_slice(&frame.buffer[..stored]);
            (copy.length, copy.stored, copy.channel_incarnation) =
                (frame.length, frame.stored, frame.channel_incarnation);
            (copy.payload, copy.body) = (frame.payload, frame.body);
            self.payload_table.share(&frame.payload);
        }
        copy
    }

    /// Ends the flight of a frame. Its buffer is freed unless the frame is kept. Releasing a free frame has no effect.
    pub(crate) fn release(&mut self, id: FrameId) {
        let Some(frame) = self.frames.get_mut(id.index()) else { return };
        if frame.is_free || frame.is_over {
            return;
        }
        self.alive -= usize::from(frame.length > 0);
        frame.is_over = frame.is_kept;
        if !frame.is_kept {
            self.free(id);
        }
    }

    fn free(&mut self, id: FrameId) {
        let frame = &mut self.frames[id.index()];
        self.payload_table.give_back(&std::mem::take(&mut frame.payload));
        (frame.length, frame.is_free, frame.is_over) = (0, true, false);
        self.free[usize::from(frame.kind)].push(id.0);
    }

    fn note_alive(&mut self) {
        self.alive += 1;
        self.alive_max = self.alive_max.max(self.alive);
    }

    /// Maximum number of frames that existed at the same time, without those that are still being written.
    pub(crate) const fn alive_max(&self) -> usize {
        self.alive_max
    }
}

#[cfg(test)]
mod tests {
    use rackloom_plan::PayloadMode;

    use super::*;

    const CHANNEL: ChannelId = ChannelId(3);

    fn slab(large_buffer_bytes: usize) -> FrameSlab {
        FrameSlab::new(large_buffer_bytes, Arc::new(PayloadTable::new(PayloadMode::Full, 1)))
    }

    #[test]
    fn buffers_are_reused_and_never_shared() {
        let mut frames = slab(128);
        let first = frames.take(CHANNEL);
        let second = frames.take(CHANNEL);
        assert_ne!(first, second);
        frames.release(first);
        frames.release(first);
        assert_eq!(frames.take(CHANNEL), first);
        assert_ne!(frames.take(CHANNEL), first, "released twice, taken twice");
        assert_eq!(frames.frames.len(), 3);
    }

    #[test]
    fn a_duplicate_has_the_same_bytes_in_a_buffer_of_its_own() {
        let mut frames = slab(64);
        let frame = frames.take(CHANNEL);
        frames.buffer_mut(frame)[..4].copy_from_slice(&[1, 2, 3, 4]);
        let frame = frames.seal(frame, 4, 9);
        let copy = frames.duplicate(frame);
        frames.flip_bit(frame, 8);
        assert_eq!(frames.bytes(frame), [1, 3, 3, 4]);
        assert_eq!(frames.bytes(copy), [1, 2, 3, 4]);
        assert_eq!(frames.carrier(copy), (CHANNEL, 9));
    }

    #[test]
    fn a_frame_that_is_handed_over_has_its_new_head_and_its_old_body() {
        for buffer in [64, 4_096] {
            let mut frames = slab(buffer);
            let old = frames.take(CHANNEL);
            frames.buffer_mut(old)[..8].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
            let old = frames.seal(old, 8, 0);
            let new = frames.take(CHANNEL);
            frames.buffer_mut(new)[..2].copy_from_slice(&[9, 9]);
            frames.hand_over(old, new, 2, 6);
            assert_eq!(frames.buffer_mut(new).len(), buffer);
            let new = frames.seal(new, 8, 0);
            frames.release(old);
            assert_eq!(frames.bytes(new), [9, 9, 3, 4, 5, 6, 7, 8]);
        }
    }

    #[test]
    fn the_hash_of_a_body_is_passed_along_until_the_body_changes() {
        let mut frames = slab(4_096);
        let whole: Vec<u8> = (0..4_000).map(|at| at as u8).collect();
        let expected = crc64_nvme(&whole[HEAD_BYTES..]);
        let old = frames.take(CHANNEL);
        frames.buffer_mut(old)[..4_000].copy_from_slice(&whole);
        let old = frames.seal(old, 4_000, 0);
        assert_eq!(frames.body_hash(old), expected);
        let new = frames.take(CHANNEL);
        frames.hand_over(old, new, 46, 4_000 - 46);
        let new = frames.seal(new, 4_000, 0);
        assert_eq!((frames.frames[new.index()].body.end, frames.body_hash(new)), (4_000, expected));
        frames.flip_bit(new, 8 * 3_000);
        assert_ne!(frames.body_hash(new), expected);
        frames.flip_bit(new, 8 * 3_000);
        assert_eq!(frames.body_hash(new), expected);

        // A longer frame, a reused buffer, and a frame without a body are distinguished from it.
        let longer = frames.take(CHANNEL);
        frames.hand_over(new, longer, 46, 4_000 - 46);
        let longer = frames.seal(longer, 4_001, 0);
        assert_ne!(frames.body_hash(longer), expected);
        frames.release(longer);
        let again = frames.take(CHANNEL);
        assert_eq!(again, longer);
        frames.buffer_mut(again)[3_999] = 77;
        let again = frames.seal(again, 4_000, 0);
        assert_ne!(frames.body_hash(again), expected);
        let short = frames.take(CHANNEL);
        let short = frames.seal(short, HEAD_BYTES - 1, 0);
        assert_eq!(frames.body_hash(short), 0);
    }

    #[test]
    fn small_frames_release_the_large_buffer() {
        let mut frames = slab(4_096);
        let kinds = [
            (1, 128),
            (128, 128),
            (129, 192),
            (192, 192),
            (193, 768),
            (768, 768),
            (769, 4_096),
            (4_096, 4_096),
        ];
        for (length, buffer) in kinds {
            let written = frames.take(CHANNEL);
            frames.buffer_mut(written)[length - 1] = 77;
            let frame = frames.seal(written, length, 1);
            assert_eq!((frames.bytes(frame).len(), frames.bytes(frame)[length - 1]), (length, 77));
            assert_eq!(frames.buffer_mut(frame).len(), buffer);
        }
        // Two of each kind; all large frames were written in the same buffer until one stayed in it.
        assert_eq!((frames.frames.len(), frames.alive_max()), (8, 8));
    }
}
