//! What all rows share: processors, how much is measured, a place for files.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rackloom_calibrate::Pair;
use rackloom_runtime::machine::interruption::Interruption;

use super::row::Obstacle;
use super::{idle, simulated, whole};

/// A take that only tries the machinery is so much shorter.
const QUICK_DIVISOR: u64 = 50;

/// Where and how much is measured.
#[derive(Debug)]
pub(super) struct Bench {
    pair: Option<Pair>,
    is_quick: bool,
    scratch: Scratch,
    interruption: Arc<Interruption>,
    /// What was taken for one row and answers another one's question, too.
    pub(super) permutations: Shared<simulated::Taken>,
    pub(super) idle_racks: [Shared<idle::Taken>; 2],
    pub(super) commands: [Shared<whole::Taken>; whole::COMMANDS],
}

/// Takes that several rows read; whoever comes first takes them.
#[derive(Debug)]
pub(super) struct Shared<T>(RefCell<Vec<T>>);

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<T: Copy> Shared<T> {
    /// The take of this number (from 0), which is made if it has not been.
    pub(super) fn take(
        &self,
        number: usize,
        make: impl FnOnce() -> Result<T, Obstacle>,
    ) -> Result<T, Obstacle> {
        if let Some(taken) = self.0.borrow().get(number) {
            return Ok(*taken);
        }
        let taken = make()?;
        self.0.borrow_mut().push(taken);
        Ok(taken)
    }
}

impl Bench {
    pub(super) fn new(is_quick: bool) -> io::Result<Self> {
        // Who sees the directory may send a signal.
        let interruption = Interruption::listen()?;
        Ok(Self {
            pair: Pair::choose()?,
            is_quick,
            scratch: Scratch::new()?,
            interruption,
            permutations: Shared::default(),
            idle_racks: Default::default(),
            commands: std::array::from_fn(|_| Shared::default()),
        })
    }

    /// Who hears that this is to end.
    pub(super) fn interruption(&self) -> &Interruption {
        &self.interruption
    }

    /// Whether this is to end.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interruption.is_asked()
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
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("rackloom-calibrate-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
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
