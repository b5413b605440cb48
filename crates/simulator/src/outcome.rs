//! States, counters and transitions that results of a run consist of.

use rackloom_protocol::{Instant, NodeId};

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
    /// computed in another order. With several parts it is the sum of their maxima.
    pub frames_alive_max: u64,
}

/// Begin or end of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultTransition {
    /// Virtual time.
    pub at: Instant,
    /// The member that applied it.
    pub member: NodeId,
    /// Index of the event in the script.
    pub event: usize,
    /// True if the fault began, false if it ended.
    pub begins: bool,
    /// Number of the event's repetition, counted from one.
    pub time: u64,
}

impl Statistics {
    /// Adds the counters of members of another part. The sum of the maxima of frames is an upper bound of their maximum.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            events_handled,
            polls,
            events,
            events_not_recorded,
            frames_sent,
            frames_delivered,
            frames_dropped,
            wire_bytes,
            accounted_bytes,
            frames_alive_max,
        } = self;
        for (sum, part) in [
            (events_handled, other.events_handled),
            (polls, other.polls),
            (events, other.events),
            (events_not_recorded, other.events_not_recorded),
            (frames_sent, other.frames_sent),
            (frames_delivered, other.frames_delivered),
            (frames_dropped, other.frames_dropped),
            (wire_bytes, other.wire_bytes),
            (accounted_bytes, other.accounted_bytes),
            (frames_alive_max, other.frames_alive_max),
        ] {
            *sum += part;
        }
    }
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
