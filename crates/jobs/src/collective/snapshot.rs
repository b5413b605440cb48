//! Snapshots of a collective job: the saved state of a rank, and how it is restored.
//!
//! Ranks save between two barriers. After the first barrier every run is complete and checked, and all data sent is
//! visible, so no operation changes memory. Before the second barrier no rank begins the next run. So the snapshots
//! form a cut through the whole rack that no operation crosses.
//!
//! A snapshot contains the buffers and the progress of the job. It does not contain signal words: they count runs, and
//! begin at zero again as in a new job. The engine stores the bytes ([`SnapshotSink`], [`Saved`]).

use rackloom_protocol::{JobMemory, RegionId};
use serde::{Deserialize, Serialize};

use super::memory_plan::MemoryNeed;
use super::memory_plan::{INPUT, OUTPUT, SCRATCH};
use super::probe::Measured;
use super::trials::Tried;
use super::work::{BLOCK_BYTES, POLL_BYTES_MAX, read, write};
use crate::report::SweepRow;

/// Progress of a rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Number of completed runs, of all sizes.
    pub runs: u64,
    /// Leg of the last completed run, counted from one: one size with one algorithm.
    #[serde(rename = "size")]
    pub leg: usize,
    /// Number of completed runs of that leg.
    #[serde(rename = "runs_of_size")]
    pub runs_of_leg: u32,
    pub(super) measured_ns: u64,
    #[serde(default)]
    pub(super) times_ns: Vec<u64>,
    pub(super) wrong: u64,
    pub(super) verified_bytes: u64,
    pub(super) fabric: Option<Measured>,
    #[serde(default)]
    pub(super) tried: Option<Tried>,
    pub(super) rows: Vec<SweepRow>,
    pub(super) notes: Vec<String>,
}

/// Header of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Progress of the rank.
    pub progress: Progress,
    /// Regions whose bytes follow, each with its length in bytes.
    pub regions: Vec<(u32, u64)>,
}

/// Destination of a rank's snapshots. No call waits for other ranks.
pub trait SnapshotSink: Send {
    /// Begins a snapshot.
    ///
    /// # Errors
    /// Text of the failure. The job then ends, because the requested snapshots cannot be made.
    fn begin(&mut self, head: &Head) -> Result<(), String>;
    /// Writes the next bytes of the snapshot.
    ///
    /// # Errors
    /// As for [`SnapshotSink::begin`].
    fn write(&mut self, bytes: &[u8]) -> Result<(), String>;
    /// Completes the snapshot, so that it can be found from now on.
    ///
    /// # Errors
    /// As for [`SnapshotSink::begin`].
    fn seal(&mut self) -> Result<(), String>;
}

/// Snapshot from which a job resumes.
pub trait Saved: Send {
    /// Returns the header of the snapshot.
    fn head(&self) -> &Head;
    /// Reads the next bytes.
    ///
    /// # Errors
    /// Text of the failure, also if the bytes are not those that were saved.
    fn read(&mut self, out: &mut [u8]) -> Result<(), String>;
}

/// Snapshots that a rank must save or resume from.
#[derive(Default)]
pub struct Checkpoints {
    /// Number of runs between two snapshots, and their destination.
    pub save: Option<(u32, Box<dyn SnapshotSink>)>,
    /// Snapshot to resume from.
    pub resume: Option<Box<dyn Saved>>,
}

/// Position in the bytes of a snapshot: region by region, block by block.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    regions: Vec<(RegionId, usize)>,
    done: usize,
}

impl Cursor {
    /// Returns the position of the first byte.
    pub(super) fn new(need: &MemoryNeed) -> Self {
        let regions = [(INPUT, need.input_bytes), (OUTPUT, need.output_bytes), (SCRATCH, need.scratch_bytes)];
        Self { regions: regions.map(|(region, bytes)| (region, bytes as usize)).into(), done: 0 }
    }

    pub(super) fn regions(&self) -> Vec<(u32, u64)> {
        self.regions.iter().map(|(region, bytes)| (region.0, *bytes as u64)).collect()
    }

    /// Processes the blocks of one poll. Returns whether none is left.
    fn advance(
        &mut self,
        mut each: impl FnMut(RegionId, usize, usize) -> Result<(), String>,
    ) -> Result<bool, String> {
        let mut left = POLL_BYTES_MAX;
        while let Some((region, bytes)) = self.regions.first().copied() {
            if self.done == bytes {
                self.regions.remove(0);
                self.done = 0;
                continue;
            }
            if left == 0 {
                return Ok(false);
            }
            let length = BLOCK_BYTES.min(bytes - self.done).min(left);
            each(region, self.done, length)?;
            (self.done, left) = (self.done + length, left - length);
        }
        Ok(true)
    }

    /// Copies memory into the snapshot. Returns whether the copy is complete.
    pub(super) fn save(
        &mut self,
        memory: &mut dyn JobMemory,
        sink: &mut dyn SnapshotSink,
        block: &mut [u8],
    ) -> Result<bool, String> {
        self.advance(|region, at, length| {
            read(memory, region, at, &mut block[..length])?;
            sink.write(&block[..length])
        })
    }

    /// Copies the snapshot into memory. Returns whether the copy is complete.
    pub(super) fn restore(
        &mut self,
        memory: &mut dyn JobMemory,
        saved: &mut dyn Saved,
        block: &mut [u8],
    ) -> Result<bool, String> {
        self.advance(|region, at, length| {
            saved.read(&mut block[..length])?;
            write(memory, region, at, &block[..length])
        })
    }
}
