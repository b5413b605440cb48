//! Measurement of the sizes: times each method at each size, and finds where the faster one changes.

use std::time::Instant;

use super::Tiers;
use crate::device::{Address, Device, Move};
use crate::error::GpuError;
use crate::landing::Landing;
use crate::pinned::Pinned;
use crate::rows::Rows;

/// Samples of each size. The median counts.
const TAKES: usize = 15;
/// Smallest size that is measured, in bytes. Each next size is twice as large.
const BYTES_MIN: u64 = 64;
const BYTES_MAX: u64 = 1 << 20;
/// Ranges of a batch in the comparison of a kernel with the engines.
const RANGES: u64 = 16;
/// Bytes of a long transfer that one frame carries.
const PIECE_BYTES: u64 = 4096;

/// Times of each method for one size, in nanoseconds.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Bytes of a write, of each range, of a transfer.
    pub bytes: u64,
    /// Write through pinned staging, until it is visible.
    pub staged_ns: u64,
    /// Write that the device reads in place, until it is visible.
    pub in_place_ns: u64,
    /// Sixteen ranges by one launch of a kernel.
    pub kernel_ns: u64,
    /// Sixteen ranges by the copy engines.
    pub engines_ns: u64,
    /// Transfer that is read frame by frame.
    pub piecewise_ns: u64,
    /// Transfer that is read ahead.
    pub ahead_ns: u64,
}

/// Times each method at each size on a device, and finds the sizes at which the faster one changes.
///
/// # Errors
/// Any error of the device.
pub fn measure(device: Box<dyn Device>) -> Result<(Tiers, Vec<Timed>), GpuError> {
    let mut bench = Bench::new(device)?;
    let sizes = std::iter::successors(Some(BYTES_MIN), |bytes| Some(bytes * 2));
    let timed: Vec<_> = sizes
        .take_while(|bytes| *bytes <= BYTES_MAX)
        .map(|bytes| bench.time(bytes))
        .collect::<Result<_, _>>()?;
    let found = Tiers {
        in_place_bytes_min: change(&timed, |one| (one.staged_ns, one.in_place_ns)),
        engine_bytes_min: change(&timed, |one| (one.kernel_ns, one.engines_ns)),
        ahead_bytes_min: change(&timed, |one| (one.piecewise_ns, one.ahead_ns)).max(2 * PIECE_BYTES),
    };
    Ok((found, timed))
}

/// Returns the lowest size from which on the second method is never slower, or twice the largest size if there is none.
fn change(timed: &[Timed], times: impl Fn(&Timed) -> (u64, u64)) -> u64 {
    let is_slower = |one: &&Timed| {
        let (first, second) = times(one);
        second > first
    };
    timed.iter().rev().find(is_slower).map_or(BYTES_MIN, |last| last.bytes * 2)
}

struct Bench {
    landing: Landing<dyn Device>,
    rows: Rows,
    /// Memory for all ranges of the longest batch, on the device and pinned on the host.
    memory: Address,
    pinned: Pinned,
    records: Pinned,
    row: u32,
}

impl Bench {
    fn new(device: Box<dyn Device>) -> Result<Self, GpuError> {
        let mut landing = Landing::new(device)?;
        let rows = Rows::new(landing.device())?;
        let all = RANGES * BYTES_MAX;
        let (memory, pinned) = (landing.device().allocate(all)?, landing.device().pin(all as usize)?);
        let records = landing.device().pin(RANGES as usize * size_of::<Move>())?;
        Ok(Self { landing, rows, memory, pinned, records, row: 0 })
    }

    fn time(&mut self, bytes: u64) -> Result<Timed, GpuError> {
        let held = vec![0x5a; bytes as usize];
        Ok(Timed {
            bytes,
            staged_ns: self.median(|bench| bench.landing.write(bench.memory, &held))?,
            in_place_ns: self
                .median(|bench| bench.landing.write_in_place(bench.memory, bench.pinned.address(0), bytes))?,
            kernel_ns: self.median(|bench| bench.by_kernel(bytes))?,
            engines_ns: self.median(|bench| bench.by_engines(bytes))?,
            piecewise_ns: self.median(|bench| bench.read(bytes, false))?,
            ahead_ns: self.median(|bench| bench.read(bytes, true))?,
        })
    }

    /// Returns the median time until everything is done.
    fn median(&mut self, act: impl Fn(&mut Self) -> Result<(), GpuError>) -> Result<u64, GpuError> {
        let mut times = [0; TAKES];
        for time in &mut times {
            let begun = Instant::now();
            act(self)?;
            self.landing.finish()?;
            *time = begun.elapsed().as_nanos() as u64;
        }
        times.sort_unstable();
        Ok(times[TAKES / 2])
    }

    fn ranges(&self, bytes: u64) -> Vec<Move> {
        let range = |at: u64| Move {
            target: self.memory.plus(at * BYTES_MAX).0,
            source: self.pinned.address((at * BYTES_MAX) as usize).0,
            bytes,
        };
        (0..RANGES).map(range).collect()
    }

    fn by_kernel(&mut self, bytes: u64) -> Result<(), GpuError> {
        for (index, range) in self.ranges(bytes).iter().enumerate() {
            self.records.put(index * size_of::<Move>(), range)?;
        }
        let (stream, at) = (self.landing.stream(), self.records.address(0));
        self.landing.device().move_ranges(stream, at, RANGES as u32, bytes)
    }

    fn by_engines(&mut self, bytes: u64) -> Result<(), GpuError> {
        let (stream, ranges) = (self.landing.stream(), self.ranges(bytes));
        self.landing.device().copy_ranges(stream, &ranges)
    }

    fn read(&mut self, bytes: u64, is_ahead: bool) -> Result<(), GpuError> {
        let mut out = [0; PIECE_BYTES as usize];
        self.row += 1;
        for from in (0..bytes).step_by(PIECE_BYTES as usize) {
            let length = PIECE_BYTES.min(bytes - from);
            let (at, piece) = (self.memory.plus(from), &mut out[..length as usize]);
            let row = (self.row, bytes - from - length);
            let behind = self.landing.stream();
            if !is_ahead || !self.rows.take(self.landing.device(), behind, row, at, piece)? {
                self.landing.read_now(at, piece)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, FakePlan};

    #[test]
    fn a_method_changes_at_the_size_from_which_it_never_loses() {
        let timed = |bytes, staged_ns, in_place_ns| Timed {
            bytes,
            staged_ns,
            in_place_ns,
            kernel_ns: 1,
            engines_ns: 1,
            piecewise_ns: 1,
            ahead_ns: 2,
        };
        let all = [timed(64, 5, 4), timed(128, 5, 6), timed(256, 5, 5), timed(512, 9, 5)];
        assert_eq!(change(&all, |one| (one.staged_ns, one.in_place_ns)), 256);
        assert_eq!(change(&all, |one| (one.kernel_ns, one.engines_ns)), 64);
        assert_eq!(change(&all, |one| (one.piecewise_ns, one.ahead_ns)), 1024, "never");
    }

    #[test]
    fn every_method_is_timed_at_every_size_and_the_result_can_be_stored() {
        let (tiers, timed) = measure(Box::new(Fake::new(FakePlan::new(3)))).unwrap();
        assert_eq!((timed.len(), timed[0].bytes, timed[14].bytes), (15, 64, 1 << 20));
        assert_eq!(Tiers::parse(&tiers.to_string()), Some(tiers));
    }
}
