//! The surface between a job and the engine that drives it.
//!
//! An engine builds one job per endpoint, allocates and registers its regions, hands it every event and gives it turns
//! until it is over. The same job runs in real processes and in virtual time.

use rackloom_protocol::{Endpoint, Event, Instant, Memory, RegionConfig};

use crate::report::JobResult;

/// What a job is doing after it was given a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Still running. `Some`: call again at this time even if nothing happens.
    Running(Option<Instant>),
    /// Over; the endpoint must be kept alive until every rank is over.
    Finished,
}

/// One rank's part of a job.
pub trait Job: Send {
    /// The regions that the engine must allocate (zeroed) and register before the first turn.
    fn regions(&self) -> Vec<RegionConfig>;
    /// Something happened at the endpoint.
    fn handle_event(&mut self, now: Instant, event: &Event);
    /// A turn: issue commands as far as the endpoint takes them, look at local memory.
    fn advance(&mut self, now: Instant, endpoint: &mut Endpoint, memory: &mut dyn Memory) -> Progress;
    /// One line that says what the job waits for.
    fn waiting_for(&self) -> String;
    /// What the job has found and measured so far; final once it is over. The measurements stay with the job, so
    /// asking again gives the same answer.
    fn result(&mut self) -> JobResult;
    /// A number that grows whenever the job gets further. A watchdog that sees it stand still may end the run.
    fn progress_count(&self) -> u64;
}
