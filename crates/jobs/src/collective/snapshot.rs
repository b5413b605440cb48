//! Where a collective job can be taken up again: what is kept of a rank, and how it is put back.
//!
//! Ranks save between two barriers. Behind the first one every run is over and checked and all that was sent is visible, so nobody's
//! memory changes any more by anybody's hand; before the second one nobody begins the next run. What is saved then is
//! a cut through the whole rack that no operation crosses.
//!
//! What is kept are the buffers and how far the job is. Words that signal are not: they count runs, and begin again from nothing
//! as those of a fresh job do. Where the bytes go is the engine's business ([`Vault`], [`Saved`]).

use rackloom_protocol::{Memory, RegionId};
use serde::{Deserialize, Serialize};

use super::MemoryNeed;
use super::probe::Measured;
use super::room::{INPUT, OUTPUT, SCRATCH};
use super::trials::Tried;
use super::work::{BLOCK_BYTES, TURN_BYTES, read, write};
use crate::report::SweepRow;

/// How far a rank is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Runs that are over, of all sizes.
    pub runs: u64,
    /// The leg of the last of them, counted from one: one size by one algorithm.
    #[serde(rename = "size")]
    pub leg: usize,
    /// Runs of that leg that are over.
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

/// What stands before the bytes of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// How far the rank is.
    pub progress: Progress,
    /// The regions whose bytes follow, and how many each has.
    pub regions: Vec<(u32, u64)>,
}

/// Where a rank's snapshots go. None of it waits for other ranks.
pub trait Vault: Send {
    /// Begin a snapshot.
    ///
    /// # Errors
    /// In words; the job then ends, because whoever asked for snapshots would be left without.
    fn begin(&mut self, head: &Head) -> Result<(), String>;
    /// The next bytes of it.
    ///
    /// # Errors
    /// As for [`Vault::begin`].
    fn write(&mut self, bytes: &[u8]) -> Result<(), String>;
    /// It is whole: from now on it can be found.
    ///
    /// # Errors
    /// As for [`Vault::begin`].
    fn seal(&mut self) -> Result<(), String>;
}

/// A snapshot to be taken up.
pub trait Saved: Send {
    /// What stands before the bytes.
    fn head(&self) -> &Head;
    /// The next bytes.
    ///
    /// # Errors
    /// In words, also where the bytes turn out not to be those that were saved.
    fn read(&mut self, out: &mut [u8]) -> Result<(), String>;
}

/// What a rank is to do about snapshots.
#[derive(Default)]
pub struct Checkpoints {
    /// Save after every so many runs, and where to.
    pub save: Option<(u32, Box<dyn Vault>)>,
    /// Go on from here.
    pub resume: Option<Box<dyn Saved>>,
}

/// A place in the bytes of a snapshot: region by region, block by block.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    regions: Vec<(RegionId, usize)>,
    done: usize,
}

impl Cursor {
    /// Before the first byte.
    pub(super) fn new(need: &MemoryNeed) -> Self {
        let regions = [(INPUT, need.input_bytes), (OUTPUT, need.output_bytes), (SCRATCH, need.scratch_bytes)];
        Self { regions: regions.map(|(region, bytes)| (region, bytes as usize)).into(), done: 0 }
    }

    pub(super) fn regions(&self) -> Vec<(u32, u64)> {
        self.regions.iter().map(|(region, bytes)| (region.0, *bytes as u64)).collect()
    }

    /// A turn's worth of blocks. Returns whether none is left.
    fn advance(
        &mut self,
        mut each: impl FnMut(RegionId, usize, usize) -> Result<(), String>,
    ) -> Result<bool, String> {
        let mut left = TURN_BYTES;
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

    /// Memory to snapshot.
    pub(super) fn save(
        &mut self,
        memory: &mut dyn Memory,
        vault: &mut dyn Vault,
        block: &mut [u8],
    ) -> Result<bool, String> {
        self.advance(|region, at, length| {
            read(memory, region, at, &mut block[..length])?;
            vault.write(&block[..length])
        })
    }

    /// Snapshot to memory.
    pub(super) fn restore(
        &mut self,
        memory: &mut dyn Memory,
        saved: &mut dyn Saved,
        block: &mut [u8],
    ) -> Result<bool, String> {
        self.advance(|region, at, length| {
            saved.read(&mut block[..length])?;
            write(memory, region, at, &block[..length])
        })
    }
}
