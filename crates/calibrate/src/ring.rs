//! Records through a ring in shared memory, from one process into the memory of another, and nothing else: no header, no
//! check, and no answer except the count of taken records.
//!
//! A record begins with its target offset. The producer copies it from its source into the ring and publishes it. The
//! consumer copies the whole record to that offset, which makes it a store, and frees the slot. Each side counts records,
//! writes only its own count, in a cache line of its own, and caches the last seen count of the other side.
//!
//! The distance between the sides decides the figure, not their work (`docs/measuring.md`). A consumer that is thousands of
//! records behind reads whole lines at memory speed and hardly ever reads the producer's count. A consumer that follows
//! directly takes that line away for every single record. So the number in flight belongs to a [`Flow`].

use std::io;
use std::ptr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::pages::Pages;
use crate::processors::Pair;
use crate::wait::wait_until;

const TAIL_AT: usize = 64;
const HEAD_AT: usize = 1024;
const READY_AT: usize = 2048;
const BODY_AT: usize = 4096;
/// Length of the body, in bytes: the default of a wire.
const BODY_BYTES: usize = 1 << 20;
/// Length of the source, and of the target memory, in bytes.
const MEMORY_BYTES: usize = 1 << 20;

/// Limits of publishing and of records in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Records that are published at once.
    pub batch: u64,
    /// Most records in flight, a power of two. `None`: as many as a ring of 1 MiB holds.
    pub in_flight_max: Option<u64>,
    /// Records whose slots are freed at once. `None`: a quarter of the ring.
    pub given_back: Option<u64>,
}

impl Flow {
    /// Makes a flow with batches of this many records and as many in flight as the ring holds.
    #[must_use]
    pub const fn deep(batch: u64) -> Self {
        Self { batch, in_flight_max: None, given_back: None }
    }

    /// Makes a flow in which each record is published and given back by itself, as with an acknowledgement of each.
    #[must_use]
    pub const fn acknowledged(in_flight_max: u64) -> Self {
        Self { batch: 1, in_flight_max: Some(in_flight_max), given_back: Some(1) }
    }
}

/// Ring of records of `BYTES` bytes, with the source and the target memory.
#[derive(Debug)]
pub struct Ring<const BYTES: usize> {
    pages: Pages,
    source: Pages,
    memory: Pages,
    slots: u64,
    flow: Flow,
}

impl<const BYTES: usize> Ring<BYTES> {
    /// Makes an empty ring.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(flow: Flow) -> io::Result<Self> {
        // A power of two, so that a slot is found without a division.
        let slots_max = 1 << (BODY_BYTES / BYTES).ilog2();
        let slots = flow.in_flight_max.map_or(slots_max, |most| 1 << most.clamp(1, slots_max).ilog2());
        let pages = Pages::new(BODY_AT + slots as usize * BYTES)?;
        let (source, memory) = (Pages::new(MEMORY_BYTES)?, Pages::new(MEMORY_BYTES)?);
        Ok(Self { pages, source, memory, slots, flow })
    }

    fn slot(&self, number: u64) -> *mut u8 {
        self.pages.bytes(BODY_AT + (number & (self.slots - 1)) as usize * BYTES, BYTES)
    }

    /// Returns the target offset of a record.
    const fn offset(number: u64) -> usize {
        number as usize % (MEMORY_BYTES / BYTES) * BYTES
    }

    pub(crate) fn producer(&self) -> Producer<'_, BYTES> {
        let tail = self.pages.word(TAIL_AT).load(Ordering::Acquire);
        Producer { ring: self, tail, head_seen: self.pages.word(HEAD_AT).load(Ordering::Acquire) }
    }

    pub(crate) fn consumer(&self) -> Consumer<'_, BYTES> {
        let head = self.pages.word(HEAD_AT).load(Ordering::Acquire);
        let given_back = self.flow.given_back.unwrap_or(self.slots / 4).max(1);
        Consumer { ring: self, head, head_published: head, tail_seen: head, given_back }
    }

    /// Publishes that the consumer runs.
    pub(crate) fn set_ready(&self) {
        self.pages.word(READY_AT).store(1, Ordering::Release);
    }

    pub(crate) fn await_ready(&self) -> io::Result<()> {
        let ready = self.pages.word(READY_AT);
        wait_until("initiator of a ring", || ready.load(Ordering::Acquire) == 1)
    }

    /// Returns records per second, over `records` of them, until the last one is stored.
    ///
    /// # Errors
    /// A side that did not answer, or a wrong record.
    pub fn records_per_s(&mut self, pair: Pair, records: u64) -> io::Result<f64> {
        let batch = self.flow.batch.max(1);
        let initiator = || {
            self.await_ready()?;
            let mut producer = self.producer();
            let begun = Instant::now();
            for number in 1..=records {
                producer.push()?;
                if number % batch == 0 {
                    producer.publish();
                }
            }
            producer.publish();
            producer.await_all()?;
            Ok(records as f64 / begun.elapsed().as_secs_f64().max(1e-9))
        };
        let target = || {
            self.set_ready();
            let mut consumer = self.consumer();
            (0..records).try_for_each(|_| consumer.pop())?;
            consumer.publish();
            Ok(())
        };
        pair.run_processes(initiator, target)
    }

    /// Returns the time of a round trip of a record, back on another ring, in nanoseconds, over `trips`.
    ///
    /// # Errors
    /// A side that did not answer.
    pub fn round_trip_ns(&mut self, back: &mut Self, pair: Pair, trips: u64) -> io::Result<f64> {
        let initiator = || {
            self.await_ready()?;
            let (mut there, mut back) = (self.producer(), back.consumer());
            let begun = Instant::now();
            for _ in 0..trips {
                there.push()?;
                there.publish();
                back.pop()?;
            }
            Ok(begun.elapsed().as_nanos() as f64 / trips.max(1) as f64)
        };
        let target = || {
            self.set_ready();
            let (mut there, mut back) = (self.consumer(), back.producer());
            for _ in 0..trips {
                there.pop()?;
                back.push()?;
                back.publish();
            }
            Ok(())
        };
        pair.run_processes(initiator, target)
    }
}

pub(crate) struct Producer<'r, const BYTES: usize> {
    ring: &'r Ring<BYTES>,
    tail: u64,
    head_seen: u64,
}

impl<const BYTES: usize> Producer<'_, BYTES> {
    #[inline]
    fn push(&mut self) -> io::Result<()> {
        let offset = Ring::<BYTES>::offset(self.tail);
        let (source, slot) = (self.ring.source.bytes(offset, BYTES), self.free_slot()?);
        // SAFETY: needed because the record is in mapped pages. Source and slot have `BYTES` bytes (`bytes` asserts it)
        // in different files, a slot is a multiple of 8 and exclusive (`free_slot`). The source is never written.
        unsafe {
            ptr::copy_nonoverlapping(source, slot, BYTES);
            slot.cast::<u64>().write(offset as u64);
        }
        self.commit();
        Ok(())
    }

    /// Returns the slot of the next record: `BYTES` bytes at a multiple of 8, which the consumer has given back (checked against its count), so
    /// that only the caller touches them until they are committed and published.
    #[inline]
    pub(crate) fn free_slot(&mut self) -> io::Result<*mut u8> {
        if self.tail - self.head_seen == self.ring.slots {
            self.publish();
            self.await_head(self.tail + 1 - self.ring.slots)?;
        }
        Ok(self.ring.slot(self.tail))
    }

    /// Alternations the free slot into a record.
    #[inline]
    pub(crate) const fn commit(&mut self) {
        self.tail += 1;
    }

    #[inline]
    pub(crate) fn publish(&mut self) {
        self.ring.pages.word(TAIL_AT).store(self.tail, Ordering::Release);
    }

    /// Waits until everything that was published is stored.
    pub(crate) fn await_all(&mut self) -> io::Result<()> {
        self.await_head(self.tail)
    }

    fn await_head(&mut self, wanted: u64) -> io::Result<()> {
        let (head, head_seen) = (self.ring.pages.word(HEAD_AT), &mut self.head_seen);
        wait_until("producer of a ring", || {
            *head_seen = head.load(Ordering::Acquire);
            *head_seen >= wanted
        })
    }
}

pub(crate) struct Consumer<'r, const BYTES: usize> {
    ring: &'r Ring<BYTES>,
    head: u64,
    head_published: u64,
    tail_seen: u64,
    given_back: u64,
}

impl<const BYTES: usize> Consumer<'_, BYTES> {
    #[inline]
    fn pop(&mut self) -> io::Result<()> {
        let slot = self.record()?;
        // SAFETY: needed because the record is in mapped pages. The slot has `BYTES` bytes at a multiple of 8 that are not written
        // now (`record`).
        let offset = unsafe { slot.cast::<u64>().read() } as usize;
        if offset != Ring::<BYTES>::offset(self.head) {
            return Err(io::Error::other("the ring lost its order"));
        }
        let target = self.ring.memory.bytes(offset, BYTES);
        // SAFETY: as above; the target has `BYTES` bytes of another file, which only this side touches.
        unsafe { ptr::copy_nonoverlapping(slot, target, BYTES) };
        self.give_back();
        Ok(())
    }

    /// Returns the next record: `BYTES` bytes at a multiple of 8. The producer has published it (checked against its count), so it is not
    /// written until it is given back.
    #[inline]
    pub(crate) fn record(&mut self) -> io::Result<*const u8> {
        if self.head == self.tail_seen {
            let (head, tail_seen) = (self.head, &mut self.tail_seen);
            let tail = self.ring.pages.word(TAIL_AT);
            wait_until("consumer of a ring", || {
                *tail_seen = tail.load(Ordering::Acquire);
                *tail_seen != head
            })?;
        }
        Ok(self.ring.slot(self.head))
    }

    /// Frees the slot of the record.
    #[inline]
    pub(crate) fn give_back(&mut self) {
        self.head += 1;
        if self.head - self.head_published >= self.given_back {
            self.publish();
        }
    }

    #[inline]
    pub(crate) fn publish(&mut self) {
        self.ring.pages.word(HEAD_AT).store(self.head, Ordering::Release);
        self.head_published = self.head;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> Option<Pair> {
        let pair = Pair::choose().unwrap();
        if pair.is_none() {
            crate::processors::no_pair();
        }
        pair
    }

    /// Writes to every word behind the first one of each record its offset.
    fn fill<const BYTES: usize>(ring: &Ring<BYTES>) {
        (0..MEMORY_BYTES).step_by(8).for_each(|at| ring.source.word(at).store(at as u64, Ordering::Relaxed));
    }

    #[test]
    fn every_record_is_stored_over_many_passes_of_the_ring() {
        let Some(pair) = pair() else { return };
        for flow in [Flow::deep(1), Flow::deep(16), Flow::deep(7), Flow::acknowledged(8)] {
            let mut ring = Ring::<4096>::new(flow).unwrap();
            fill(&ring);
            // One pass over the memory except its last record: several passes over the ring, and a last batch that is not full.
            assert!(ring.records_per_s(pair, 255).unwrap() > 0.0);
            let seen = |at: usize| ring.memory.word(at).load(Ordering::Relaxed);
            let (stored, rest) = (255 * 4096, MEMORY_BYTES);
            assert!((0..stored).step_by(8).all(|at| seen(at) == at as u64), "{flow:?}");
            assert!((stored..rest).step_by(8).all(|at| seen(at) == 0), "{flow:?}");
        }
    }

    #[test]
    fn the_limit_of_records_in_flight_holds() {
        let slots = |flow| Ring::<64>::new(flow).unwrap().slots;
        assert_eq!([Flow::acknowledged(256), Flow::deep(1)].map(slots), [256, (BODY_BYTES / 64) as u64]);
    }

    #[test]
    fn a_round_trip_takes_time() {
        let Some(pair) = pair() else { return };
        let ring = || Ring::<64>::new(Flow::deep(1)).unwrap();
        assert!(ring().round_trip_ns(&mut ring(), pair, 1000).unwrap() > 0.0);
    }
}
