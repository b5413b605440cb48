//! Results of a run.

use rackloom_protocol::Instant;

/// State of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// Alive; its job, if it has one, is not over.
    Running,
    /// Alive, and its job is over.
    Finished,
    /// Paused, and its job is not over.
    Paused,
    /// Dead.
    Killed,
}

/// Counters of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Events taken from the queue.
    pub events_handled: u64,
    /// Polls of members.
    pub polls: u64,
    /// Events that members reported.
    pub events: u64,
    /// Events of members that [`crate::Simulation::events`] does not hold, because the memory for them is full.
    pub events_not_recorded: u64,
    /// Frames that members committed.
    pub frames_sent: u64,
    /// Frames that reached a member, duplicates included.
    pub frames_delivered: u64,
    /// Frames that did not reach a member.
    pub frames_dropped: u64,
    /// Bytes on all wires: check, padding, preamble and gap included.
    pub wire_bytes: u64,
    /// Bytes on all wires with the headers of the links' profiles.
    pub accounted_bytes: u64,
    /// Maximum number of frames that needed a buffer at the same time. Observers may change it: members are then
    /// computed in another order.
    pub frames_alive_max: u64,
}

/// Result of a complete run: the job of every living endpoint is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Virtual time at the end.
    pub ended_at: Instant,
    /// Hash of everything that happened.
    pub trace_hash: u64,
    /// States of the members, by node.
    pub members: Vec<MemberState>,
    /// Counters of the engine.
    pub statistics: Statistics,
}

impl Outcome {
    /// Returns the trace hash as reports print it.
    #[must_use]
    pub fn trace_hash_text(&self) -> String {
        format!("{:016x}", self.trace_hash)
    }
}
