//! Settings that all rows share: processors, amount of work, and a directory for files.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rackloom_calibrate::Pair;
use rackloom_runtime::machine::interruption::Interruption;

use crate::measure_error::MeasureError;
use crate::takes::{COMMANDS, CommandTake, IdleTake, PermutationTake};

/// Divisor of the work of a take with `--quick`.
const QUICK_DIVISOR: u64 = 50;

/// Processors, amount of work, and takes that rows share.
#[derive(Debug)]
pub(super) struct Bench {
    pair: Option<Pair>,
    is_quick: bool,
    scratch: Scratch,
    interruption: Arc<Interruption>,
    /// Takes of one row that other rows use as well.
    pub(super) permutations: Shared<PermutationTake>,
    pub(super) idle_racks: [Shared<IdleTake>; 2],
    pub(super) commands: [Shared<CommandTake>; COMMANDS],
}

/// Takes that several rows read. The first reader makes them.
#[derive(Debug)]
pub(super) struct Shared<T>(RefCell<Vec<T>>);

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<T: Copy> Shared<T> {
    /// Returns the take with this number (from 0). Makes it if it does not exist.
    pub(super) fn take(
        &self,
        number: usize,
        make: impl FnOnce() -> Result<T, MeasureError>,
    ) -> Result<T, MeasureError> {
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
        // A signal may arrive as soon as the directory exists.
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

    /// Returns the flag that signals set.
    pub(super) fn interruption(&self) -> &Interruption {
        &self.interruption
    }

    /// Returns true if a signal has interrupted the command.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interruption.is_requested()
    }

    /// Returns the two processors of loops with two sides.
    pub(super) fn pair(&self) -> Result<Pair, MeasureError> {
        let one_processor =
            || MeasureError::NotHere("it needs two processors, and this process may use one".to_owned());
        self.pair.ok_or_else(one_processor)
    }

    /// Returns the number of operations of a take: `full`, or a small part of it with `--quick`.
    pub(super) fn count(&self, full: u64) -> u64 {
        if self.is_quick { (full / QUICK_DIVISOR).max(1) } else { full }
    }

    /// Returns the directory of this process.
    pub(super) fn directory(&self) -> &Path {
        &self.scratch.0
    }
}

/// Directory that is removed with its owner.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("rackloom-calibrate-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // An existing directory may belong to another user.
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A directory that cannot be removed stays in the system's temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
