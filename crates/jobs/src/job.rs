//! The surface between a job and the engine that drives it.

use rackloom_protocol::{Endpoint, Event, Instant, Memory, RegionConfig};

/// What a job is doing after it was given a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Still running. `Some`: call again at this time even if nothing happens.
    Running(Option<Instant>),
    /// Over; the endpoint must be kept alive until every rank is over.
    Finished,
}

/// One rank's part of a job.
pub trait Job {
    /// The regions that the engine must allocate (zeroed) and register before the first turn.
    fn regions(&self) -> Vec<RegionConfig>;
    /// Something happened at the endpoint.
    fn handle_event(&mut self, now: Instant, event: &Event);
    /// A turn: issue commands as far as the endpoint takes them, look at local memory.
    fn advance(&mut self, now: Instant, endpoint: &mut Endpoint, memory: &mut dyn Memory) -> Progress;
    /// One line that says what the job waits for.
    fn waiting_for(&self) -> String;
}
