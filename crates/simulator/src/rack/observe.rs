//! Read access to a rack: members, memory, counters, events.

use rackloom_jobs::{Job, PathReport};
use rackloom_plan::impair::Direction;
use rackloom_protocol::link::counters::PortCounters;
use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::{Endpoint, Instant, NodeId, PortId};

use super::Simulation;
use crate::ids::ChannelId;
use crate::link::LinkStatistics;
use crate::outcome::{MemberState, Statistics};
use crate::recording::RecordedEvent;
use crate::seat::{Body, Seat};
use crate::trace::TraceSums;

/// Read access to a rack. A request for a member that does not exist, or is of another kind, panics: it
/// is an error of the caller.
impl Simulation {
    /// Returns the virtual time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns true if the member is computed here and not in another part.
    #[must_use]
    pub fn is_here(&self, node: NodeId) -> bool {
        self.seats.get(node).is_some()
    }

    /// Returns the state of a member.
    #[must_use]
    pub fn state(&self, node: NodeId) -> MemberState {
        self.seat(node).state()
    }

    /// Returns an endpoint.
    #[must_use]
    pub fn endpoint(&self, node: NodeId) -> &Endpoint {
        match &self.seat(node).body {
            Body::Endpoint(endpoint) => endpoint,
            _ => panic!("{node} is not an endpoint"),
        }
    }

    /// Returns an endpoint, to register regions at it.
    pub fn endpoint_mut(&mut self, node: NodeId) -> &mut Endpoint {
        match &mut self.seats[node].body {
            Body::Endpoint(endpoint) => endpoint,
            _ => panic!("{node} is not an endpoint"),
        }
    }

    /// Returns the counts of an endpoint's operations by path; `None` if no other node could share memory with it.
    #[must_use]
    pub fn paths(&self, node: NodeId) -> Option<PathReport> {
        self.seat(node).paths
    }

    /// Returns notes for readers about an endpoint's path to memory of its server.
    #[must_use]
    pub fn path_notes(&self, node: NodeId) -> Vec<String> {
        self.seat(node).local.iter().flat_map(|local| local.notes()).collect()
    }

    /// Returns a member's memory.
    #[must_use]
    pub fn memory(&self, node: NodeId) -> &VectorMemory {
        self.memories.bytes(node)
    }

    /// Returns a member's memory, to add regions or write into them.
    pub fn memory_mut(&mut self, node: NodeId) -> &mut VectorMemory {
        self.memories.bytes_mut(node)
    }

    /// Returns an endpoint's job; `None` if there is none.
    #[must_use]
    pub fn job(&self, node: NodeId) -> Option<&dyn Job> {
        self.seat(node).job.as_deref()
    }

    /// Removes and returns the jobs, by rank, to read their results.
    pub fn take_jobs(&mut self) -> Vec<Box<dyn Job>> {
        self.awaited = 0;
        self.seats.iter_mut().filter_map(|seat| seat.job.take()).collect()
    }

    /// Returns the counters of a member's port, as the member saw it.
    #[must_use]
    pub fn counters(&self, node: NodeId, port: PortId) -> &PortCounters {
        self.seat(node).body.member().port_counters(port)
    }

    /// Returns the counters of one direction of a link, as the wire saw it.
    #[must_use]
    pub fn link_statistics(&self, edge: u16, direction: Direction) -> &LinkStatistics {
        &self.fabric.channel(ChannelId::new(edge, direction)).statistics
    }

    /// Returns the events of all members, in order: the first ones of each kind, 4096 at most, and 32768 completions and
    /// dropped frames.
    #[must_use]
    pub fn events(&self) -> &[RecordedEvent] {
        self.recording.events()
    }

    /// Returns the hash of all events until now.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.trace_sums().digest()
    }

    pub(crate) const fn trace_sums(&self) -> TraceSums {
        self.fabric.trace.sums(self.memories.hash())
    }

    /// Returns the engine's counters until now.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut statistics = Statistics {
            events_not_recorded: self.recording.left_out(),
            frames_alive_max: self.fabric.frames.alive_max() as u64,
            ..self.statistics
        };
        for link in self.fabric.statistics() {
            statistics.frames_sent += link.frames_sent;
            statistics.frames_delivered += link.frames_delivered;
            statistics.frames_dropped += link.frames_dropped;
            statistics.wire_bytes += link.wire_bytes;
            statistics.accounted_bytes += link.accounted_bytes;
        }
        statistics
    }

    fn seat(&self, node: NodeId) -> &Seat {
        &self.seats[node]
    }
}
