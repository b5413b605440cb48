//! What a run tells when it is over.

use rackloom_protocol::Instant;

/// How a member stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// Alive; its job, if it has one, is not over.
    Running,
    /// Alive, and its job is over.
    Finished,
    /// Standing still, and its job is not over.
    Paused,
    /// Dead.
    Killed,
}

/// What the engine has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Events taken from the queue.
    pub events_handled: u64,
    /// Turns given to members.
    pub turns: u64,
    /// Events that members reported.
    pub events: u64,
    /// Of those: events that [`crate::Simulation::events`] does not hold, for lack of room.
    pub events_not_recorded: u64,
    /// Frames that members committed.
    pub frames_sent: u64,
    /// Frames that reached a member, duplicates included.
    pub frames_delivered: u64,
    /// Frames that reached nobody.
    pub frames_dropped: u64,
    /// Bytes on all wires: check, padding, preamble and gap included.
    pub wire_bytes: u64,
    /// The same with the headers that the links' profiles name.
    pub accounted_bytes: u64,
    /// Largest number of frames for which there had to be room at the same time. Whoever looks on may change it: members' turns are
    /// computed in another order then.
    pub frames_alive_max: u64,
}

/// A run that came to its end: the job of every living endpoint is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When.
    pub ended_at: Instant,
    /// Hash of everything that happened.
    pub trace_hash: u64,
    /// How the members stand, by node.
    pub members: Vec<MemberState>,
    /// What it took.
    pub statistics: Statistics,
}

impl Outcome {
    /// The trace hash as reports print it.
    #[must_use]
    pub fn trace_hash_text(&self) -> String {
        format!("{:016x}", self.trace_hash)
    }
}
