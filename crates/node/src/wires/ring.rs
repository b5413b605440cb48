//! A byte ring in shared memory that carries whole frames in one direction, from one process to another.
//!
//! Frames are published in batches, and each batch is published in place. The first record of a batch contains the size of the batch in bytes. This
//! size is written last. A consumer that has read everything polls that size and no index, so the cache line that it waits for is the line that it
//! needs next. The producer writes a zero at the end of a batch before it publishes the batch.
//!
//! One side only writes `tail`, the other only `head`. Both count bytes since the start and never wrap. `tail` is read only when a process opens an
//! existing ring. The producer reads `head` when it knows of no more space, and the consumer advances it in large steps. Cache lines are prefetched
//! some records ahead. The body is mapped twice in a row, so a record that crosses the end needs no special case.
//!
//! Layout of the file: page 0 holds `tail` (byte 64), `starved` (byte 72) and `head` (byte 128); the body follows. A record is its length (4 bytes,
//! little endian), the size of the batch that begins with it in bytes (4 bytes, undefined in other records), the frame, and padding to 8 bytes.
//!
//! Values that the other side wrote are checked: an impossible index or length makes the ring [`Broken`], permanently. The ring does not wake
//! sleeping neighbours, and does not track which frames are still being read.

use std::io;
use std::os::fd::BorrowedFd;
use std::slice;

use super::ring_memory::{HEAD_AT, Shared, TAIL_AT};
use crate::fetch::{fetch, fetch_to_write};
use crate::sync::{Ordering, fence};

const RECORD_HEADER_BYTES: usize = 8;
const LINE_BYTES: u64 = 64;
/// Prefetch distance ahead of the current record, in bytes: about five small frames. Loading a line takes as long as processing a small frame, so a
/// few lines are enough. More would take lines away from a neighbour that still uses them.
const AHEAD_BYTES: u64 = 1024;
/// Number of pieces of the body. The consumer returns space one piece at a time.
const PIECES: u64 = 8;

/// Error: the other side wrote an impossible index or length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// Returns the number of bytes that a frame takes in the ring.
pub(super) const fn record_bytes(frame_bytes: usize) -> usize {
    (RECORD_HEADER_BYTES + frame_bytes).next_multiple_of(8)
}

/// The writing side.
#[derive(Debug)]
pub(super) struct Producer {
    shared: Shared,
    tail: u64,
    tail_published: u64,
    head_seen: u64,
    /// Position up to which lines have been prefetched.
    fetched: u64,
    starved: bool,
}

impl Producer {
    pub(super) fn open(file: BorrowedFd<'_>) -> io::Result<Self> {
        Self::of(Shared::open(file)?)
    }

    /// Takes over the writing side of a ring in this memory.
    pub(super) fn of(shared: Shared) -> io::Result<Self> {
        let tail = shared.index(TAIL_AT).load(Ordering::Acquire);
        let head_seen = shared.index(HEAD_AT).load(Ordering::Acquire);
        if head_seen > tail || tail - head_seen > shared.body_bytes as u64 || !tail.is_multiple_of(8) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "ring indices contradict each other"));
        }
        Ok(Self { shared, tail, tail_published: tail, head_seen, fetched: tail, starved: false })
    }

    /// Returns space for a frame of at most `frame_bytes`, or `None` while the ring is full. In that case the starved flag is set, and the consumer
    /// rings when it has freed space.
    pub(super) fn slot(&mut self, frame_bytes: usize) -> Result<Option<&mut [u8]>, Broken> {
        let needed = record_bytes(frame_bytes);
        if !self.has_space(needed) && !self.look_again(needed)? {
            return Ok(None);
        }
        let start = self.shared.body(self.tail).wrapping_add(RECORD_HEADER_BYTES);
        // SAFETY: needed to let the core write frames in place. `needed` bytes from `tail` are free (checked above against the consumer's index) and
        // mapped in one piece (`body`). Until `publish` no well-behaved consumer reads them (it reads at most the header before them). A neighbour
        // that writes there all the same is a process of the same user and the same rack, and can only corrupt the bytes of frames, which the
        // receiver checks.
        Ok(Some(unsafe { slice::from_raw_parts_mut(start, frame_bytes) }))
    }

    /// Commits the first `length` bytes of the slot as a record. `length` is at most the length passed to [`Self::slot`].
    pub(super) fn commit(&mut self, length: usize) {
        self.shared.length_word(self.tail).store((length as u32).to_le(), Ordering::Relaxed);
        self.tail += record_bytes(length) as u64;
        // A long copy writes whole lines and does not need their old contents.
        if length as u64 <= AHEAD_BYTES {
            self.fetch_ahead();
        }
    }

    /// Publishes everything committed to the consumer. Returns whether there was anything new.
    pub(super) fn publish(&mut self) -> bool {
        let (begin, end) = (self.tail_published, self.tail);
        if begin == end {
            return false;
        }
        // The consumer may reach the end of the batch as soon as it sees the batch.
        self.shared.batch_word(end).store(0, Ordering::Relaxed);
        self.shared.batch_word(begin).store(((end - begin) as u32).to_le(), Ordering::Release);
        self.shared.index(TAIL_AT).store(end, Ordering::Release);
        self.tail_published = end;
        true
    }

    /// Returns whether this many bytes are free, and after them the header that marks the end of a batch.
    fn has_space(&self, needed: usize) -> bool {
        (self.tail - self.head_seen) as usize + needed + RECORD_HEADER_BYTES <= self.shared.body_bytes
    }

    /// Prefetches the lines that are written next, as far as they are free, because the consumer had them last. The line at `tail` is excluded,
    /// because the consumer polls it.
    fn fetch_ahead(&mut self) {
        let end = (self.tail + AHEAD_BYTES).min(self.head_seen + self.shared.body_bytes as u64);
        let mut at = self.fetched.max(self.tail.next_multiple_of(LINE_BYTES));
        while at < end {
            fetch_to_write(self.shared.body(at));
            at += LINE_BYTES;
        }
        self.fetched = at;
    }

    /// Reads the consumer's index after the cached index has indicated a full ring. Sets the starved flag before giving up.
    fn look_again(&mut self, needed: usize) -> Result<bool, Broken> {
        self.refresh_head()?;
        if !self.has_space(needed) {
            self.shared.starved().store(1, Ordering::Relaxed);
            self.starved = true;
            fence(Ordering::SeqCst);
            self.refresh_head()?;
        }
        let has_space = self.has_space(needed);
        if has_space && self.starved {
            self.shared.starved().store(0, Ordering::Relaxed);
            self.starved = false;
        }
        Ok(has_space)
    }

    fn refresh_head(&mut self) -> Result<(), Broken> {
        let head = self.shared.index(HEAD_AT).load(Ordering::Acquire);
        if head < self.head_seen || head > self.tail_published {
            return Err(Broken);
        }
        self.head_seen = head;
        Ok(())
    }
}

/// One frame in the ring, as the consumer found it. The length was read once and checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    position: u64,
    pub(super) length: u32,
}

impl Record {
    /// Returns the position at which the next record begins.
    pub(super) fn end(self) -> u64 {
        self.position + record_bytes(self.length as usize) as u64
    }
}

/// The reading side.
#[derive(Debug)]
pub(super) struct Consumer {
    pub(super) shared: Shared,
    pub(super) read: u64,
    head: u64,
    head_published: u64,
    tail_seen: u64,
    /// Position up to which lines have been prefetched.
    fetched: u64,
}

impl Consumer {
    pub(super) fn open(file: BorrowedFd<'_>) -> io::Result<Self> {
        Self::of(Shared::open(file)?)
    }

    /// Takes over the reading side of a ring in this memory.
    pub(super) fn of(shared: Shared) -> io::Result<Self> {
        let head = shared.index(HEAD_AT).load(Ordering::Acquire);
        // `tail` marks the end of everything published so far. The starts of the published batches are not needed.
        let tail_seen = shared.index(TAIL_AT).load(Ordering::Acquire);
        let is_possible = tail_seen >= head && tail_seen - head < shared.body_bytes as u64;
        if !is_possible || !head.is_multiple_of(8) || !tail_seen.is_multiple_of(8) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "ring indices contradict each other"));
        }
        Ok(Self { shared, read: head, head, head_published: head, tail_seen, fetched: head })
    }

    /// Returns whether a record can be read.
    pub(super) fn ready(&mut self) -> Result<bool, Broken> {
        if self.read != self.tail_seen {
            return Ok(true);
        }
        let batch = u32::from_le(self.shared.batch_word(self.read).load(Ordering::Acquire));
        if batch == 0 {
            return Ok(false);
        }
        let tail = self.tail_seen + u64::from(batch);
        let end = self.head_published + self.shared.body_bytes as u64 - RECORD_HEADER_BYTES as u64;
        if tail > end || !tail.is_multiple_of(8) {
            return Err(Broken);
        }
        self.tail_seen = tail;
        self.fetched = self.read;
        self.fetch_ahead();
        Ok(true)
    }

    /// Prefetches the lines that are read next, as far as they have been published.
    fn fetch_ahead(&mut self) {
        let end = (self.read + AHEAD_BYTES).min(self.tail_seen);
        let mut at = self.fetched.max(self.read) & !(LINE_BYTES - 1);
        while at < end {
            fetch(self.shared.body(at));
            at += LINE_BYTES;
        }
        self.fetched = at;
    }

    /// Returns the next record. It stays readable until the head moves past it.
    pub(super) fn next(&mut self) -> Result<Option<Record>, Broken> {
        if !self.ready()? {
            return Ok(None);
        }
        let length = u32::from_le(self.shared.length_word(self.read).load(Ordering::Relaxed));
        let record = Record { position: self.read, length };
        if u64::from(length) > self.tail_seen - self.read || record.end() > self.tail_seen {
            return Err(Broken);
        }
        self.read = record.end();
        self.fetch_ahead();
        Ok(Some(record))
    }

    /// Returns the frame of a record between head and tail.
    pub(super) fn bytes(&self, record: Record) -> &[u8] {
        debug_assert!(record.position >= self.head && record.end() <= self.tail_seen);
        let start = self.shared.body(record.position).wrapping_add(RECORD_HEADER_BYTES);
        // SAFETY: needed to let the core parse frames in place. The record was checked to lie between the head, which only this side moves, and a
        // published tail, so it is mapped in one piece and a well-behaved producer does not touch it. A neighbour that does is a process of the same
        // user and the same rack: the bytes may then change under the parser. The core reads each header field once into a value before it decides on
        // it, and no length is read from here twice, so the harm is a corrupted frame, not a wild access. Rust gives no such promise for a slice.
        // Neighbours that do not trust each other should use the packet wire.
        unsafe { slice::from_raw_parts(start, record.length as usize) }
    }

    /// Returns address and length of the memory that contains every record. It stays mapped until the process ends.
    pub(super) fn keep_pages(&mut self) -> (usize, usize) {
        self.shared.keep_pages()
    }

    /// Returns the number of bytes read and not returned yet.
    pub(super) fn held_bytes(&self) -> u64 {
        self.read - self.head
    }

    /// Returns the size of the body, in bytes.
    pub(super) fn body_bytes(&self) -> u64 {
        self.shared.body_bytes as u64
    }

    /// Returns all space before `position`, which is the end of a record that was read.
    pub(super) fn advance(&mut self, position: u64) {
        debug_assert!(position >= self.head && position <= self.read);
        self.head = position;
    }

    /// Publishes returned space to the producer, if it is worth a transfer of the cache line. Returns whether the producer waits for space.
    ///
    /// The producer never lacks the rest: a piece is an eighth of the body, and a ring holds several of the largest frames.
    pub(super) fn publish(&mut self) -> bool {
        if self.head - self.head_published < self.body_bytes() / PIECES {
            return false;
        }
        self.shared.index(HEAD_AT).store(self.head, Ordering::Release);
        self.head_published = self.head;
        fence(Ordering::SeqCst);
        self.shared.starved().load(Ordering::Relaxed) != 0
    }
}
