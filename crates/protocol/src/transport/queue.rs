//! Packets of one stream, oldest first, in slots that do not move.
//!
//! A packet is two cache lines and a buffer. No packet is ever moved: one that leaves the front gives its slot and
//! its buffer to one that is added at the back. A stream that has once had a full window of packets therefore neither
//! allocates nor copies, and a new packet writes only the fields that differ from an empty one. A stream that never has
//! more than one packet has one slot.
//!
//! The queue contains no rule about windows, numbers or loss.

use alloc::boxed::Box;
use core::ops::{Index, IndexMut};

use super::packet::Packet;

/// Initial capacity of a packet's buffer, in bytes: a small operation and its select.
const BODY_BYTES: usize = 96;

/// Queue of packets, oldest first.
#[derive(Debug, Default)]
pub struct PacketQueue {
    /// Ring of slots: none, or a power of two.
    slots: Box<[Packet]>,
    /// Slot of the oldest packet.
    front: u32,
    length: u32,
}

impl PacketQueue {
    /// Number of packets.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        self.length as usize
    }

    /// Returns true if the queue is empty.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    #[inline]
    fn slot(&self, index: usize) -> usize {
        (self.front as usize + index) & (self.slots.len().wrapping_sub(1))
    }

    /// Returns the packet at an index, counted from the oldest.
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Packet> {
        if index < self.len() { self.slots.get(self.slot(index)) } else { None }
    }

    /// Returns the packet at an index for changes.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut Packet> {
        let slot = self.slot(index);
        if index < self.len() { self.slots.get_mut(slot) } else { None }
    }

    /// Returns the newest packet.
    #[must_use]
    #[inline]
    pub fn back(&self) -> Option<&Packet> {
        self.get(self.len().wrapping_sub(1))
    }

    /// Returns the newest packet for changes.
    #[inline]
    pub fn back_mut(&mut self) -> Option<&mut Packet> {
        self.get_mut(self.len().wrapping_sub(1))
    }

    /// Iterates over the packets, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        let (behind, ahead) = self.slots.split_at(self.front as usize);
        ahead.iter().chain(behind).take(self.len())
    }

    /// Iterates over the packets for changes, oldest first.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Packet> {
        let length = self.len();
        let (behind, ahead) = self.slots.split_at_mut(self.front as usize);
        ahead.iter_mut().chain(behind).take(length)
    }

    /// Adds an empty packet, whose first operation has this number.
    #[inline]
    pub fn open(&mut self, first_operation: u32) -> &mut Packet {
        if self.len() == self.slots.len() {
            self.grow();
        }
        let slot = self.slot(self.len());
        self.length += 1;
        self.make_ready(slot + 1);
        let packet = &mut self.slots[slot];
        packet.begin(first_operation);
        packet
    }

    /// Allocates the buffer of the slot that is used next, and loads its cache line. After some hundred long payloads
    /// that line is in no cache, and waiting for it when it is written would take a tenth of the time of a put.
    #[inline]
    fn make_ready(&mut self, slot: usize) {
        let slot = slot & (self.slots.len() - 1);
        let next = &mut self.slots[slot];
        if next.body.capacity() == 0 {
            next.body.reserve(BODY_BYTES);
        }
    }

    /// Returns the newest packet, or adds one if there is none.
    #[inline]
    pub fn back_or_open(&mut self, first_operation: u32) -> &mut Packet {
        if self.length == 0 {
            return self.open(first_operation);
        }
        let slot = self.slot(self.len() - 1);
        &mut self.slots[slot]
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = core::mem::take(&mut self.slots).into_vec();
        slots.rotate_left(self.front as usize);
        self.front = 0;
        let count = (2 * slots.len()).max(1);
        slots.reserve_exact(count - slots.len());
        slots.resize_with(count, Packet::default);
        slots[self.length as usize].body.reserve(BODY_BYTES);
        self.slots = slots.into_boxed_slice();
        assert!(self.slots.len().is_power_of_two(), "a slot is found by a mask");
    }

    /// Removes the oldest packet.
    #[inline]
    pub fn close_front(&mut self) {
        if self.length > 0 {
            self.front = self.slot(1) as u32;
            self.length -= 1;
        }
    }

    /// Keeps only the `length` oldest packets.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.len().min(length) as u32;
    }
}

impl Index<usize> for PacketQueue {
    type Output = Packet;

    #[inline]
    fn index(&self, index: usize) -> &Packet {
        assert!(index < self.len(), "packet {index} of {}", self.length);
        &self.slots[self.slot(index)]
    }
}

impl IndexMut<usize> for PacketQueue {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut Packet {
        assert!(index < self.len(), "packet {index} of {}", self.length);
        let slot = self.slot(index);
        &mut self.slots[slot]
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;
    use alloc::format;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Open,
        Close,
        Truncate(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![5 => Just(Step::Open), 4 => Just(Step::Close), 1 => (0_usize..9).prop_map(Step::Truncate)]
    }

    proptest! {
        /// All open packets stay in order and with their content, however the slots are reused.
        #[test]
        fn packets_keep_their_order_and_are_empty_when_opened(steps in prop::collection::vec(step(), 0..200)) {
            let (mut queue, mut model) = (PacketQueue::default(), VecDeque::new());
            for (number, step) in (0_u32..).zip(steps) {
                match step {
                    Step::Open => {
                        let packet = queue.open(number);
                        prop_assert_eq!(format!("{packet:?}"), format!("{:?}", fresh(number)));
                        packet.body.extend_from_slice(&number.to_le_bytes());
                        (packet.operation_count, packet.transmissions, packet.is_lost) = (3, 2, true);
                        packet.selected = Some(Default::default());
                        (packet.order, packet.path, packet.is_held_by_receiver) = (9, 1, true);
                        model.push_back(number);
                    }
                    Step::Close => {
                        queue.close_front();
                        model.pop_front();
                    }
                    Step::Truncate(length) => {
                        queue.truncate(length);
                        model.truncate(length);
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.is_empty(), model.is_empty());
                let firsts = |packet: &Packet| packet.first_operation;
                prop_assert_eq!(queue.iter().map(firsts).collect::<VecDeque<_>>(), model.clone());
                prop_assert_eq!(queue.back().map(firsts), model.back().copied());
                let by_index = (0..queue.len()).map(|index| queue[index].first_operation);
                prop_assert_eq!(by_index.collect::<VecDeque<_>>(), model.clone());
                let mutable = queue.iter_mut().map(|packet| packet.first_operation);
                prop_assert_eq!(mutable.collect::<VecDeque<_>>(), model.clone());
                prop_assert!(queue.get(model.len()).is_none());
            }
        }
    }

    fn fresh(first_operation: u32) -> Packet {
        Packet { first_operation, ..Packet::default() }
    }
}
