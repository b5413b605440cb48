//! Headway of a run: finished nodes, and the progress of the slowest one.

use rackloom_jobs::Portion;

/// Headway of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headway {
    /// Number of GPU nodes that have finished.
    pub finished: usize,
    /// Progress of the slowest of the others. `None` if the job has no pieces, or every node has finished.
    pub portion: Option<Portion>,
}

impl Headway {
    /// Returns the headway of a run. `working`: the progress of each node that has not finished.
    pub fn of(finished: usize, working: impl Iterator<Item = Portion>) -> Self {
        Self { finished, portion: working.min_by_key(|portion| portion.done) }
    }
}
