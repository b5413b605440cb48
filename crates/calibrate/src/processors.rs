//! Processors of the two sides of a loop.
//!
//! A scheduler that runs both sides on one processor for a while halves a figure, and moves them only after milliseconds. So
//! both sides of a pair are pinned to a processor each, for the raw loop and for ours.

use std::io;
use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Two processors, one for each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Processor of the side that begins.
    pub initiator: usize,
    /// Processor of the other side.
    pub target: usize,
}

/// Returns the processors that this thread may use.
///
/// # Errors
/// The system's error.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor)).collect())
}

/// Pins the calling thread, and all that it starts later, to these processors.
///
/// # Errors
/// The system's error.
pub fn hold_to(processors: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    processors.iter().for_each(|processor| set.set(*processor));
    Ok(sched_setaffinity(None, &set)?)
}

impl Pair {
    /// Returns the first two processors that this process may use, or `None` if it may use only one.
    ///
    /// # Errors
    /// The system's error.
    pub fn choose() -> io::Result<Option<Self>> {
        let allowed = allowed()?;
        let pair = |two: &[usize]| Self { initiator: two[0], target: two[1] };
        Ok(allowed.get(..2).map(pair))
    }

    /// Runs both sides at the same time, each on a thread that is pinned to its processor, and waits for both.
    ///
    /// # Errors
    /// The error of the side that failed; of the initiator if both failed.
    ///
    /// # Panics
    /// If a side panics.
    pub fn run<N: Send, F: Send, E: From<io::Error> + Send>(
        self,
        initiator: impl FnOnce() -> Result<N, E> + Send,
        target: impl FnOnce() -> Result<F, E> + Send,
    ) -> Result<(N, F), E> {
        let (initiator, target) = thread::scope(|scope| {
            let target =
                scope.spawn(move || hold_to(&[self.target]).map_err(E::from).and_then(|()| target()));
            let initiator =
                scope.spawn(move || hold_to(&[self.initiator]).map_err(E::from).and_then(|()| initiator()));
            (initiator.join(), target.join())
        });
        let initiator = initiator.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let target = target.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((initiator, target))
    }
}

/// Reports a skipped test on standard error, which the test runner does not capture.
#[cfg(test)]
pub(crate) fn no_pair() {
    let line = b"SKIPPED (1): one processor makes no pair for a raw loop\n";
    std::io::Write::write_all(&mut std::io::stderr(), line).expect("standard error is there");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_runs_on_its_processor_and_both_errors_are_returned() {
        let Some(pair) = Pair::choose().unwrap() else {
            crate::processors::no_pair();
            return;
        };
        let (initiator, target) = pair.run(allowed, allowed).unwrap();
        assert_eq!((initiator, target), (vec![pair.initiator], vec![pair.target]));
        let failed = pair.run(|| Ok(()), || Err::<(), _>(io::Error::other("target"))).unwrap_err();
        assert_eq!(failed.to_string(), "target");
    }
}
