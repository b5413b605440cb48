//! What all rows share: processors, how much is measured, a place for files.

use std::io;
use std::path::{Path, PathBuf};

use rackloom_calibrate::Pair;

use super::row::Obstacle;

/// A take that only tries the machinery is so much shorter.
const QUICK_DIVISOR: u64 = 50;

/// Where and how much is measured.
#[derive(Debug)]
pub(super) struct Bench {
    pair: Option<Pair>,
    is_quick: bool,
    scratch: Scratch,
}

impl Bench {
    pub(super) fn new(is_quick: bool) -> io::Result<Self> {
        Ok(Self { pair: Pair::choose()?, is_quick, scratch: Scratch::new()? })
    }

    /// The two processors of loops with two sides.
    pub(super) fn pair(&self) -> Result<Pair, Obstacle> {
        let alone = || Obstacle::NotHere("it takes two processors, and this process may use one".to_owned());
        self.pair.ok_or_else(alone)
    }

    /// How many operations make a take, where `full` make a good one.
    pub(super) fn count(&self, full: u64) -> u64 {
        if self.is_quick { (full / QUICK_DIVISOR).max(1) } else { full }
    }

    /// A directory of this process's own.
    pub(super) fn directory(&self) -> &Path {
        &self.scratch.0
    }
}

/// A directory that goes with its owner.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let path = std::env::temp_dir().join(format!("rackloom-calibrate-{}", std::process::id()));
        // Not one that is there already: somebody else may have made it.
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed lies in the system's own place for such files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
