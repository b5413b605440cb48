//! Frames that travel to a member of another part.
//!
//! Buffers and references to payload belong to one part. A frame that leaves for another one is copied into a parcel,
//! with the bytes of its payload, and takes a buffer of the receiver's part there. Its length, its stored bytes and its
//! hash stay the same, so the hash of a run does not depend on the number of threads.

use rackloom_protocol::Instant;

use super::{Body, FrameSlab};
use crate::ids::{ChannelId, FrameId};
use crate::memory::payload::Payload;

/// Frames for the members of one part, in the order in which they were sent.
#[derive(Debug, Default)]
pub(crate) struct Parcel {
    frames: Vec<PackedFrame>,
    /// Earliest arrival, if there are frames.
    first_arrival: Option<Instant>,
    /// Stored bytes and payloads of all frames.
    bytes: Vec<u8>,
}

/// Frame in a parcel.
#[derive(Clone, Copy, Debug)]
struct PackedFrame {
    arrival: Instant,
    channel: ChannelId,
    channel_incarnation: u32,
    length: u16,
    stored: u16,
    payload: Payload,
    /// Length of the payload's bytes, which follow the stored ones; 0 if payloads have none.
    payload_bytes: u16,
    body: Body,
}

impl Parcel {
    /// Returns the earliest arrival, or `Instant::NEVER` if the parcel is empty.
    pub(crate) fn first_arrival(&self) -> Instant {
        self.first_arrival.unwrap_or(Instant::NEVER)
    }

    /// Returns true if there are no frames.
    pub(crate) const fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

impl FrameSlab {
    /// Moves a frame that has left into a parcel.
    pub(crate) fn pack(&mut self, id: FrameId, arrival: Instant, parcel: &mut Parcel) {
        let frame = &self.frames[id.index()];
        parcel.bytes.extend_from_slice(frame.stored());
        let payload_bytes = self.payload_table.append_bytes(&frame.payload, &mut parcel.bytes);
        parcel.first_arrival = Some(parcel.first_arrival().min(arrival));
        parcel.frames.push(PackedFrame {
            arrival,
            channel: frame.channel,
            channel_incarnation: frame.channel_incarnation,
            length: frame.length,
            stored: frame.stored,
            payload: frame.payload,
            payload_bytes,
            body: frame.body,
        });
        self.release(id);
    }

    /// Takes all frames out of a parcel, and calls `arrives` for each, with its channel and the time of its arrival.
    pub(crate) fn unpack(
        &mut self,
        parcel: &mut Parcel,
        mut arrives: impl FnMut(FrameId, ChannelId, Instant),
    ) {
        let mut rest = &parcel.bytes[..];
        for packed in &parcel.frames {
            let (stored, after) = rest.split_at(usize::from(packed.stored));
            let (payload, after) = after.split_at(usize::from(packed.payload_bytes));
            rest = after;
            let id = self.take_kind(self.kind_for(stored.len()), packed.channel);
            let frame = &mut self.frames[id.index()];
            frame.buffer[..stored.len()].copy_from_slice(stored);
            (frame.length, frame.stored) = (packed.length, packed.stored);
            (frame.channel_incarnation, frame.body) = (packed.channel_incarnation, packed.body);
            frame.payload = self.payload_table.adopt(packed.payload, payload);
            self.note_alive();
            arrives(id, packed.channel, packed.arrival);
        }
        parcel.first_arrival = None;
        parcel.frames.clear();
        parcel.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rackloom_plan::PayloadMode;
    use rackloom_protocol::{NodeId, RegionId};

    use super::*;
    use crate::memory::payload::PayloadTable;

    const CHANNEL: ChannelId = ChannelId(3);
    const REGION: RegionId = RegionId(1);

    fn slab(mode: PayloadMode) -> (FrameSlab, Arc<PayloadTable>) {
        let payload_table = Arc::new(PayloadTable::new(mode, 2));
        payload_table.is_observed.set(true);
        (FrameSlab::new(4_096, Arc::clone(&payload_table)), payload_table)
    }

    /// Returns a frame of 1000 bytes in flight, 800 of which are borrowed from node 1.
    fn in_flight(frames: &mut FrameSlab, payload_table: &PayloadTable) -> FrameId {
        let buffer = frames.take(CHANNEL);
        frames.buffer_mut(buffer)[..1_000].iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
        let reference = {
            let mut references = payload_table.references();
            let reference = references[1].add(REGION, 0, 800);
            references[1].keep_one(reference, &[9; 800]);
            reference
        };
        frames.load(buffer, Payload { at: 100, length: 800, source: NodeId(1), reference }, false);
        frames.seal(buffer, 1_000, 7)
    }

    #[test]
    fn a_frame_arrives_as_it_left_and_takes_its_payload_along() {
        for mode in [PayloadMode::Full, PayloadMode::Elided] {
            let (mut here, here_table) = slab(mode);
            let (mut there, there_table) = slab(mode);
            let frame = in_flight(&mut here, &here_table);
            let stored = here.bytes(frame).to_vec();
            let (length, body_hash) = (here.traced(frame).length, here.traced(frame).body_hash);
            let mut parcel = Parcel::default();
            here.pack(frame, Instant(55), &mut parcel);
            assert_eq!((here.alive, parcel.first_arrival()), (0, Instant(55)));
            let mut arrived = Vec::new();
            there.unpack(&mut parcel, |frame, _, at| arrived.push((frame, at)));
            let [(frame, Instant(55))] = arrived[..] else { panic!("{arrived:?}") };
            assert_eq!((there.bytes(frame), there.carrier(frame)), (&stored[..], (CHANNEL, 7)));
            assert_eq!((there.traced(frame).length, there.traced(frame).body_hash), (length, body_hash));
            let mut shown = vec![0; 1_000];
            there_table.show(&there.payload(frame), &mut shown);
            let expected = if mode == PayloadMode::Full { 9 } else { 0 };
            assert!(shown[100..900].iter().all(|byte| *byte == expected));
            assert_eq!(parcel.first_arrival(), Instant::NEVER);
        }
    }

    #[test]
    fn frames_leave_a_parcel_in_the_order_in_which_they_were_sent() {
        let (mut here, _) = slab(PayloadMode::Full);
        let (mut there, _) = slab(PayloadMode::Full);
        let mut parcel = Parcel::default();
        for (length, arrival) in [(60, 9), (3_000, 3), (200, 9)] {
            let buffer = here.take(CHANNEL);
            here.buffer_mut(buffer)[..length].fill(length as u8);
            let frame = here.seal(buffer, length, 0);
            here.pack(frame, Instant(arrival), &mut parcel);
        }
        assert_eq!(parcel.first_arrival(), Instant(3));
        let mut arrived = Vec::new();
        there.unpack(&mut parcel, |frame, _, at| arrived.push((frame, at.0)));
        let lengths: Vec<_> = arrived.iter().map(|(frame, at)| (there.bytes(*frame).len(), *at)).collect();
        assert_eq!(lengths, [(60, 9), (3_000, 3), (200, 9)]);
        assert!(arrived.iter().all(|(frame, _)| {
            there.bytes(*frame).iter().all(|byte| *byte == there.bytes(*frame).len() as u8)
        }));
    }
}
