//! Long transfers out of device memory, read ahead of the caller that takes them piece by piece.
//!
//! A transfer is a row of bytes with a name. A stream of its own copies the bytes behind the current piece into pinned memory, in
//! chunks. Some chunks are in flight while an earlier one is taken. So the device's latency is paid once for a row and not
//! for each piece. The caller guarantees that the rest of the row may be read early.
//!
//! A row has a fixed part of the pinned memory. If all parts are in use by active rows, a new row gets none and the caller reads its
//! bytes by other means. This file knows neither frames nor regions.

use std::collections::VecDeque;
use std::time::Instant;

use crate::device::{Address, Device, EventId, StreamId};
use crate::error::GpuError;
use crate::landing::STALL_TIMEOUT;
use crate::pinned::Pinned;
use crate::tiers::Tiers;

/// Most rows at a time.
const ROWS_MAX: usize = 8;
/// Most chunks of a row in pinned memory.
const CHUNKS_MAX: usize = 3;
/// Length of a chunk, in bytes: long enough that starting the copy costs little, short enough to be taken while the next one arrives.
const CHUNK_BYTES: u64 = 256 << 10;
/// Length of the first chunk, in bytes. It is short because the caller waits for it.
const FIRST_CHUNK_BYTES: u64 = 64 << 10;
/// Default of the lowest length of a row, in bytes. Shorter rows do not repay the copies.
pub const ROW_BYTES_MIN: u64 = 16 << 10;
/// Number of other reads after which an idle row may lose its part of the pinned memory.
const READS_UNTIL_OLD: u64 = 64;

/// Rows of one device.
#[derive(Debug)]
pub struct Rows {
    stream: StreamId,
    /// Event that the stream waits for before it reads the first chunk of a row.
    before: EventId,
    pinned: Pinned,
    rows: Vec<Row>,
    reads: u64,
    bytes_min: u64,
    counts: RowCounts,
}

/// Counts that show the use of reading ahead.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Number of rows that were begun.
    pub rows: u64,
    /// Number of copies by the device's engines.
    pub copies: u64,
    /// Number of waits for a chunk.
    pub waits: u64,
}

#[derive(Debug)]
struct Row {
    name: u32,
    /// Address of the next byte that is taken.
    next: u64,
    /// Address of the next byte that is copied.
    ahead: u64,
    end: u64,
    chunks: VecDeque<Chunk>,
    /// Events of the chunks, by slot.
    events: [EventId; CHUNKS_MAX],
    /// Slot of the next chunk.
    slot: usize,
    used_at: u64,
}

#[derive(Clone, Copy, Debug)]
struct Chunk {
    /// Address of its first byte that was not taken.
    from: u64,
    end: u64,
    /// Offset of that byte in the pinned memory.
    at: usize,
    event: EventId,
    is_done: bool,
}

impl Rows {
    /// Makes an empty set of rows, with its pinned memory, stream and events.
    pub fn new<D: Device + ?Sized>(device: &mut D) -> Result<Self, GpuError> {
        let pinned = device.pin(ROWS_MAX * CHUNKS_MAX * CHUNK_BYTES as usize)?;
        let (stream, before) = (device.stream()?, device.event()?);
        let mut rows = Vec::with_capacity(ROWS_MAX);
        for _ in 0..ROWS_MAX {
            let mut events = [before; CHUNKS_MAX];
            for event in &mut events {
                *event = device.event()?;
            }
            let (chunks, slot) = (VecDeque::with_capacity(CHUNKS_MAX), 0);
            rows.push(Row { name: 0, next: 0, ahead: 0, end: 0, chunks, events, slot, used_at: 0 });
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

    /// Sets the length from which on rows are read ahead.
    pub fn set_tiers(&mut self, tiers: &Tiers) {
        self.bytes_min = tiers.ahead_bytes_min;
    }

    /// Returns the counts so far.
    #[must_use]
    pub const fn counts(&self) -> RowCounts {
        self.counts
    }

    /// Takes the bytes at `source` of the row `name`, of which `rest` more follow, behind everything on the stream `behind`.
    /// Returns false and takes nothing if this is no row, or if no part of the pinned memory is free.
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
        let Some(index) = known.or_else(|| self.row_for_new(name, out.len() as u64 + rest)) else {
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

    /// Discards everything that was read ahead.
    pub fn forget(&mut self) {
        self.rows.iter_mut().for_each(|row| row.name = 0);
    }

    /// Returns the index of a row that has ended or has been idle for long.
    fn row_for_new(&self, name: u32, bytes: u64) -> Option<usize> {
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

    /// Starts copies until every slot of the row has a chunk.
    fn copy_ahead<D: Device + ?Sized>(&mut self, device: &mut D, index: usize) -> Result<(), GpuError> {
        let row = &mut self.rows[index];
        while row.chunks.len() < CHUNKS_MAX && row.ahead < row.end {
            let is_first = row.ahead == row.next;
            let most = if is_first { FIRST_CHUNK_BYTES } else { CHUNK_BYTES };
            let bytes = most.min(row.end - row.ahead);
            let at = (index * CHUNKS_MAX + row.slot) * CHUNK_BYTES as usize;
            let event = row.events[row.slot];
            device.copy(self.stream, self.pinned.address(at), Address(row.ahead), bytes)?;
            device.record(event, self.stream)?;
            self.counts.copies += 1;
            let (from, end) = (row.ahead, row.ahead + bytes);
            row.chunks.push_back(Chunk { from, end, at, event, is_done: false });
            row.ahead = end;
            row.slot = (row.slot + 1) % CHUNKS_MAX;
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
            if begun.elapsed() > STALL_TIMEOUT {
                return Err(GpuError::Stuck { waited_ms: begun.elapsed().as_millis() as u64 });
            }
            std::hint::spin_loop();
        }
        self.counts.waits += u64::from(begun.is_some());
        chunk.is_done = true;
        Ok(())
    }
}
