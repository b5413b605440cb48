//! Progress of a run: number of finished nodes, and progress of the slowest of the others.

use rackloom_jobs::Portion;

/// Progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunProgress {
    /// Number of GPU nodes that have finished.
    pub finished: usize,
    /// Progress of the slowest unfinished node. `None` if the job has no pieces, or every node has finished.
    pub portion: Option<Portion>,
}

impl RunProgress {
    /// Returns the progress of a run. `working`: progress of each node that has not finished.
    pub fn of(finished: usize, working: impl Iterator<Item = Portion>) -> Self {
        Self { finished, portion: working.min_by_key(|portion| (portion.done, portion.within)) }
    }
}
