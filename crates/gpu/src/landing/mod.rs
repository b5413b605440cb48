//! Many small accesses to device memory, carried out in the order of asking and told when they are *visible*.
//!
//! Bytes that came in frames are copied once, into a ring of pinned memory. From there they are moved by a stream of our own: neighbours
//! become one range, many small ranges share one launch of a kernel that reads the ring itself, long ones and few are copied by
//! the device's engines. An event behind each batch says when all of it is done; only then are its tickets answered, in
//! order, and only then is its part of the ring used again. Reads and atomics go the same way, so whoever asks later sees what
//! was asked before.
//!
//! Nothing here waits, except for room in a ring that is full, and that wait has an end. There are no threads and no
//! knowledge of who asks: a ticket is a number.

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

/// Pinned memory of one landing.
pub const RING_BYTES: usize = 8 << 20;
/// A batch that holds so much is started without waiting for more; less where the ring is small.
const BATCH_BYTES_MAX: u64 = 256 << 10;
/// A launch that moves so many ranges takes no more; fewer where the ring is small.
const RANGES_MAX: usize = 1024;
/// The smallest ring: a batch and its records take no more than half of any.
pub const RING_BYTES_MIN: usize = 16 << 10;
/// How long a ring may stay full.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// What is to be done with one word.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordChange {
    /// How.
    pub kind: AtomicKind,
    /// 4 or 8 bytes.
    pub width: u32,
    /// Added, or put in place.
    pub operand: u64,
    /// What a compare-and-swap expects.
    pub compare: u64,
}

/// What became of a ticket.
#[derive(Debug, PartialEq, Eq)]
pub enum Landed<'a> {
    /// Everything written is visible.
    Written,
    /// What was read.
    Bytes(&'a [u8]),
    /// What was there before an atomic.
    Value(u64),
    /// The device failed; some of it may be visible.
    Failed(&'a GpuError),
}

/// Counts, for whoever wants to know what coalescing does.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LandingCounts {
    /// Ranges that were asked for, writes and reads.
    pub ranges: u64,
    /// Those among them that the device reads where they came in.
    pub in_place: u64,
    /// Launches of the kernel that moves ranges.
    pub launches: u64,
    /// Copies by the device's engines.
    pub copies: u64,
    /// Batches, each with one event.
    pub batches: u64,
}

/// See the module.
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
    /// Bytes put on the stream or about to be, since the last batch was closed.
    open_bytes: u64,
    /// Something was put on the stream since then.
    is_open: bool,
    /// Tickets of all batches that are not done and of the open one, in order.
    tickets: VecDeque<(u32, Wanted)>,
    /// Tickets in batches that are under way.
    closed_tickets: usize,
    batches: VecDeque<Batch>,
    /// Tickets that can be answered now; what they read lies in `results`.
    answers: VecDeque<(u32, Answer)>,
    results: Vec<u8>,
    failure: Option<GpuError>,
    counts: LandingCounts,
    batch_bytes_max: u64,
    ranges_max: usize,
    /// From here on a range is copied by the engines instead of by a kernel.
    engine_bytes_min: u64,
    /// Ranges that are about to be moved.
    ranges: Vec<Move>,
    /// Where allocations begin: a copy may not reach from one into the next.
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
    Bytes { place: usize, bytes: usize },
    Value { place: usize },
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Written,
    Bytes { from: usize, bytes: usize },
    Value(u64),
    Failed,
}

impl<D: Device + ?Sized> Landing<D> {
    /// On a device of one's own.
    pub fn new(device: Box<D>) -> Result<Self, GpuError> {
        Self::with_ring(device, RING_BYTES)
    }

    /// The same with a ring of another length, at least [`RING_BYTES_MIN`].
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

    /// From which size on ranges go to the engines.
    pub fn set_tiers(&mut self, tiers: &Tiers) {
        self.engine_bytes_min = tiers.engine_bytes_min;
    }

    /// An allocation begins here. One copy serves ranges that follow one another, and the device refuses one that leaves an allocation.
    pub fn note_start(&mut self, address: Address) {
        self.starts.insert(address.0);
    }

    /// That allocation is gone.
    pub fn forget_start(&mut self, address: Address) {
        self.starts.remove(&address.0);
    }

    /// The device.
    pub fn device(&mut self) -> &mut D {
        &mut self.device
    }

    /// The device, to look at.
    #[must_use]
    pub const fn device_ref(&self) -> &D {
        &self.device
    }

    /// The stream on which everything happens.
    #[must_use]
    pub const fn stream(&self) -> StreamId {
        self.stream
    }

    /// What has happened so far.
    #[must_use]
    pub const fn counts(&self) -> LandingCounts {
        self.counts
    }

    /// Write a range. It is visible once a ticket that is asked for afterwards is answered.
    pub fn write(&mut self, target: Address, bytes: &[u8]) -> Result<(), GpuError> {
        let piece_max = self.ring.piece_max();
        for (at, piece) in bytes.chunks(piece_max).enumerate() {
            let target = target.plus((at * piece_max) as u64);
            let place = self.room(piece.len(), target.0)?;
            self.ring.write(place, piece)?;
            let source = self.ring.address(place).0;
            let range = Move { target: target.0, source, bytes: piece.len() as u64 };
            self.plan(Planned { range, word: word(target, piece) }, target.0)?;
        }
        Ok(())
    }

    /// The same with bytes that lie where the device reads them itself, and stay as they are until such a ticket is answered.
    /// Nobody copies them on the way.
    pub fn write_in_place(&mut self, target: Address, source: Address, bytes: u64) -> Result<(), GpuError> {
        self.counts.in_place += 1;
        let range = Move { target: target.0, source: source.0, bytes };
        self.plan(Planned { range, word: None }, target.0)
    }

    /// Answer this ticket once everything written before is visible.
    pub fn ticket(&mut self, ticket: u32) {
        self.tickets.push_back((ticket, Wanted::Nothing));
        self.is_open = true;
    }

    /// Read a range, at most a quarter of the ring, and answer the ticket with it.
    pub fn read(&mut self, ticket: u32, source: Address, bytes: usize) -> Result<(), GpuError> {
        let place = self.room_to_fetch(source, bytes)?;
        // First the ticket: the batch that moves the bytes may be closed at once, and keeps its part of the ring for its tickets only.
        self.tickets.push_back((ticket, Wanted::Bytes { place, bytes }));
        self.fetch_to(place, source, bytes)
    }

    /// Change a word, and answer the ticket with what it was.
    pub fn atomic(&mut self, ticket: u32, target: Address, change: WordChange) -> Result<(), GpuError> {
        let place = self.plan_atomic(target, change)?;
        self.tickets.push_back((ticket, Wanted::Value { place }));
        Ok(())
    }

    /// Where its old value will be.
    fn plan_atomic(&mut self, target: Address, change: WordChange) -> Result<usize, GpuError> {
        self.submit_moves()?;
        if self.atomics.len() >= self.ranges_max / 2 {
            self.submit()?;
        }
        let place = self.room(8, 0)?;
        let WordChange { kind, width, operand, compare } = change;
        let result = self.ring.address(place).0;
        self.atomics.push(Atomic { target: target.0, result, operand, compare, kind, width });
        self.is_open = true;
        Ok(place)
    }

    /// Set a word of 8 bytes once everything that was asked before is visible, and answer the ticket when it is set.
    pub fn set(&mut self, ticket: u32, target: Address, value: u64) -> Result<(), GpuError> {
        self.submit()?;
        let written = self.device.write_word(self.stream, target, 8, value);
        self.noted(written)?;
        self.ticket(ticket);
        Ok(())
    }

    /// `target[i] = target[i] (reduction) source[i]`, behind everything that was asked before and before everything that is asked
    /// later.
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

    /// Copy within the device, in the same order. The ranges do not overlap.
    pub fn copy(&mut self, target: Address, source: Address, bytes: u64) -> Result<(), GpuError> {
        self.submit()?;
        let copied = self.device.copy(self.stream, target, source, bytes);
        self.noted(copied)?;
        self.is_open = true;
        self.start()
    }

    /// Read at once, behind everything that was asked before: waits for the device.
    pub fn read_now(&mut self, source: Address, out: &mut [u8]) -> Result<(), GpuError> {
        let piece_max = self.ring.piece_max();
        for (at, piece) in out.chunks_mut(piece_max).enumerate() {
            let source = source.plus((at * piece_max) as u64);
            let place = self.room_to_fetch(source, piece.len())?;
            self.fetch_to(place, source, piece.len())?;
            self.finish()?;
            self.ring.read(place, piece)?;
        }
        Ok(())
    }

    /// Change a word at once, behind everything that was asked before; what it was. Waits for the device.
    pub fn atomic_now(&mut self, target: Address, change: WordChange) -> Result<u64, GpuError> {
        let place = self.plan_atomic(target, change)?;
        self.finish()?;
        let mut word = [0; 8];
        self.ring.read(place, &mut word)?;
        Ok(u64::from_ne_bytes(word))
    }

    /// Set a word of 8 bytes at once, when everything that was asked before is visible. Waits for the device.
    pub fn set_now(&mut self, target: Address, value: u64) -> Result<(), GpuError> {
        self.submit()?;
        let written = self.device.write_word(self.stream, target, 8, value);
        self.noted(written)?;
        self.is_open = true;
        self.finish()
    }

    /// Wait until everything that was asked is done. Tickets are answered as ever. No event is needed for that, and nothing is left to be
    /// asked about: whoever looks next finds an idle device.
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

    /// Give what was collected to the device.
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

    /// The next ticket that can be answered, in the order of asking.
    pub fn poll(&mut self) -> Option<(u32, Landed<'_>)> {
        if self.answers.is_empty() {
            self.results.clear();
            // What fails here is told to every ticket.
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

    /// Whether there are tickets to be answered.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !self.tickets.is_empty() || !self.answers.is_empty() || !self.batches.is_empty()
    }

    /// Why nothing works any more, if so.
    #[must_use]
    pub const fn failure(&self) -> Option<&GpuError> {
        self.failure.as_ref()
    }

    fn room_to_fetch(&mut self, source: Address, bytes: usize) -> Result<usize, GpuError> {
        if bytes > self.ring.piece_max() {
            let length = self.ring.piece_max() as u64;
            return Err(GpuError::OutOfRange { offset: 0, bytes: bytes as u64, length });
        }
        self.room(bytes, source.0)
    }

    fn fetch_to(&mut self, place: usize, source: Address, bytes: usize) -> Result<(), GpuError> {
        let target = self.ring.address(place).0;
        self.is_open = true;
        let range = Move { target, source: source.0, bytes: bytes as u64 };
        self.plan(Planned { range, word: None }, source.0)
    }

    /// Take back what is done. Whether anything was.
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

    /// The device is lost: nobody waits for it any longer.
    fn fail_all(&mut self) {
        self.answers.extend(self.tickets.drain(..).map(|(ticket, _)| (ticket, Answer::Failed)));
        self.batches.clear();
        self.moves.clear();
        self.atomics.clear();
        self.claims.clear();
        (self.closed_tickets, self.is_open) = (0, false);
    }

    /// Remember the first failure.
    fn noted<T>(&mut self, result: Result<T, GpuError>) -> Result<T, GpuError> {
        if let Err(error) = &result {
            self.failure.get_or_insert_with(|| error.clone());
        }
        result
    }
}

/// What a ticket of a batch that is done is answered with.
fn answer(wanted: Wanted, ring: &Ring, results: &mut Vec<u8>) -> Answer {
    match wanted {
        Wanted::Nothing => Answer::Written,
        Wanted::Bytes { place, bytes } => {
            let from = results.len();
            results.resize(from + bytes, 0);
            match ring.read(place, &mut results[from..]) {
                Ok(()) => Answer::Bytes { from, bytes },
                Err(_) => Answer::Failed,
            }
        }
        Wanted::Value { place } => {
            let mut word = [0; 8];
            ring.read(place, &mut word).map_or(Answer::Failed, |()| Answer::Value(u64::from_ne_bytes(word)))
        }
    }
}

impl<D: Device + ?Sized> Drop for Landing<D> {
    /// The device must not write into a ring that is gone.
    fn drop(&mut self) {
        // A device that has failed writes nothing any more.
        let _ = self.device.synchronize(self.stream);
    }
}
