//! The surface between a job and the engine that drives it.
//!
//! An engine builds one job per endpoint. It allocates and registers the regions of the job, hands it every event, and
//! polls it until it is over. The same job runs in real processes and in virtual time.

use rackloom_collectives::ElementType;
pub use rackloom_control::portion::Portion;
use rackloom_control::recorder::{OperationRecording, RecentOperations};
use rackloom_plan::faults::JobPosition;
use rackloom_protocol::{
    Command, CommandRefused, Endpoint, Event, Instant, JobMemory, Member, NodeId, RegionConfig, RegionId,
};

use crate::report::JobResult;

/// State of a job after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The job still runs. With `Some(time)`, the engine must poll again at that time even if nothing happens.
    Running(Option<Instant>),
    /// The job is over. The endpoint must be kept alive until every rank is over.
    Finished,
}

/// Result of a job in a rank's memory: `elements` values from the beginning of `region` on, little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// Region that holds the result.
    pub region: RegionId,
    /// Type of the elements.
    pub element: ElementType,
    /// Number of elements.
    pub elements: u64,
}

impl Output {
    /// Returns the length of the result in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.elements * self.element.bytes() as u64
    }
}

/// Path that carries an accepted command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carried {
    /// The endpoint carries the command: in frames, or within this node.
    #[default]
    Endpoint,
    /// Mapped memory of the same server carries the command. A job reads no clock, so the engine measures the duration
    /// and passes it in.
    Direct {
        /// Duration of the call in nanoseconds, if the command was complete when the call returned. `None` if its
        /// completion is a later event, as in virtual time.
        took_ns: Option<u64>,
    },
}

/// Interface on which a job issues commands: an endpoint, alone or with local paths that carry out the same commands
/// and cause the same events.
pub trait Seat {
    /// Accepts a command as [`Member::handle_command`] does, and returns the path that carries it.
    fn command(&mut self, now: Instant, command: Command<'_>) -> Result<Carried, CommandRefused>;
    /// Returns whether a path to `node` exists; see [`Endpoint::is_reachable`].
    fn is_reachable(&self, node: NodeId) -> bool;
}

impl Seat for Endpoint {
    fn command(&mut self, now: Instant, command: Command<'_>) -> Result<Carried, CommandRefused> {
        self.handle_command(now, command).map(|()| Carried::Endpoint)
    }
    fn is_reachable(&self, node: NodeId) -> bool {
        Self::is_reachable(self, node)
    }
}

/// One rank's part of a job.
pub trait Job: Send {
    /// Returns the regions that the engine must allocate (zeroed) and register before the first poll.
    fn regions(&self) -> Vec<RegionConfig>;
    /// Returns those of the regions that hold only words by which ranks signal each other. They are in the memory of the host on every node: a
    /// processor that waits reads such a word in nanoseconds, and a word on a device in microseconds.
    fn word_regions(&self) -> Vec<RegionId> {
        Vec::new()
    }
    /// Sets what the job records of its operations. Call it before the first poll.
    fn observe(&mut self, recording: OperationRecording) {
        let _ = recording;
    }
    /// Returns the operations that have ended since the last call, if the job records them.
    fn take_recent(&mut self) -> Option<RecentOperations> {
        None
    }
    /// Processes an event of the endpoint.
    fn handle_event(&mut self, now: Instant, event: &Event);
    /// Polls the job: it issues commands until the seat refuses them, and reads local memory.
    fn advance(&mut self, now: Instant, seat: &mut dyn Seat, memory: &mut dyn JobMemory) -> Progress;
    /// Returns one line that describes what the job waits for.
    fn waiting_for(&self) -> String;
    /// Returns what the job has found and measured so far. The result is final once the job is over. Measurements stay
    /// with the job, so a second call returns the same result.
    fn result(&mut self) -> JobResult;
    /// Returns the location of the rank's result, once the job is complete and every check has passed. The engine reads
    /// the result from memory block by block. `None` for jobs without a result in memory.
    fn output(&self) -> Option<Output> {
        None
    }
    /// Returns the progress of the job for display; `None` if the job has only one piece. The number of completed
    /// pieces never decreases.
    fn portion(&self) -> Option<Portion> {
        None
    }
    /// Returns the point that the job has reached, for faults that wait for it. `None` between two points, and for jobs
    /// that have none.
    fn reached(&self) -> Option<JobPosition> {
        None
    }
    /// Returns whether a job that is over still has messages for its peers. The engine must poll it until this is
    /// `false`.
    fn has_last_words(&self) -> bool {
        false
    }
    /// Returns a number that grows with every advance of the job. A watchdog may end the run if the number does not
    /// change.
    fn progress_count(&self) -> u64;
}
