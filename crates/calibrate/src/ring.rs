//! Records through a ring in shared memory, one producer, one consumer, nothing else: no header, no check, no answer.
//!
//! Each side counts records and writes only its own count, in a cache line of its own, and remembers what it last saw of
//! the other's. The consumer copies each record out, as a receiver must, and gives room back by the quarter of a ring.

use std::io;
use std::ptr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::pages::Pages;
use crate::patience::wait_until;
use crate::processors::Pair;

const TAIL_AT: usize = 64;
const HEAD_AT: usize = 1024;
const BODY_AT: usize = 4096;
/// Bytes of the body, as a wire has them by default.
const BODY_BYTES: usize = 1 << 20;

/// A ring of records of `BYTES` bytes.
#[derive(Debug)]
pub struct Ring<const BYTES: usize> {
    pages: Pages,
}

impl<const BYTES: usize> Ring<BYTES> {
    /// A power of two, so that a place is found without a division.
    const SLOTS: u64 = 1 << (BODY_BYTES / BYTES).ilog2();

    /// An empty ring.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> io::Result<Self> {
        Ok(Self { pages: Pages::new(BODY_AT + Self::SLOTS as usize * BYTES)? })
    }

    fn slot(&self, number: u64) -> *mut u8 {
        self.pages.bytes(BODY_AT + (number & (Self::SLOTS - 1)) as usize * BYTES, BYTES)
    }

    fn producer(&self) -> Producer<'_, BYTES> {
        let tail = self.pages.word(TAIL_AT).load(Ordering::Acquire);
        Producer { ring: self, tail, head_seen: self.pages.word(HEAD_AT).load(Ordering::Acquire) }
    }

    fn consumer(&self) -> Consumer<'_, BYTES> {
        let head = self.pages.word(HEAD_AT).load(Ordering::Acquire);
        Consumer { ring: self, head, head_published: head, tail_seen: head }
    }

    /// Records per second, over `records` of them, shown to the consumer in batches of `batch`.
    ///
    /// # Errors
    /// That a side was not served, or that a record was not what it must be.
    pub fn records_per_s(&mut self, pair: Pair, records: u64, batch: u64) -> io::Result<f64> {
        let near = || {
            let mut producer = self.producer();
            let begun = Instant::now();
            let mut record = [0x5a_u8; BYTES];
            for number in 1..=records {
                record[..8].copy_from_slice(&number.to_le_bytes());
                producer.push(&record)?;
                if number % batch.max(1) == 0 {
                    producer.publish();
                }
            }
            producer.publish();
            Ok::<Instant, io::Error>(begun)
        };
        let far = || {
            let mut consumer = self.consumer();
            let mut record = [0; BYTES];
            for number in 1..=records {
                consumer.pop(&mut record)?;
                if record[..8] != number.to_le_bytes() {
                    return Err(io::Error::other("the ring lost its order"));
                }
            }
            consumer.publish();
            Ok(Instant::now())
        };
        let (begun, ended) = pair.run(near, far)?;
        Ok(records as f64 / (ended - begun).as_secs_f64().max(1e-9))
    }

    /// Nanoseconds for a record there and one back on another ring, over `trips` of them.
    ///
    /// # Errors
    /// That a side was not served.
    pub fn round_trip_ns(&mut self, back: &mut Self, pair: Pair, trips: u64) -> io::Result<f64> {
        let near = || {
            let (mut there, mut back, mut record) = (self.producer(), back.consumer(), [0x5a; BYTES]);
            let begun = Instant::now();
            for _ in 0..trips {
                there.push(&record)?;
                there.publish();
                back.pop(&mut record)?;
            }
            back.publish();
            Ok::<f64, io::Error>(begun.elapsed().as_nanos() as f64 / trips.max(1) as f64)
        };
        let far = || {
            let (mut there, mut back, mut record) = (self.consumer(), back.producer(), [0; BYTES]);
            for _ in 0..trips {
                there.pop(&mut record)?;
                back.push(&record)?;
                back.publish();
            }
            there.publish();
            Ok(())
        };
        Ok(pair.run(near, far)?.0)
    }
}

struct Producer<'r, const BYTES: usize> {
    ring: &'r Ring<BYTES>,
    tail: u64,
    head_seen: u64,
}

impl<const BYTES: usize> Producer<'_, BYTES> {
    #[inline]
    fn push(&mut self, record: &[u8; BYTES]) -> io::Result<()> {
        if self.tail - self.head_seen == Ring::<BYTES>::SLOTS {
            self.publish();
            let (tail, head_seen) = (self.tail, &mut self.head_seen);
            let head = self.ring.pages.word(HEAD_AT);
            wait_until("producer of a ring", || {
                *head_seen = head.load(Ordering::Acquire);
                tail - *head_seen < Ring::<BYTES>::SLOTS
            })?;
        }
        // SAFETY: needed because the record lives in mapped pages. The slot has `BYTES` bytes (`slot` asserts it), and the
        // consumer has given it back (checked against its count), so nobody else touches it until `publish`.
        unsafe { ptr::copy_nonoverlapping(record.as_ptr(), self.ring.slot(self.tail), BYTES) };
        self.tail += 1;
        Ok(())
    }

    #[inline]
    fn publish(&mut self) {
        self.ring.pages.word(TAIL_AT).store(self.tail, Ordering::Release);
    }
}

struct Consumer<'r, const BYTES: usize> {
    ring: &'r Ring<BYTES>,
    head: u64,
    head_published: u64,
    tail_seen: u64,
}

impl<const BYTES: usize> Consumer<'_, BYTES> {
    #[inline]
    fn pop(&mut self, record: &mut [u8; BYTES]) -> io::Result<()> {
        if self.head == self.tail_seen {
            let (head, tail_seen) = (self.head, &mut self.tail_seen);
            let tail = self.ring.pages.word(TAIL_AT);
            wait_until("consumer of a ring", || {
                *tail_seen = tail.load(Ordering::Acquire);
                *tail_seen != head
            })?;
        }
        // SAFETY: needed because the record lives in mapped pages. The slot has `BYTES` bytes (`slot` asserts it), and the
        // producer has published it (checked against its count), so nobody else touches it until it is given back.
        unsafe { ptr::copy_nonoverlapping(self.ring.slot(self.head), record.as_mut_ptr(), BYTES) };
        self.head += 1;
        if self.head - self.head_published >= Ring::<BYTES>::SLOTS / 4 {
            self.publish();
        }
        Ok(())
    }

    #[inline]
    fn publish(&mut self) {
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
            println!("skipped: one processor makes no pair");
        }
        pair
    }

    #[test]
    fn every_record_comes_in_order_over_many_turns_of_the_ring() {
        let Some(pair) = pair() else { return };
        let mut ring = Ring::<4096>::new().unwrap();
        for batch in [1, 16, 7] {
            // Four turns of the ring, and a last batch that is not full.
            assert!(ring.records_per_s(pair, 4 * 256 + 3, batch).unwrap() > 0.0);
        }
    }

    #[test]
    fn a_round_trip_takes_time() {
        let Some(pair) = pair() else { return };
        let (mut there, mut back) = (Ring::<64>::new().unwrap(), Ring::<64>::new().unwrap());
        assert!(there.round_trip_ns(&mut back, pair, 1000).unwrap() > 0.0);
    }
}
