//! Leases of a device that stores frames in a ring: frames that the core still refers to.
//!
//! A ring frees space in the order of arrival, but leases are released in any order: a frame that waits for a gap before it is held while a hundred
//! later ones pass. One held frame must not block the ring, least of all the control frames behind it. When more than half of the ring is held, the
//! oldest held frames therefore move to the heap. The lease stays the same; only its bytes move. The heap is bounded too. Beyond that bound the ring
//! fills up, and the sender finds it full. A frame that a hardware device reads in place is not moved. Such a device releases the frame soon, or
//! fails.
//!
//! Steady state allocates nothing: slots and heap buffers are reused.

use std::collections::VecDeque;

use super::DeviceLease;
use super::ring::{Consumer, Record};

/// Limit of the bytes on the heap, as a multiple of the ring's size.
const HEAP_BYTES_MAX_FACTOR: u64 = 4;

#[derive(Debug)]
enum SlotState {
    /// Not in use.
    Free,
    /// In the ring, read by the core.
    Ring(Record),
    /// In the ring, read in place by a hardware device. It must not be moved.
    Held(Record),
    /// In the ring, released, waiting for older ones.
    Returned(Record),
    /// On the heap. Its space in the ring is free.
    Heap(Vec<u8>),
}

/// Leases on the records of one ring.
#[derive(Debug, Default)]
pub(super) struct Leases {
    slots: Vec<SlotState>,
    free: Vec<u32>,
    /// Slots whose record is still in the ring, oldest first.
    order: VecDeque<u32>,
    buffers: Vec<Vec<u8>>,
    heap_bytes: u64,
    copied_out: u64,
}

impl Leases {
    /// Leases the record that was read last.
    pub(super) fn take(&mut self, record: Record) -> DeviceLease {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(SlotState::Free);
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize] = SlotState::Ring(record);
        self.order.push_back(slot);
        DeviceLease(slot)
    }

    /// Frees the record that was read last without a lease: at once, or after the older records.
    #[inline]
    pub(super) fn pass(&mut self, ring: &mut Consumer, record: Record) {
        if self.order.is_empty() {
            ring.advance(record.end());
        } else {
            let lease = self.take(record);
            self.release(ring, lease);
        }
    }

    /// Returns the bytes of a lease, or an empty slice if there is no such lease.
    pub(super) fn bytes<'a>(&'a self, ring: &'a Consumer, lease: DeviceLease) -> &'a [u8] {
        match self.slots.get(lease.0 as usize) {
            Some(SlotState::Ring(record) | SlotState::Held(record)) => ring.bytes(*record),
            Some(SlotState::Heap(bytes)) => bytes,
            Some(SlotState::Free | SlotState::Returned(_)) | None => &[],
        }
    }

    /// Pins the bytes of a lease in the ring, even if the ring fills up meanwhile. The caller must release the lease soon.
    pub(super) fn hold(&mut self, lease: DeviceLease) {
        if let Some(slot_state) = self.slots.get_mut(lease.0 as usize)
            && let SlotState::Ring(record) = *slot_state
        {
            *slot_state = SlotState::Held(record);
        }
    }

    /// Releases a lease. Does nothing if the lease does not exist.
    pub(super) fn release(&mut self, ring: &mut Consumer, lease: DeviceLease) {
        let Some(slot_state) = self.slots.get_mut(lease.0 as usize) else { return };
        match std::mem::replace(slot_state, SlotState::Free) {
            SlotState::Ring(record) | SlotState::Held(record) => {
                *slot_state = SlotState::Returned(record);
                self.give_back(ring);
            }
            SlotState::Heap(buffer) => {
                self.heap_bytes -= buffer.len() as u64;
                self.buffers.push(buffer);
                self.free.push(lease.0);
            }
            unchanged @ (SlotState::Free | SlotState::Returned(_)) => *slot_state = unchanged,
        }
    }

    /// Moves the oldest held frames to the heap until at most half of the ring is held.
    pub(super) fn evacuate(&mut self, ring: &mut Consumer) {
        let heap_bytes_max = ring.body_bytes() * HEAP_BYTES_MAX_FACTOR;
        while ring.held_bytes() > ring.body_bytes() / 2 && self.heap_bytes < heap_bytes_max {
            let Some(&slot) = self.order.front() else { return };
            let slot_state = &mut self.slots[slot as usize];
            if matches!(slot_state, SlotState::Held(_)) {
                return;
            }
            self.order.pop_front();
            if let SlotState::Ring(record) = *slot_state {
                let mut buffer = self.buffers.pop().unwrap_or_default();
                buffer.clear();
                buffer.extend_from_slice(ring.bytes(record));
                self.heap_bytes += buffer.len() as u64;
                self.copied_out += 1;
                *slot_state = SlotState::Heap(buffer);
                ring.advance(record.end());
            }
            self.give_back(ring);
        }
    }

    /// Returns the number of frames moved to the heap so far.
    pub(super) fn copied_out(&self) -> u64 {
        self.copied_out
    }

    /// Frees the oldest records of the ring as long as they have been released.
    fn give_back(&mut self, ring: &mut Consumer) {
        while let Some(&slot) = self.order.front() {
            let slot_state = &mut self.slots[slot as usize];
            let SlotState::Returned(record) = *slot_state else { return };
            *slot_state = SlotState::Free;
            self.free.push(slot);
            self.order.pop_front();
            ring.advance(record.end());
        }
    }
}
