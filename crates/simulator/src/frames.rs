//! The bytes of all frames that exist, in rooms that are used again.
//!
//! A room is big enough for the largest frame of the rack. It is taken when a sender asks its device for a slot,
//! travels by number, is held by the receiver, and is free again when the receiver releases it. Once the rack
//! is warm no frame costs an allocation. The last room freed is the first taken, so that its lines are in cache.
//!
//! Most frames are small, and a large mesh that comes up has a million of them under way: a finished frame moves into
//! the smallest kind of room that holds it, and the large room goes to the next sender at once.
//!
//! A large body is not looked at twice: what was computed of it goes along when a frame is handed over to the next hop.
//!
//! Who may touch a room, and when, is decided by the fabric; here it is only written down.

use crc_fast::crc64_nvme;

use crate::link::ChannelId;
use crate::trace::Traced;

/// The place of a frame in the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameId(pub(crate) u32);

impl FrameId {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// For acknowledgements, heartbeats and single operations; and for a few packed operations and the link reports of a
/// member with 128 ports. Larger frames stay where they were written.
const SMALL_ROOMS_BYTES: [usize; 2] = [128, 768];
/// The kind of room in which senders write.
const LARGE: usize = SMALL_ROOMS_BYTES.len();

/// Hops write into this part of a frame; what follows stays as it is from end to end.
const HEAD_BYTES: usize = 64;

#[derive(Debug)]
struct Frame {
    room: Box<[u8]>,
    length: u32,
    channel: ChannelId,
    /// Which life of the channel carries the frame; a cut begins another.
    channel_life: u32,
    kind: u8,
    is_free: bool,
    body: Body,
}

/// What is known of the bytes of a frame from [`HEAD_BYTES`] on.
#[derive(Clone, Copy, Debug, Default)]
struct Body {
    /// Where they ended when the hash was taken; a frame of another length has another body. 0: nothing is known.
    end: u32,
    hash: u64,
}

/// All frames.
#[derive(Debug)]
pub(crate) struct FrameSlab {
    frames: Vec<Frame>,
    /// By kind of room.
    free: [Vec<u32>; LARGE + 1],
    large_room_bytes: usize,
}

impl FrameSlab {
    pub(crate) fn new(large_room_bytes: usize) -> Self {
        Self { frames: Vec::new(), free: Default::default(), large_room_bytes }
    }

    /// A room for a frame of `channel` of any size. What it holds is left over from earlier frames.
    pub(crate) fn take(&mut self, channel: ChannelId) -> FrameId {
        self.take_kind(LARGE, channel)
    }

    fn take_kind(&mut self, kind: usize, channel: ChannelId) -> FrameId {
        if let Some(index) = self.free[kind].pop() {
            let frame = &mut self.frames[index as usize];
            (frame.length, frame.channel, frame.is_free) = (0, channel, false);
            frame.body = Body::default();
            return FrameId(index);
        }
        let bytes = SMALL_ROOMS_BYTES.get(kind).map_or(self.large_room_bytes, |bytes| *bytes);
        let room = vec![0; bytes].into_boxed_slice();
        self.frames.push(Frame {
            room,
            length: 0,
            channel,
            channel_life: 0,
            kind: kind as u8,
            is_free: false,
            body: Body::default(),
        });
        FrameId(self.frames.len() as u32 - 1)
    }

    /// The smallest kind of room that holds so many bytes.
    fn kind_for(&self, bytes: usize) -> usize {
        let small = SMALL_ROOMS_BYTES.iter().position(|room| bytes <= *room && *room < self.large_room_bytes);
        small.unwrap_or(LARGE)
    }

    /// The whole room.
    pub(crate) fn room_mut(&mut self, id: FrameId) -> &mut [u8] {
        &mut self.frames[id.index()].room
    }

    /// The frame is written: fix its length, and the life of the channel that carries it. Its number may change.
    pub(crate) fn seal(&mut self, written: FrameId, length: usize, channel_life: u32) -> FrameId {
        let length = length.min(self.large_room_bytes);
        let kind = self.kind_for(length);
        let mut id = written;
        if kind != LARGE {
            id = self.take_kind(kind, self.frames[written.index()].channel);
            self.copy(written, id, 0, length);
            self.release(written);
        }
        let frame = &mut self.frames[id.index()];
        (frame.length, frame.channel_life) = (length as u32, channel_life);
        // Now, while the sender's bytes are in cache: thousands of other frames are looked at before this one arrives.
        self.body_hash(id);
        id
    }

    /// A hash of the frame's bytes from [`HEAD_BYTES`] on; 0 if there are none. Taken once, however many hops they pass. A CRC of 64
    /// bits, because that is the quickest where the processor multiplies without carries, and the same everywhere.
    fn body_hash(&mut self, id: FrameId) -> u64 {
        let frame = &mut self.frames[id.index()];
        let Some(bytes) = frame.room[..frame.length as usize].get(HEAD_BYTES..) else { return 0 };
        if frame.body.end != frame.length {
            frame.body = Body { end: frame.length, hash: crc64_nvme(bytes) };
        }
        frame.body.hash
    }

    /// What of the frame goes into the hash of a run.
    pub(crate) fn traced(&mut self, id: FrameId) -> Traced<'_> {
        let body_hash = self.body_hash(id);
        let bytes = self.bytes(id);
        Traced { length: bytes.len(), head: &bytes[..bytes.len().min(HEAD_BYTES)], body_hash }
    }

    /// The frame's bytes.
    pub(crate) fn bytes(&self, id: FrameId) -> &[u8] {
        let frame = &self.frames[id.index()];
        &frame.room[..frame.length as usize]
    }

    /// The channel that carries the frame, and which life of it.
    pub(crate) fn carrier(&self, id: FrameId) -> (ChannelId, u32) {
        let frame = &self.frames[id.index()];
        (frame.channel, frame.channel_life)
    }

    /// Turn one bit of the frame over.
    pub(crate) fn flip_bit(&mut self, id: FrameId, bit: u32) {
        let frame = &mut self.frames[id.index()];
        let length = frame.length as usize;
        if let Some(byte) = frame.room[..length].get_mut(bit as usize / 8) {
            *byte ^= 1 << (bit % 8);
            frame.body = Body::default();
        }
    }

    /// Copy part of one frame to the same place in another's room.
    pub(crate) fn copy(&mut self, from: FrameId, to: FrameId, at: usize, length: usize) {
        if let Ok([from, to]) = self.frames.get_disjoint_mut([from.index(), to.index()]) {
            to.room[at..at + length].copy_from_slice(&from.room[at..at + length]);
        }
    }

    /// Move everything from `at` on to the same place in another's room. What the first frame holds afterwards is left over
    /// from elsewhere: nobody may read it again.
    pub(crate) fn hand_over(&mut self, from: FrameId, to: FrameId, at: usize, length: usize) {
        let Ok([source, target]) = self.frames.get_disjoint_mut([from.index(), to.index()]) else { return };
        if source.room.len() == target.room.len() && length > at {
            // A large frame: its few new bytes move into its room, and the rooms change places.
            source.room[..at].copy_from_slice(&target.room[..at]);
            std::mem::swap(&mut source.room, &mut target.room);
            if at <= HEAD_BYTES {
                target.body = source.body;
            }
            source.body = Body::default();
        } else {
            self.copy(from, to, at, length);
        }
    }

    /// A second frame like this one.
    pub(crate) fn duplicate(&mut self, id: FrameId) -> FrameId {
        let length = self.bytes(id).len();
        let (channel, life) = self.carrier(id);
        let copy = self.take(channel);
        self.copy(id, copy, 0, length);
        self.seal(copy, length, life)
    }

    /// Give the room back. Giving back what is free already has no effect.
    pub(crate) fn release(&mut self, id: FrameId) {
        let Some(frame) = self.frames.get_mut(id.index()) else { return };
        if std::mem::replace(&mut frame.is_free, true) {
            return;
        }
        self.free[usize::from(frame.kind)].push(id.0);
    }

    /// Rooms that were ever needed at the same time.
    pub(crate) fn rooms(&self) -> usize {
        self.frames.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANNEL: ChannelId = ChannelId(3);

    #[test]
    fn rooms_are_used_again_and_never_twice_at_once() {
        let mut frames = FrameSlab::new(128);
        let first = frames.take(CHANNEL);
        let second = frames.take(CHANNEL);
        assert_ne!(first, second);
        frames.release(first);
        frames.release(first);
        assert_eq!(frames.take(CHANNEL), first);
        assert_ne!(frames.take(CHANNEL), first, "released twice, taken twice");
        assert_eq!(frames.rooms(), 3);
    }

    #[test]
    fn a_duplicate_has_the_bytes_and_a_room_of_its_own() {
        let mut frames = FrameSlab::new(64);
        let frame = frames.take(CHANNEL);
        frames.room_mut(frame)[..4].copy_from_slice(&[1, 2, 3, 4]);
        let frame = frames.seal(frame, 4, 9);
        let copy = frames.duplicate(frame);
        frames.flip_bit(frame, 8);
        assert_eq!(frames.bytes(frame), [1, 3, 3, 4]);
        assert_eq!(frames.bytes(copy), [1, 2, 3, 4]);
        assert_eq!(frames.carrier(copy), (CHANNEL, 9));
    }

    #[test]
    fn a_frame_that_is_handed_over_has_its_new_head_and_its_old_body() {
        for room in [64, 4_096] {
            let mut frames = FrameSlab::new(room);
            let old = frames.take(CHANNEL);
            frames.room_mut(old)[..8].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
            let old = frames.seal(old, 8, 0);
            let new = frames.take(CHANNEL);
            frames.room_mut(new)[..2].copy_from_slice(&[9, 9]);
            frames.hand_over(old, new, 2, 6);
            assert_eq!(frames.room_mut(new).len(), room);
            let new = frames.seal(new, 8, 0);
            frames.release(old);
            assert_eq!(frames.bytes(new), [9, 9, 3, 4, 5, 6, 7, 8]);
        }
    }

    #[test]
    fn what_is_known_of_a_body_goes_along_until_it_changes() {
        let mut frames = FrameSlab::new(4_096);
        let whole: Vec<u8> = (0..4_000).map(|at| at as u8).collect();
        let expected = crc64_nvme(&whole[HEAD_BYTES..]);
        let old = frames.take(CHANNEL);
        frames.room_mut(old)[..4_000].copy_from_slice(&whole);
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

        // A longer frame, a room that is used again, and a frame without a body are told apart from it.
        let longer = frames.take(CHANNEL);
        frames.hand_over(new, longer, 46, 4_000 - 46);
        let longer = frames.seal(longer, 4_001, 0);
        assert_ne!(frames.body_hash(longer), expected);
        frames.release(longer);
        let again = frames.take(CHANNEL);
        assert_eq!(again, longer);
        frames.room_mut(again)[3_999] = 77;
        let again = frames.seal(again, 4_000, 0);
        assert_ne!(frames.body_hash(again), expected);
        let short = frames.take(CHANNEL);
        let short = frames.seal(short, HEAD_BYTES - 1, 0);
        assert_eq!(frames.body_hash(short), 0);
    }

    #[test]
    fn small_frames_leave_the_large_room_to_the_next() {
        let mut frames = FrameSlab::new(4_096);
        for (length, room) in [(1, 128), (128, 128), (129, 768), (768, 768), (769, 4_096), (4_096, 4_096)] {
            let written = frames.take(CHANNEL);
            frames.room_mut(written)[length - 1] = 77;
            let frame = frames.seal(written, length, 1);
            assert_eq!((frames.bytes(frame).len(), frames.bytes(frame)[length - 1]), (length, 77));
            assert_eq!(frames.room_mut(frame).len(), room);
        }
        // Two of each kind; all large frames were written in the same room until one stayed in it.
        assert_eq!(frames.rooms(), 6);
    }
}
