//! The surface between a job and the engine that drives it.
//!
//! An engine builds one job per endpoint, allocates and registers its regions, hands it every event and gives it turns
//! until it is over. The same job runs in real processes and in virtual time.

use rackloom_collectives::ElementType;
use rackloom_plan::faults::Place;
use rackloom_protocol::{
    Command, CommandRefused, Endpoint, Event, Instant, Member, Memory, NodeId, RegionConfig, RegionId,
};
use serde::{Deserialize, Serialize};

use crate::report::JobResult;

/// What a job is doing after it was given a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Still running. `Some`: call again at this time even if nothing happens.
    Running(Option<Instant>),
    /// Over; the endpoint must be kept alive until every rank is over.
    Finished,
}

/// What a job leaves for the user in a rank's memory: `elements` from the beginning of `region` on, little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// Where.
    pub region: RegionId,
    /// Of what type.
    pub element: ElementType,
    /// How many.
    pub elements: u64,
}

impl Output {
    /// Its length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.elements * self.element.bytes() as u64
    }
}

/// How far a rank's part of a job is, counted in pieces that a person would count: runs, phases, measurements.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Portion {
    /// Pieces behind it.
    pub done: u64,
    /// All pieces.
    pub total: u64,
}

/// Which path carries an accepted command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carried {
    /// The endpoint carries the command: in frames, or on this side alone.
    #[default]
    Endpoint,
    /// Mapped memory of the same server carries the command. The job reads no clock, so the engine hands in what it measured.
    Direct {
        /// Duration of the call in nanoseconds, if the command was complete when the call returned; `None` if its end is an event of
        /// a later time, as in virtual time.
        took_ns: Option<u64>,
    },
}

/// What a job sits on: an endpoint, alone or with ways beside it that carry out the same commands and end in the same
/// events.
pub trait Seat {
    /// Accepts a command as [`Member::handle_command`] does, and returns the path that carries it.
    fn command(&mut self, now: Instant, command: Command<'_>) -> Result<Carried, CommandRefused>;
    /// See [`Endpoint::is_reachable`].
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
    /// The regions that the engine must allocate (zeroed) and register before the first turn.
    fn regions(&self) -> Vec<RegionConfig>;
    /// Something happened at the endpoint.
    fn handle_event(&mut self, now: Instant, event: &Event);
    /// A turn: issue commands as far as the seat takes them, look at local memory.
    fn advance(&mut self, now: Instant, seat: &mut dyn Seat, memory: &mut dyn Memory) -> Progress;
    /// One line that says what the job waits for.
    fn waiting_for(&self) -> String;
    /// What the job has found and measured so far; final once it is over. The measurements stay with the job, so
    /// asking again gives the same answer.
    fn result(&mut self) -> JobResult;
    /// What the rank has got, once the job is complete and every check was right; the engine reads it from memory, block
    /// by block. `None` for jobs that give a user nothing.
    fn output(&self) -> Option<Output> {
        None
    }
    /// How far it is, for those who wait; `None` where a job has only one piece. Never shrinks.
    fn portion(&self) -> Option<Portion> {
        None
    }
    /// Where the job is, for faults that wait for it; `None` while it is between places, and where it has none.
    fn reached(&self) -> Option<Place> {
        None
    }
    /// Whether a job that is over has something to tell somebody all the same: give it turns as long as it has.
    fn has_last_words(&self) -> bool {
        false
    }
    /// A number that grows whenever the job gets further. A watchdog that sees it stand still may end the run.
    fn progress_count(&self) -> u64;
}
