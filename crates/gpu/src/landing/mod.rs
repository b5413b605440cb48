//! Many small accesses to device memory, carried out in the order of requests, with notice when they are *visible*.
//!
//! Bytes of received frames are copied once, into a ring of pinned memory. A stream moves them from there: adjacent ranges
//! become one, many small ranges share one launch of a kernel that reads the ring itself, and the device's engines copy long ranges and
//! small batches. An event behind each batch shows that all of it is done. Only then are its tickets answered, in
//! order, and only then is its part of the ring used again. Reads and atomics use the same stream, so a later request sees the effects of
//! earlier ones.
//!
//! Nothing here waits, except for space in a ring that is full, and that wait has a limit. There are no threads. The caller chooses the
//! numbers of tickets.

mod claims;
mod planned;
mod ring;
mod submit;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use self::claims::Claims;
use self::planned::{Planned, word};
use self::ring::Ring;
use crate::device::{Address, Atomic, AtomicKind, Device, Element, EventId, Move, Reduction, StreamId};
use crate::error::GpuError;
use crate::tiers::Tiers;

/// Default length of the pinned memory of one landing, in bytes.
pub const RING_BYTES: usize = 8 << 20;
/// Bytes at which an open batch is started, in a ring that is large enough.
const BATCH_BYTES_MAX: u64 = 256 << 10;
/// Most ranges of a launch, in a ring that is large enough.
const RANGES_MAX: usize = 1024;
/// Smallest length of a ring, in bytes. A batch and its records take no more than half of any ring.
pub const RING_BYTES_MIN: usize = 16 << 10;
/// Longest time for which a ring may stay full.
pub(crate) const STALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Atomic operation on one word.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordChange {
    /// Kind of operation.
    pub kind: AtomicKind,
    /// Width of the word: 4 or 8 bytes.
    pub width: u32,
    /// Value that is added or stored.
    pub operand: u64,
    /// Value that a compare-and-swap expects.
    pub compare: u64,
}

/// Result of a ticket.
#[derive(Debug, PartialEq, Eq)]
pub enum Landed<'a> {
    /// Everything written is visible.
    Written,
    /// Bytes that were read.
    Bytes(&'a [u8]),
    /// Value before an atomic.
    Value(u64),
    /// The device failed; some of the writes may be visible.
    Failed(&'a GpuError),
}

/// Counts that show the effect of coalescing.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LandingCounts {
    /// Number of requested ranges, writes and reads.
    pub ranges: u64,
    /// Number of writes that the device reads in place.
    pub in_place: u64,
    /// Number of launches of the kernel that moves ranges.
    pub launches: u64,
    /// Number of copies by the device's engines.
    pub copies: u64,
    /// Number of batches, each with one event.
    pub batches: u64,
}

/// Lands small accesses in device memory: see the module.
///
/// `Send` if the device is; not `Sync`.
#[derive(Debug)]
pub struct Landing<D: Device + ?Sized> {
    ring: Ring,
    stream: StreamId,
    idle_events: Vec<EventId>,
    moves: Vec<Planned>,
    claims: Claims,
    atomics: Vec<Atomic>,
    /// Bytes since the last batch was closed, on the stream or about to be.
    open_bytes: u64,
    /// True if the stream has operations since the last batch was closed.
    is_open: bool,
    /// Tickets of all batches that are not done and of the open one, in order.
    tickets: VecDeque<(u32, Wanted)>,
    /// Number of tickets in batches that are in flight.
    closed_tickets: usize,
    batches: VecDeque<Batch>,
    /// Tickets that can be answered now. The bytes that they read are in `results`.
    answers: VecDeque<(u32, Answer)>,
    results: Vec<u8>,
    failure: Option<GpuError>,
    counts: LandingCounts,
    batch_bytes_max: u64,
    ranges_max: usize,
    /// Lowest length of a range that the engines copy, in bytes.
    engine_bytes_min: u64,
    /// Ranges that are about to be moved.
    ranges: Vec<Move>,
    /// First addresses of allocations: a copy may not cross from one into the next.
    starts: BTreeSet<u64>,
    /// Dropped last: the ring is the device's.
    device: Box<D>,
}

#[derive(Debug)]
struct Batch {
    event: EventId,
    tickets: usize,
    mark: u64,
}

#[derive(Clone, Copy, Debug)]
enum Wanted {
    Nothing,
    Bytes { offset: usize, bytes: usize },
    Value { offset: usize },
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Written,
    Bytes { from: usize, bytes: usize },
    Value(u64),
    Failed,
}

impl<D: Device + ?Sized> Landing<D> {
    /// Makes a landing with a ring of [`RING_BYTES`].
    pub fn new(device: Box<D>) -> Result<Self, GpuError> {
        Self::with_ring(device, RING_BYTES)
    }

    /// Makes a landing with a ring of the given length, at least [`RING_BYTES_MIN`].
    pub fn with_ring(mut device: Box<D>, ring_bytes: usize) -> Result<Self, GpuError> {
        let ring_bytes = ring_bytes.max(RING_BYTES_MIN);
        let ring = Ring::new(device.pin(ring_bytes)?);
        let stream = device.stream()?;
        Ok(Self {
            ring,
            stream,
            idle_events: Vec::new(),
            moves: Vec::new(),
            claims: Claims::default(),
            atomics: Vec::new(),
            open_bytes: 0,
            is_open: false,
            tickets: VecDeque::new(),
            closed_tickets: 0,
            batches: VecDeque::new(),
            answers: VecDeque::new(),
            results: Vec::new(),
            failure: None,
            counts: LandingCounts::default(),
            batch_bytes_max: BATCH_BYTES_MAX.min(ring_bytes as u64 / 8),
            ranges_max: RANGES_MAX.min(ring_bytes / 256),
            engine_bytes_min: Tiers::default().engine_bytes_min,
            ranges: Vec::new(),
            starts: BTreeSet::new(),
            device,
        })
    }

    /// Sets the length from which on ranges go to the engines.
    pub fn set_tiers(&mut self, tiers: &Tiers) {
        self.engine_bytes_min = tiers.engine_bytes_min;
    }

    /// Records that an allocation begins at `address`. One copy serves adjacent ranges, and the device refuses one that leaves an
    /// allocation.
    pub fn note_start(&mut self, address: Address) {
        self.starts.insert(address.0);
    }

    /// Removes the record of an allocation that was freed.
    pub fn forget_start(&mut self, address: Address) {
        self.starts.remove(&address.0);
    }

    /// Returns the device.
    pub fn device(&mut self) -> &mut D {
        &mut self.device
    }

    /// Returns the device, for reading.
    #[must_use]
    pub const fn device_ref(&self) -> &D {
        &self.device
    }

    /// Returns the stream of all operations.
    #[must_use]
    pub const fn stream(&self) -> StreamId {
        self.stream
    }

    /// Returns the counts so far.
    #[must_use]
    pub const fn counts(&self) -> LandingCounts {
        self.counts
    }

    /// Writes a range. It is visible once a later ticket is answered.
    pub fn write(&mut self, target: Address, bytes: &[u8]) -> Result<(), GpuError> {
        let piece_max = self.ring.piece_max();
        for (at, piece) in bytes.chunks(piece_max).enumerate() {
            let target = target.plus((at * piece_max) as u64);
            let offset = self.reserve(piece.len(), target.0)?;
            self.ring.write(offset, piece)?;
            let source = self.ring.address(offset).0;
            let range = Move { target: target.0, source, bytes: piece.len() as u64 };
            self.plan(Planned { range, word: word(target, piece) }, target.0)?;
        }
        Ok(())
    }

    /// Writes a range that the device reads in place, without staging. The source must not change until a later ticket is answered.
    pub fn write_in_place(&mut self, target: Address, source: Address, bytes: u64) -> Result<(), GpuError> {
        self.counts.in_place += 1;
        let range = Move { target: target.0, source: source.0, bytes };
        self.plan(Planned { range, word: None }, target.0)
    }

    /// Answers this ticket once everything written before is visible.
    pub fn ticket(&mut self, ticket: u32) {
        self.tickets.push_back((ticket, Wanted::Nothing));
        self.is_open = true;
    }

    /// Reads a range, at most a quarter of the ring, and answers the ticket with it.
    pub fn read(&mut self, ticket: u32, source: Address, bytes: usize) -> Result<(), GpuError> {
        let offset = self.reserve_for_fetch(source, bytes)?;
        // The ticket first: the read may close its batch at once, and a batch keeps its part of the ring for its tickets only.
        self.tickets.push_back((ticket, Wanted::Bytes { offset, bytes }));
        self.fetch_to(offset, source, bytes)
    }

    /// Changes a word, and answers the ticket with the old value.
    pub fn atomic(&mut self, ticket: u32, target: Address, change: WordChange) -> Result<(), GpuError> {
        let offset = self.plan_atomic(target, change)?;
        self.tickets.push_back((ticket, Wanted::Value { offset }));
        Ok(())
    }

    /// Plans an atomic and returns the offset of its old value in the ring.
    fn plan_atomic(&mut self, target: Address, change: WordChange) -> Result<usize, GpuError> {
        self.submit_moves()?;
        if self.atomics.len() >= self.ranges_max / 2 {
            self.submit()?;
        }
        let offset = self.reserve(8, 0)?;
        let WordChange { kind, width, operand, compare } = change;
        let result = self.ring.address(offset).0;
        self.atomics.push(Atomic { target: target.0, result, operand, compare, kind, width });
        self.is_open = true;
        Ok(offset)
    }

    /// Stores a word of 8 bytes once all earlier requests are visible, and answers the ticket when it is stored.
    pub fn set(&mut self, ticket: u32, target: Address, value: u64) -> Result<(), GpuError> {
        self.submit()?;
        let written = self.device.write_word(self.stream, target, 8, value);
        self.noted(written)?;
        self.ticket(ticket);
        Ok(())
    }

    /// Computes `target[i] = target[i] (reduction) source[i]`, after all earlier requests and before all later ones.
    pub fn reduce(
        &mut self,
        work: (Reduction, Element),
        target: Address,
        source: Address,
        count: u64,
    ) -> Result<(), GpuError> {
        self.submit()?;
        let reduced = self.device.reduce(self.stream, work, target, source, count);
        self.noted(reduced)?;
        self.is_open = true;
        self.start()
    }

    /// Copies within the device, in the order of requests. The ranges do not overlap.
    pub fn copy(&mut self, target: Address, source: Address, bytes: u64) -> Result<(), GpuError> {
        self.submit()?;
        let copied = self.device.copy(self.stream, target, source, bytes);
        self.noted(copied)?;
        self.is_open = true;
        self.start()
    }

    /// Reads after all earlier requests, and waits for the device.
    pub fn read_now(&mut self, source: Address, out: &mut [u8]) -> Result<(), GpuError> {
        let piece_max = self.ring.piece_max();
        for (at, piece) in out.chunks_mut(piece_max).enumerate() {
            let source = source.plus((at * piece_max) as u64);
            let offset = self.reserve_for_fetch(source, piece.len())?;
            self.fetch_to(offset, source, piece.len())?;
            self.finish()?;
            self.ring.read(offset, piece)?;
        }
        Ok(())
    }

    /// Changes a word after all earlier requests, waits for the device, and returns the old value.
    pub fn atomic_now(&mut self, target: Address, change: WordChange) -> Result<u64, GpuError> {
        let offset = self.plan_atomic(target, change)?;
        self.finish()?;
        let mut word = [0; 8];
        self.ring.read(offset, &mut word)?;
        Ok(u64::from_ne_bytes(word))
    }

    /// Stores a word of 8 bytes once all earlier requests are visible, and waits for the device.
    pub fn set_now(&mut self, target: Address, value: u64) -> Result<(), GpuError> {
        self.submit()?;
        let written = self.device.write_word(self.stream, target, 8, value);
        self.noted(written)?;
        self.is_open = true;
        self.finish()
    }

    /// Waits until all requests are done. Tickets are answered as usual. No event is left to be queried, so a later query finds an idle
    /// device.
    pub fn finish(&mut self) -> Result<(), GpuError> {
        self.submit()?;
        let result = self.device.synchronize(self.stream);
        self.noted(result)?;
        for (ticket, wanted) in self.tickets.drain(..) {
            let answer = answer(wanted, &self.ring, &mut self.results);
            self.answers.push_back((ticket, answer));
        }
        self.idle_events.extend(self.batches.drain(..).map(|batch| batch.event));
        self.ring.give_back(self.ring.mark());
        (self.closed_tickets, self.open_bytes, self.is_open) = (0, 0, false);
        Ok(())
    }

    /// Submits the open batch to the device.
    pub fn start(&mut self) -> Result<(), GpuError> {
        self.submit()?;
        if !self.is_open {
            return Ok(());
        }
        let event = match self.idle_events.pop() {
            Some(event) => event,
            None => self.device.event()?,
        };
        let recorded = self.device.record(event, self.stream);
        self.noted(recorded)?;
        let tickets = self.tickets.len() - self.closed_tickets;
        self.closed_tickets += tickets;
        self.batches.push_back(Batch { event, tickets, mark: self.ring.mark() });
        self.counts.batches += 1;
        (self.open_bytes, self.is_open) = (0, false);
        Ok(())
    }

    /// Returns the next ticket that can be answered, in the order of requests.
    pub fn poll(&mut self) -> Option<(u32, Landed<'_>)> {
        if self.answers.is_empty() {
            self.results.clear();
            // A failure of this call fails every ticket.
            let _ = self.start().and_then(|()| self.collect());
            if self.failure.is_some() {
                self.fail_all();
            }
        }
        let (ticket, answer) = self.answers.pop_front()?;
        let landed = match answer {
            Answer::Written => Landed::Written,
            Answer::Bytes { from, bytes } => Landed::Bytes(&self.results[from..from + bytes]),
            Answer::Value(value) => Landed::Value(value),
            Answer::Failed => match &self.failure {
                Some(failure) => Landed::Failed(failure),
                None => Landed::Failed(&GpuError::NotReady),
            },
        };
        Some((ticket, landed))
    }

    /// Returns true if some ticket is unanswered.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !self.tickets.is_empty() || !self.answers.is_empty() || !self.batches.is_empty()
    }

    /// Returns the failure of the device, if it has failed.
    #[must_use]
    pub const fn failure(&self) -> Option<&GpuError> {
        self.failure.as_ref()
    }

    fn reserve_for_fetch(&mut self, source: Address, bytes: usize) -> Result<usize, GpuError> {
        if bytes > self.ring.piece_max() {
            let length = self.ring.piece_max() as u64;
            return Err(GpuError::OutOfRange { offset: 0, bytes: bytes as u64, length });
        }
        self.reserve(bytes, source.0)
    }

    fn fetch_to(&mut self, offset: usize, source: Address, bytes: usize) -> Result<(), GpuError> {
        let target = self.ring.address(offset).0;
        self.is_open = true;
        let range = Move { target, source: source.0, bytes: bytes as u64 };
        self.plan(Planned { range, word: None }, source.0)
    }

    /// Collects completed batches. Returns true if there was one.
    fn collect(&mut self) -> Result<bool, GpuError> {
        let mut progress = false;
        while let Some(first) = self.batches.front() {
            let is_done = self.device.is_done(first.event);
            if !self.noted(is_done)? {
                break;
            }
            let Some(Batch { event, tickets, mark }) = self.batches.pop_front() else { break };
            for (ticket, wanted) in self.tickets.drain(..tickets) {
                let answer = answer(wanted, &self.ring, &mut self.results);
                self.answers.push_back((ticket, answer));
            }
            self.closed_tickets -= tickets;
            self.ring.give_back(mark);
            self.idle_events.push(event);
            progress = true;
        }
        Ok(progress)
    }

    /// Fails all tickets: the device is lost.
    fn fail_all(&mut self) {
        self.answers.extend(self.tickets.drain(..).map(|(ticket, _)| (ticket, Answer::Failed)));
        self.batches.clear();
        self.moves.clear();
        self.atomics.clear();
        self.claims.clear();
        (self.closed_tickets, self.is_open) = (0, false);
    }

    /// Records the first failure.
    fn noted<T>(&mut self, result: Result<T, GpuError>) -> Result<T, GpuError> {
        if let Err(error) = &result {
            self.failure.get_or_insert_with(|| error.clone());
        }
        result
    }
}

/// Returns the answer to a ticket whose batch is done.
fn answer(wanted: Wanted, ring: &Ring, results: &mut Vec<u8>) -> Answer {
    match wanted {
        Wanted::Nothing => Answer::Written,
        Wanted::Bytes { offset, bytes } => {
            let from = results.len();
            results.resize(from + bytes, 0);
            match ring.read(offset, &mut results[from..]) {
                Ok(()) => Answer::Bytes { from, bytes },
                Err(_) => Answer::Failed,
            }
        }
        Wanted::Value { offset } => {
            let mut word = [0; 8];
            ring.read(offset, &mut word).map_or(Answer::Failed, |()| Answer::Value(u64::from_ne_bytes(word)))
        }
    }
}

impl<D: Device + ?Sized> Drop for Landing<D> {
    /// Waits for the device, which must not write into a freed ring.
    fn drop(&mut self) {
        // A device that has failed writes nothing any more.
        let _ = self.device.synchronize(self.stream);
    }
}
