//! Frames that the core still refers to, on a device that stores frames in a ring.
//!
//! A ring gives room back in the order of arrival, but leases come back in any order: a frame that waits for a hole
//! before it is held while a hundred later ones pass. One held frame must not stop the ring, least of all the control
//! frames behind it. So when more than half of the ring is held, the oldest held frames move to the heap; the lease
//! stays the same, only its bytes live elsewhere. The heap is bounded too: beyond it the ring does fill, and the
//! sender feels it. A frame that a device reads where it lies is not moved; such a device gives it back soon, or fails.
//!
//! Nothing is allocated in steady state: slots and heap buffers are used again.

use std::collections::VecDeque;

use super::DeviceLease;
use super::ring::{Consumer, Record};

/// Bytes on the heap, as a multiple of the ring's, beyond which nothing more is moved there.
const HEAP_BYTES_MAX_FACTOR: u64 = 4;

#[derive(Debug)]
enum Place {
    /// Not in use.
    Free,
    /// In the ring, read by the core.
    Ring(Record),
    /// The same, and not to be moved: a device reads it there.
    Held(Record),
    /// In the ring, given back, waiting for older ones.
    Returned(Record),
    /// On the heap; the ring has forgotten it.
    Heap(Vec<u8>),
}

/// Leases on the records of one ring.
#[derive(Debug, Default)]
pub(super) struct Leases {
    slots: Vec<Place>,
    free: Vec<u32>,
    /// Slots whose record is still in the ring, oldest first.
    order: VecDeque<u32>,
    buffers: Vec<Vec<u8>>,
    heap_bytes: u64,
    evacuated: u64,
}

impl Leases {
    /// Lease the record that was read last.
    pub(super) fn take(&mut self, record: Record) -> DeviceLease {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Place::Free);
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize] = Place::Ring(record);
        self.order.push_back(slot);
        DeviceLease(slot)
    }

    /// The record that was read last needs no lease: its room goes back at once, or behind that of older ones.
    #[inline]
    pub(super) fn pass(&mut self, ring: &mut Consumer, record: Record) {
        if self.order.is_empty() {
            ring.advance(record.end());
        } else {
            let lease = self.take(record);
            self.release(ring, lease);
        }
    }

    /// The bytes under a lease; empty if there is no such lease.
    pub(super) fn bytes<'a>(&'a self, ring: &'a Consumer, lease: DeviceLease) -> &'a [u8] {
        match self.slots.get(lease.0 as usize) {
            Some(Place::Ring(record) | Place::Held(record)) => ring.bytes(*record),
            Some(Place::Heap(bytes)) => bytes,
            Some(Place::Free | Place::Returned(_)) | None => &[],
        }
    }

    /// From now on the bytes under a lease stay where they are, even if the ring is full meanwhile. Whoever asks for it is quick.
    pub(super) fn hold(&mut self, lease: DeviceLease) {
        if let Some(place) = self.slots.get_mut(lease.0 as usize)
            && let Place::Ring(record) = *place
        {
            *place = Place::Held(record);
        }
    }

    /// Give a lease back. A lease that is not out is left alone.
    pub(super) fn release(&mut self, ring: &mut Consumer, lease: DeviceLease) {
        let Some(place) = self.slots.get_mut(lease.0 as usize) else { return };
        match std::mem::replace(place, Place::Free) {
            Place::Ring(record) | Place::Held(record) => {
                *place = Place::Returned(record);
                self.give_back(ring);
            }
            Place::Heap(buffer) => {
                self.heap_bytes -= buffer.len() as u64;
                self.buffers.push(buffer);
                self.free.push(lease.0);
            }
            unchanged @ (Place::Free | Place::Returned(_)) => *place = unchanged,
        }
    }

    /// Move the oldest held frames to the heap until at most half of the ring is held.
    pub(super) fn evacuate(&mut self, ring: &mut Consumer) {
        let heap_bytes_max = ring.body_bytes() * HEAP_BYTES_MAX_FACTOR;
        while ring.held_bytes() > ring.body_bytes() / 2 && self.heap_bytes < heap_bytes_max {
            let Some(&slot) = self.order.front() else { return };
            let place = &mut self.slots[slot as usize];
            if matches!(place, Place::Held(_)) {
                return;
            }
            self.order.pop_front();
            if let Place::Ring(record) = *place {
                let mut buffer = self.buffers.pop().unwrap_or_default();
                buffer.clear();
                buffer.extend_from_slice(ring.bytes(record));
                self.heap_bytes += buffer.len() as u64;
                self.evacuated += 1;
                *place = Place::Heap(buffer);
                ring.advance(record.end());
            }
            self.give_back(ring);
        }
    }

    /// How many frames were moved to the heap so far.
    pub(super) fn evacuated(&self) -> u64 {
        self.evacuated
    }

    /// Give the oldest records back to the ring as long as they have been returned.
    fn give_back(&mut self, ring: &mut Consumer) {
        while let Some(&slot) = self.order.front() {
            let place = &mut self.slots[slot as usize];
            let Place::Returned(record) = *place else { return };
            *place = Place::Free;
            self.free.push(slot);
            self.order.pop_front();
            ring.advance(record.end());
        }
    }
}
