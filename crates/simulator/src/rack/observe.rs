//! Looking at a rack: members, memory, counters, what happened.

use rackloom_jobs::{Job, PathReport};
use rackloom_plan::impair::Direction;
use rackloom_protocol::link::counters::PortCounters;
use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::{Endpoint, Event, Instant, NodeId, PortId};

use super::Simulation;
use crate::link::{ChannelId, LinkStatistics};
use crate::outcome::{MemberState, Statistics};
use crate::seat::{Body, Seat};

/// Looking at a rack. What is asked about a member that does not exist, or is not of the kind asked for, panics: it
/// is a mistake of the caller.
impl Simulation {
    /// Virtual time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// How a member stands.
    #[must_use]
    pub fn state(&self, node: NodeId) -> MemberState {
        self.seat(node).state()
    }

    /// An endpoint.
    #[must_use]
    pub fn endpoint(&self, node: NodeId) -> &Endpoint {
        match &self.seat(node).body {
            Body::Endpoint(endpoint) => endpoint,
            _ => panic!("{node} is not an endpoint"),
        }
    }

    /// An endpoint, to register regions at.
    pub fn endpoint_mut(&mut self, node: NodeId) -> &mut Endpoint {
        match &mut self.seats[node.index()].body {
            Body::Endpoint(endpoint) => endpoint,
            _ => panic!("{node} is not an endpoint"),
        }
    }

    /// How the operations of an endpoint's job were carried; `None` where no other node could share memory with it.
    #[must_use]
    pub fn paths(&self, node: NodeId) -> Option<PathReport> {
        self.seat(node).paths
    }

    /// What a reader should know of an endpoint's path to memory of its server.
    #[must_use]
    pub fn path_notes(&self, node: NodeId) -> Vec<String> {
        self.seat(node).local.iter().flat_map(|local| local.notes()).collect()
    }

    /// A member's memory.
    #[must_use]
    pub fn memory(&self, node: NodeId) -> &VectorMemory {
        self.memories.bytes(node)
    }

    /// A member's memory, to add regions or write into them.
    pub fn memory_mut(&mut self, node: NodeId) -> &mut VectorMemory {
        self.memories.bytes_mut(node)
    }

    /// An endpoint's job; `None` if there is none.
    #[must_use]
    pub fn job(&self, node: NodeId) -> Option<&dyn Job> {
        self.seat(node).job.as_deref()
    }

    /// The jobs, by rank; to ask them for their results. Afterwards the rack has none.
    pub fn take_jobs(&mut self) -> Vec<Box<dyn Job>> {
        self.awaited = 0;
        self.seats.iter_mut().filter_map(|seat| seat.job.take()).collect()
    }

    /// What has passed through a member's port, as the member saw it.
    #[must_use]
    pub fn counters(&self, node: NodeId, port: PortId) -> &PortCounters {
        self.seat(node).body.member().port_counters(port)
    }

    /// What has passed through one direction of a link, as the wire saw it.
    #[must_use]
    pub fn link_statistics(&self, edge: u16, direction: Direction) -> &LinkStatistics {
        &self.fabric.channel(ChannelId::new(edge, direction)).statistics
    }

    /// What members reported, in order; bounded, completions and dropped frames are the first to be left out.
    #[must_use]
    pub fn events(&self) -> &[(Instant, NodeId, Event)] {
        self.recording.events()
    }

    /// Hash of everything that has happened until now.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.fabric.trace.digest(self.memories.hash())
    }

    /// What the engine has done until now.
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
        &self.seats[node.index()]
    }
}
