//! Long transfers out of device memory: read ahead of whoever takes them piece by piece.
//!
//! A transfer is a row of bytes with a name. What follows the piece at hand is copied into pinned memory by a stream of its own, in
//! chunks, some of them under way while an earlier one is being taken. So the device's latency is paid once for a row and not
//! for each piece. Whoever asks vouches that nobody minds how early the rest of the row is read.
//!
//! A row has a fixed part of the pinned memory. If all parts are in use by rows that move, a new one gets none and its bytes
//! are left to the caller. This file knows neither frames nor regions.

use std::collections::VecDeque;
use std::time::Instant;

use crate::device::{Address, Device, EventId, StreamId};
use crate::error::GpuError;
use crate::landing::PATIENCE;
use crate::pinned::Pinned;
use crate::tiers::Tiers;

/// Rows at a time.
const ROWS_MAX: usize = 8;
/// Chunks of a row in pinned memory.
const CHUNKS_MAX: usize = 3;
/// Bytes of a chunk: long enough that starting the copy costs little, short enough to be taken while the next one comes.
const CHUNK_BYTES: u64 = 256 << 10;
/// The first chunk, which somebody waits for.
const FIRST_CHUNK_BYTES: u64 = 64 << 10;
/// Shorter rows are not worth it, unless somebody has measured.
pub const ROW_BYTES_MIN: u64 = 16 << 10;
/// A row that has not moved for so many other reads may lose its place.
const READS_UNTIL_OLD: u64 = 64;

/// The rows of one device.
#[derive(Debug)]
pub struct Rows {
    stream: StreamId,
    /// What the stream waits for before it reads the first chunk of a row.
    before: EventId,
    pinned: Pinned,
    rows: Vec<Row>,
    reads: u64,
    bytes_min: u64,
    counts: RowCounts,
}

/// Counts, for whoever wants to know whether reading ahead is worth it.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Rows that were begun.
    pub rows: u64,
    /// Copies by the device's engines.
    pub copies: u64,
    /// Times that a chunk had to be waited for.
    pub waits: u64,
}

#[derive(Debug)]
struct Row {
    name: u32,
    /// What is taken next.
    next: u64,
    /// What is copied next.
    ahead: u64,
    end: u64,
    chunks: VecDeque<Chunk>,
    /// Events of the chunks, in the order of their places.
    events: [EventId; CHUNKS_MAX],
    /// Place of the next chunk.
    place: usize,
    used_at: u64,
}

#[derive(Clone, Copy, Debug)]
struct Chunk {
    /// First byte of it that was not taken.
    from: u64,
    end: u64,
    /// Where that byte lies in the pinned memory.
    at: usize,
    event: EventId,
    is_done: bool,
}

impl Rows {
    /// No rows yet.
    pub fn new<D: Device + ?Sized>(device: &mut D) -> Result<Self, GpuError> {
        let pinned = device.pin(ROWS_MAX * CHUNKS_MAX * CHUNK_BYTES as usize)?;
        let (stream, before) = (device.stream()?, device.event()?);
        let mut rows = Vec::with_capacity(ROWS_MAX);
        for _ in 0..ROWS_MAX {
            let mut events = [before; CHUNKS_MAX];
            for event in &mut events {
                *event = device.event()?;
            }
            let (chunks, place) = (VecDeque::with_capacity(CHUNKS_MAX), 0);
            rows.push(Row { name: 0, next: 0, ahead: 0, end: 0, chunks, events, place, used_at: 0 });
        }
        Ok(Self {
            stream,
            before,
            pinned,
            rows,
            reads: 0,
            bytes_min: ROW_BYTES_MIN,
            counts: RowCounts::default(),
        })
    }

    /// From which size on rows are read ahead.
    pub fn set_tiers(&mut self, tiers: &Tiers) {
        self.bytes_min = tiers.ahead_bytes_min;
    }

    /// What has happened so far.
    #[must_use]
    pub const fn counts(&self) -> RowCounts {
        self.counts
    }

    /// Take the bytes at `source` of the row `name`, of which `rest` more follow. Whatever was put on the stream `behind` before is
    /// seen. False: it is no row, or has no room, and nothing was taken.
    pub fn take<D: Device + ?Sized>(
        &mut self,
        device: &mut D,
        behind: StreamId,
        (name, rest): (u32, u64),
        source: Address,
        out: &mut [u8],
    ) -> Result<bool, GpuError> {
        self.reads += 1;
        let end = source.0.saturating_add(out.len() as u64);
        let known =
            self.rows.iter().position(|row| row.name == name && row.next == source.0 && end <= row.end);
        let Some(index) = known.or_else(|| self.place_for_new(name, out.len() as u64 + rest)) else {
            return Ok(false);
        };
        if known.is_none() {
            device.record(self.before, behind)?;
            device.wait(self.stream, self.before)?;
            let row = &mut self.rows[index];
            row.chunks.clear();
            (row.name, row.next, row.ahead, row.end) = (name, source.0, source.0, end.saturating_add(rest));
            self.counts.rows += 1;
        }
        self.rows[index].used_at = self.reads;
        let taken = self.take_from(device, index, out);
        if taken.is_err() || self.rows[index].next == self.rows[index].end {
            self.rows[index].name = 0;
        }
        taken.map(|()| true)
    }

    /// Nothing that was read in advance counts any more.
    pub fn forget(&mut self) {
        self.rows.iter_mut().for_each(|row| row.name = 0);
    }

    /// A place whose row is over, or has not moved for long.
    fn place_for_new(&self, name: u32, bytes: u64) -> Option<usize> {
        if name == 0 || bytes < self.bytes_min {
            return None;
        }
        let (oldest, row) =
            self.rows.iter().enumerate().min_by_key(|(_, row)| (row.name != 0, row.used_at))?;
        (row.name == 0 || row.used_at + READS_UNTIL_OLD < self.reads).then_some(oldest)
    }

    fn take_from<D: Device + ?Sized>(
        &mut self,
        device: &mut D,
        index: usize,
        out: &mut [u8],
    ) -> Result<(), GpuError> {
        let mut out = out;
        self.copy_ahead(device, index)?;
        while !out.is_empty() {
            self.wait_for_first(device, index)?;
            let row = &mut self.rows[index];
            let Some(chunk) = row.chunks.front_mut() else { return Err(GpuError::NotReady) };
            let length = out.len().min((chunk.end - chunk.from) as usize);
            let (part, rest) = out.split_at_mut(length);
            self.pinned.read(chunk.at, part)?;
            out = rest;
            chunk.from += length as u64;
            chunk.at += length;
            row.next += length as u64;
            if chunk.from == chunk.end {
                row.chunks.pop_front();
                self.copy_ahead(device, index)?;
            }
        }
        Ok(())
    }

    /// Have as many chunks under way as there are places.
    fn copy_ahead<D: Device + ?Sized>(&mut self, device: &mut D, index: usize) -> Result<(), GpuError> {
        let row = &mut self.rows[index];
        while row.chunks.len() < CHUNKS_MAX && row.ahead < row.end {
            let is_first = row.ahead == row.next;
            let most = if is_first { FIRST_CHUNK_BYTES } else { CHUNK_BYTES };
            let bytes = most.min(row.end - row.ahead);
            let at = (index * CHUNKS_MAX + row.place) * CHUNK_BYTES as usize;
            let event = row.events[row.place];
            device.copy(self.stream, self.pinned.address(at), Address(row.ahead), bytes)?;
            device.record(event, self.stream)?;
            self.counts.copies += 1;
            let (from, end) = (row.ahead, row.ahead + bytes);
            row.chunks.push_back(Chunk { from, end, at, event, is_done: false });
            row.ahead = end;
            row.place = (row.place + 1) % CHUNKS_MAX;
        }
        Ok(())
    }

    fn wait_for_first<D: Device + ?Sized>(&mut self, device: &mut D, index: usize) -> Result<(), GpuError> {
        let Some(chunk) = self.rows[index].chunks.front_mut().filter(|chunk| !chunk.is_done) else {
            return Ok(());
        };
        let mut begun = None;
        while !device.is_done(chunk.event)? {
            let begun = begun.get_or_insert_with(Instant::now);
            if begun.elapsed() > PATIENCE {
                return Err(GpuError::Stuck { waited_ms: begun.elapsed().as_millis() as u64 });
            }
            std::hint::spin_loop();
        }
        self.counts.waits += u64::from(begun.is_some());
        chunk.is_done = true;
        Ok(())
    }
}
