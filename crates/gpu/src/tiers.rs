//! From which size on one way of moving bytes is faster than another, as it was measured on a device of this machine.
//!
//! Small writes are copied into pinned staging, longer ones are read where they lie; many ranges share a launch of a kernel, long ones go to
//! the copy engines; what leaves is read piece by piece, or, if it is long, ahead in chunks. Each of the three has a size at which it
//! changes. [`measure`] finds them; [`Tiers::keep`] writes them where every later process of this user finds them by the device's name.
//!
//! Without a measurement the sizes are those of the device that this was written on. Nobody measures by himself.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use crate::device::{Address, Device, Move};
use crate::error::GpuError;
use crate::landing::Landing;
use crate::rows::Rows;

/// Takes of each size; the median counts.
const TAKES: usize = 15;
/// Sizes that are tried: from here by doubling.
const BYTES_MIN: u64 = 64;
const BYTES_MAX: u64 = 1 << 20;
/// Ranges of a batch where a kernel and the engines are compared.
const RANGES: u64 = 16;
/// What one frame takes of a long transfer.
const PIECE_BYTES: u64 = 4096;

/// The sizes.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiers {
    /// From here on the device reads bytes where they came in; shorter ones are staged.
    pub in_place_bytes_min: u64,
    /// From here on a range among many is copied by the engines; shorter ones share a launch.
    pub engine_bytes_min: u64,
    /// From here on a transfer that leaves is read ahead in chunks.
    pub ahead_bytes_min: u64,
}

impl Default for Tiers {
    fn default() -> Self {
        Self { in_place_bytes_min: 1 << 10, engine_bytes_min: 32 << 10, ahead_bytes_min: 16 << 10 }
    }
}

impl fmt::Display for Tiers {
    /// As it is kept: a word and a number in each line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { in_place_bytes_min, engine_bytes_min, ahead_bytes_min } = self;
        write!(
            formatter,
            "in-place {in_place_bytes_min}\nengines {engine_bytes_min}\nahead {ahead_bytes_min}\n"
        )
    }
}

impl Tiers {
    /// What was kept. `None`: it is not whole, or no such sizes can be meant.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let number = |word: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            let number = lines.find(|(name, _)| *name == word)?.1.parse().ok()?;
            // A word that somebody polls is never read in place: it must be written whole.
            (number >= 16).then_some(number)
        };
        Some(Self {
            in_place_bytes_min: number("in-place")?,
            engine_bytes_min: number("engines")?,
            ahead_bytes_min: number("ahead")?,
        })
    }

    /// What was measured on the device of this name, if anything was.
    #[must_use]
    pub fn kept(device: &str) -> Option<Self> {
        Self::parse(&fs::read_to_string(place(device)?).ok()?)
    }

    /// Keep them for every process of this user that uses the device. Where they are kept.
    ///
    /// # Errors
    /// The system's; of kind `NotFound` where no place is known.
    pub fn keep(&self, device: &str) -> io::Result<PathBuf> {
        let place = place(device).ok_or(io::ErrorKind::NotFound)?;
        place.parent().map_or(Ok(()), fs::create_dir_all)?;
        // Written beside and renamed, so that nobody reads half of it.
        let beside = place.with_extension(format!("{}.new", std::process::id()));
        fs::write(&beside, self.to_string())?;
        fs::rename(&beside, &place)?;
        Ok(place)
    }
}

fn place(device: &str) -> Option<PathBuf> {
    Some(crate::kernels::cache_home()?.join("rackloom/tiers").join(device))
}

/// How long each way took for one size, in nanoseconds.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Bytes of a write, of each range, of a transfer.
    pub bytes: u64,
    /// A write through pinned staging, until it is visible.
    pub staged_ns: u64,
    /// The same, read where it lies.
    pub in_place_ns: u64,
    /// Sixteen ranges by one launch of a kernel.
    pub kernel_ns: u64,
    /// The same by the copy engines.
    pub engines_ns: u64,
    /// A transfer read frame by frame.
    pub piecewise_ns: u64,
    /// The same read ahead.
    pub ahead_ns: u64,
}

/// Time each way at each size on a device, and find where they change.
///
/// # Errors
/// What the device refuses.
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

/// The size from which on the second way is no slower, at this size and all larger ones; twice the largest if it never is.
fn change(timed: &[Timed], ways: impl Fn(&Timed) -> (u64, u64)) -> u64 {
    let is_slower = |one: &&Timed| {
        let (first, second) = ways(one);
        second > first
    };
    timed.iter().rev().find(is_slower).map_or(BYTES_MIN, |last| last.bytes * 2)
}

struct Bench {
    landing: Landing<dyn Device>,
    rows: Rows,
    /// As long as all ranges of the longest batch, on the device and pinned on the host.
    memory: Address,
    pinned: crate::pinned::Pinned,
    records: crate::pinned::Pinned,
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

    /// Until everything is done.
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
        for (place, range) in self.ranges(bytes).iter().enumerate() {
            self.records.put(place * size_of::<Move>(), range)?;
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
    fn what_is_kept_is_read_again_and_what_is_not_whole_is_not() {
        let tiers = Tiers { in_place_bytes_min: 2048, engine_bytes_min: 8192, ahead_bytes_min: 65_536 };
        assert_eq!(Tiers::parse(&tiers.to_string()), Some(tiers));
        let broken = [
            "",
            "in-place 2048\nengines 8192\n",
            "in-place 8\nengines 8192\nahead 65536\n",
            "in-place x\nengines 1\nahead 1",
        ];
        broken.into_iter().for_each(|text| assert_eq!(Tiers::parse(text), None, "{text}"));
    }

    #[test]
    fn a_way_is_taken_from_where_it_never_loses_again() {
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
    fn every_way_is_timed_at_every_size_and_makes_sizes_that_can_be_kept() {
        let (tiers, timed) = measure(Box::new(Fake::new(FakePlan::new(3)))).unwrap();
        assert_eq!((timed.len(), timed[0].bytes, timed[14].bytes), (15, 64, 1 << 20));
        assert_eq!(Tiers::parse(&tiers.to_string()), Some(tiers));
    }
}
