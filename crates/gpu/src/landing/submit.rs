//! Submission: collects ranges, chooses kernel or engines for them, and finds space in the ring.

use std::time::Instant;

use super::planned::{Planned, are_few, is_continued};
use super::{Landing, STALL_TIMEOUT};
use crate::device::{Address, Device, Move};
use crate::error::GpuError;

impl<D: Device + ?Sized> Landing<D> {
    /// Adds a range to the open launch. `claimed` is the address of its side in device memory.
    pub(super) fn plan(&mut self, planned: Planned, claimed: u64) -> Result<(), GpuError> {
        let bytes = planned.range.bytes;
        self.counts.ranges += 1;
        if bytes == 0 {
            return Ok(());
        }
        // Earlier atomics go first.
        if !self.atomics.is_empty() || self.moves.len() >= self.ranges_max {
            self.submit()?;
        }
        if !self.claims.claim(claimed, bytes) {
            self.submit()?;
            self.claims.claim(claimed, bytes);
        }
        let Move { target, source, .. } = planned.range;
        let begins = |address| self.starts.contains(&address);
        match self.moves.last_mut() {
            Some(Planned { range: last, .. })
                if is_continued(last, &planned.range) && !begins(target) && !begins(source) =>
            {
                last.bytes += bytes;
            }
            _ => self.moves.push(planned),
        }
        self.is_open = true;
        self.open_bytes += bytes;
        if self.open_bytes >= self.batch_bytes_max {
            self.start()?;
        }
        Ok(())
    }

    pub(super) fn submit(&mut self) -> Result<(), GpuError> {
        self.submit_moves()?;
        if self.atomics.is_empty() {
            return Ok(());
        }
        let atomics = std::mem::take(&mut self.atomics);
        let offset = self.reserve_without_submitting(size_of_val(atomics.as_slice()), 0)?;
        self.ring.put_all(offset, &atomics)?;
        let result = self.device.atomics(self.stream, self.ring.address(offset), atomics.len() as u32);
        self.noted(result)?;
        self.atomics = atomics;
        self.atomics.clear();
        Ok(())
    }

    pub(super) fn submit_moves(&mut self) -> Result<(), GpuError> {
        if self.moves.is_empty() {
            return Ok(());
        }
        let mut moves = std::mem::take(&mut self.moves);
        self.claims.clear();
        let engine_bytes_min = self.engine_bytes_min;
        let long = |planned: &Planned| planned.range.bytes >= engine_bytes_min;
        let few =
            are_few(moves.iter().map(|planned| planned.range).filter(|range| range.bytes < engine_bytes_min));
        self.ranges.clear();
        for planned in moves.iter().filter(|planned| few || long(planned)) {
            let Planned { range: Move { target, bytes, .. }, word } = *planned;
            if let Some(word) = word {
                let written = self.device.write_word(self.stream, Address(target), bytes as u32, word);
                self.noted(written)?;
            } else {
                self.ranges.push(planned.range);
            }
        }
        if !self.ranges.is_empty() {
            let copied = self.device.copy_ranges(self.stream, &self.ranges);
            self.noted(copied)?;
            self.counts.copies += self.ranges.len() as u64;
        }
        moves.retain(|planned| !few && !long(planned));
        if !moves.is_empty() {
            let bytes_max = moves.iter().map(|planned| planned.range.bytes).max().unwrap_or(0);
            self.ranges.clear();
            self.ranges.extend(moves.iter().map(|planned| planned.range));
            let offset = self.reserve_without_submitting(size_of_val(self.ranges.as_slice()), 0)?;
            self.ring.put_all(offset, &self.ranges)?;
            let (at, count) = (self.ring.address(offset), moves.len() as u32);
            let result = self.device.move_ranges(self.stream, at, count, bytes_max);
            self.noted(result)?;
            self.counts.launches += 1;
        }
        moves.clear();
        self.moves = moves;
        Ok(())
    }

    /// Returns space in the ring. Starts the open batch and waits for completed ones if the ring is full.
    pub(super) fn reserve(&mut self, bytes: usize, like: u64) -> Result<usize, GpuError> {
        if let Some(offset) = self.ring.take(bytes, like) {
            return Ok(offset);
        }
        self.start()?;
        self.reserve_without_submitting(bytes, like)
    }

    pub(super) fn reserve_without_submitting(&mut self, bytes: usize, like: u64) -> Result<usize, GpuError> {
        let begun = Instant::now();
        loop {
            if let Some(offset) = self.ring.take(bytes, like) {
                return Ok(offset);
            }
            if self.collect()? {
                continue;
            }
            if begun.elapsed() > STALL_TIMEOUT || self.batches.is_empty() {
                let stuck = GpuError::Stuck { waited_ms: begun.elapsed().as_millis() as u64 };
                return self.noted(Err(stuck));
            }
            std::hint::spin_loop();
        }
    }
}
