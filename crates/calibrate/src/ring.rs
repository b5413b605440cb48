//! Records through a ring in shared memory, from one process into the memory of another, and nothing else: no header, no
//! check, no answer but the count of what was taken.
//!
//! A record begins with the place where it belongs. The producer copies it from its source into the ring and shows it; the
//! consumer copies the whole of it to its place, which makes it a store, and gives its room back. Each side counts records
//! and writes only its own count, in a cache line of its own, and remembers what it last saw of the other's.
//!
//! How far the sides are apart decides the figure, not what they do (`docs/measuring.md`): a consumer that is thousands of
//! records behind reads whole lines at memory speed and hardly ever looks at the producer's count, one at the
//! producer's heels takes that line away for every single record. So how much may be under way belongs to a [`Flow`].

use std::io;
use std::ptr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::pages::Pages;
use crate::patience::wait_until;
use crate::processors::Pair;

const TAIL_AT: usize = 64;
const HEAD_AT: usize = 1024;
const READY_AT: usize = 2048;
const BODY_AT: usize = 4096;
/// Bytes of the body, as a wire has them by default.
const BODY_BYTES: usize = 1 << 20;
/// Bytes of the source, and of the memory that records belong into.
const MEMORY_BYTES: usize = 1 << 20;

/// How records are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// So many are shown at once.
    pub batch: u64,
    /// At most so many are under way, a power of two; as many as a ring of 1 MiB holds if `None`.
    pub under_way_max: Option<u64>,
    /// Room is given back for so many at once; for a quarter of the ring if `None`.
    pub given_back: Option<u64>,
}

impl Flow {
    /// Shown in batches of this many, with room for as many as a ring holds.
    #[must_use]
    pub const fn deep(batch: u64) -> Self {
        Self { batch, under_way_max: None, given_back: None }
    }

    /// Shown and given back one by one, this many under way: what acknowledgements of each one are.
    #[must_use]
    pub const fn acknowledged(under_way_max: u64) -> Self {
        Self { batch: 1, under_way_max: Some(under_way_max), given_back: Some(1) }
    }
}

/// A ring of records of `BYTES` bytes, what they are copied from, and where they belong.
#[derive(Debug)]
pub struct Ring<const BYTES: usize> {
    pages: Pages,
    source: Pages,
    memory: Pages,
    slots: u64,
    flow: Flow,
}

impl<const BYTES: usize> Ring<BYTES> {
    /// An empty ring.
    ///
    /// # Errors
    /// The system's.
    pub fn new(flow: Flow) -> io::Result<Self> {
        // A power of two, so that a place is found without a division.
        let slots_max = 1 << (BODY_BYTES / BYTES).ilog2();
        let slots = flow.under_way_max.map_or(slots_max, |most| 1 << most.clamp(1, slots_max).ilog2());
        let pages = Pages::new(BODY_AT + slots as usize * BYTES)?;
        let (source, memory) = (Pages::new(MEMORY_BYTES)?, Pages::new(MEMORY_BYTES)?);
        Ok(Self { pages, source, memory, slots, flow })
    }

    fn slot(&self, number: u64) -> *mut u8 {
        self.pages.bytes(BODY_AT + (number & (self.slots - 1)) as usize * BYTES, BYTES)
    }

    /// Where the record of this number belongs.
    const fn place(number: u64) -> usize {
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

    /// The far side is there.
    pub(crate) fn say_ready(&self) {
        self.pages.word(READY_AT).store(1, Ordering::Release);
    }

    pub(crate) fn await_ready(&self) -> io::Result<()> {
        let ready = self.pages.word(READY_AT);
        wait_until("near side of a ring", || ready.load(Ordering::Acquire) == 1)
    }

    /// Records per second, over `records` of them, until the last one is at its place.
    ///
    /// # Errors
    /// That a side was not served, or that a record was not what it must be.
    pub fn records_per_s(&mut self, pair: Pair, records: u64) -> io::Result<f64> {
        let batch = self.flow.batch.max(1);
        let near = || {
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
        let far = || {
            self.say_ready();
            let mut consumer = self.consumer();
            (0..records).try_for_each(|_| consumer.pop())?;
            consumer.publish();
            Ok(())
        };
        pair.run_processes(near, far)
    }

    /// Nanoseconds for a record there and one back on another ring, over `trips` of them.
    ///
    /// # Errors
    /// That a side was not served.
    pub fn round_trip_ns(&mut self, back: &mut Self, pair: Pair, trips: u64) -> io::Result<f64> {
        let near = || {
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
        let far = || {
            self.say_ready();
            let (mut there, mut back) = (self.consumer(), back.producer());
            for _ in 0..trips {
                there.pop()?;
                back.push()?;
                back.publish();
            }
            Ok(())
        };
        pair.run_processes(near, far)
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
        let place = Ring::<BYTES>::place(self.tail);
        let (source, slot) = (self.ring.source.bytes(place, BYTES), self.room()?);
        // SAFETY: needed because the record lives in mapped pages. Source and slot have `BYTES` bytes (`bytes` asserts it)
        // in different files, a slot is a multiple of 8 and nobody else's (`room`). Nobody writes into the source.
        unsafe {
            ptr::copy_nonoverlapping(source, slot, BYTES);
            slot.cast::<u64>().write(place as u64);
        }
        self.commit();
        Ok(())
    }

    /// Room for the next record: `BYTES` bytes at a multiple of 8, which the consumer has given back (checked against its count), so
    /// that nobody else touches them until they are committed and shown.
    #[inline]
    pub(crate) fn room(&mut self) -> io::Result<*mut u8> {
        if self.tail - self.head_seen == self.ring.slots {
            self.publish();
            self.await_head(self.tail + 1 - self.ring.slots)?;
        }
        Ok(self.ring.slot(self.tail))
    }

    /// The room is a record.
    #[inline]
    pub(crate) const fn commit(&mut self) {
        self.tail += 1;
    }

    #[inline]
    pub(crate) fn publish(&mut self) {
        self.ring.pages.word(TAIL_AT).store(self.tail, Ordering::Release);
    }

    /// Until all that was shown is at its place.
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
        // SAFETY: needed because the record lives in mapped pages. The slot has `BYTES` bytes at a multiple of 8 that nobody writes
        // now (`record`).
        let place = unsafe { slot.cast::<u64>().read() } as usize;
        if place != Ring::<BYTES>::place(self.head) {
            return Err(io::Error::other("the ring lost its order"));
        }
        let target = self.ring.memory.bytes(place, BYTES);
        // SAFETY: as above; the target has `BYTES` bytes of another file, which only this side touches.
        unsafe { ptr::copy_nonoverlapping(slot, target, BYTES) };
        self.give_back();
        Ok(())
    }

    /// The next record: `BYTES` bytes at a multiple of 8. The producer has shown it (checked against its count), so nobody writes
    /// it until it is given back.
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

    /// The record is done with.
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

    /// Every word behind the first one of each record says where it is.
    fn fill<const BYTES: usize>(ring: &Ring<BYTES>) {
        (0..MEMORY_BYTES).step_by(8).for_each(|at| ring.source.word(at).store(at as u64, Ordering::Relaxed));
    }

    #[test]
    fn every_record_is_stored_at_its_place_over_many_turns_of_the_ring() {
        let Some(pair) = pair() else { return };
        for flow in [Flow::deep(1), Flow::deep(16), Flow::deep(7), Flow::acknowledged(8)] {
            let mut ring = Ring::<4096>::new(flow).unwrap();
            fill(&ring);
            // One turn of the memory less its last record; several of the ring, and a last batch that is not full.
            assert!(ring.records_per_s(pair, 255).unwrap() > 0.0);
            let seen = |at: usize| ring.memory.word(at).load(Ordering::Relaxed);
            let (stored, rest) = (255 * 4096, MEMORY_BYTES);
            assert!((0..stored).step_by(8).all(|at| seen(at) == at as u64), "{flow:?}");
            assert!((stored..rest).step_by(8).all(|at| seen(at) == 0), "{flow:?}");
        }
    }

    #[test]
    fn no_more_is_under_way_than_allowed() {
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
