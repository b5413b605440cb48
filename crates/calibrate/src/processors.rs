//! On which processors the two sides of a loop run.
//!
//! A scheduler that puts both sides on one processor for a while halves a figure, and moves them only after milliseconds. So
//! both sides of a pair are held to a processor each, the raw loop's and ours alike.

use std::io;
use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Two processors, one for each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Of the side that begins.
    pub near: usize,
    /// Of the other side.
    pub far: usize,
}

/// Processors that this thread may use.
///
/// # Errors
/// The system's.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor)).collect())
}

/// Hold the calling thread, and what it starts from now on, to these processors.
///
/// # Errors
/// The system's.
pub fn hold_to(processors: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    processors.iter().for_each(|processor| set.set(*processor));
    Ok(sched_setaffinity(None, &set)?)
}

impl Pair {
    /// The first two processors that this process may use; `None` if it may use only one.
    ///
    /// # Errors
    /// The system's.
    pub fn choose() -> io::Result<Option<Self>> {
        let allowed = allowed()?;
        let pair = |two: &[usize]| Self { near: two[0], far: two[1] };
        Ok(allowed.get(..2).map(pair))
    }

    /// Run both sides at the same time, each on a thread of its own that is held to its processor, and wait for both.
    ///
    /// # Errors
    /// That of the side that failed, the near one first.
    ///
    /// # Panics
    /// If a side panics.
    pub fn run<N: Send, F: Send, E: From<io::Error> + Send>(
        self,
        near: impl FnOnce() -> Result<N, E> + Send,
        far: impl FnOnce() -> Result<F, E> + Send,
    ) -> Result<(N, F), E> {
        let (near, far) = thread::scope(|scope| {
            let far = scope.spawn(move || hold_to(&[self.far]).map_err(E::from).and_then(|()| far()));
            let near = scope.spawn(move || hold_to(&[self.near]).map_err(E::from).and_then(|()| near()));
            (near.join(), far.join())
        });
        let near = near.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let far = far.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((near, far))
    }
}

/// Count a test as skipped, where the test runner does not swallow it.
#[cfg(test)]
pub(crate) fn no_pair() {
    let line = b"SKIPPED (1): one processor makes no pair for a raw loop\n";
    std::io::Write::write_all(&mut std::io::stderr(), line).expect("standard error is there");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_runs_on_its_processor_and_both_are_heard() {
        let Some(pair) = Pair::choose().unwrap() else {
            crate::processors::no_pair();
            return;
        };
        let (near, far) = pair.run(allowed, allowed).unwrap();
        assert_eq!((near, far), (vec![pair.near], vec![pair.far]));
        let failed = pair.run(|| Ok(()), || Err::<(), _>(io::Error::other("far"))).unwrap_err();
        assert_eq!(failed.to_string(), "far");
    }
}
