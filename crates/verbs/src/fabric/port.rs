//! State of the port: whether a path leads from the seat of this process to other members, and which faults are set on queue pairs.

use std::time::{Duration, Instant};

use rackloom::fabric::{Node, NodeId, QueuePairFault};

use crate::engine::Port;

/// Interval between two looks.
const INTERVAL: Duration = Duration::from_millis(5);
/// Time without a path to the agent of the seat after which the device is gone. A busy agent may be silent for a moment.
const REMOVED_AFTER: Duration = Duration::from_secs(1);

/// Port of a process.
pub(super) struct PortWatch {
    /// GPU node before the process. `None` if the process is the GPU node: its port is always active.
    agent: Option<NodeId>,
    /// Members that the port leads to.
    neighbours: Vec<NodeId>,
    port: Port,
    /// A neighbour was reached before.
    was_reached: bool,
    /// Time at which the agent was reached last.
    agent_reached: Option<Instant>,
    /// Faults of queue pairs, as the engine knows them.
    faults: Vec<QueuePairFault>,
    /// Faults of queue pairs that the engine does not know yet.
    new_faults: Option<Vec<QueuePairFault>>,
    due: Instant,
}

impl PortWatch {
    /// Returns the watch of the port of a process.
    pub(super) fn new(node: &Node) -> Self {
        let before = node.seat_before();
        let agent = before.as_ref().map(|before| before.node);
        let neighbours = before.map_or_else(Vec::new, |before| before.neighbours);
        let due = Instant::now();
        Self {
            agent,
            neighbours,
            port: Port::Active,
            was_reached: false,
            agent_reached: None,
            faults: Vec::new(),
            new_faults: None,
            due,
        }
    }

    pub(super) const fn state(&self) -> Port {
        self.port
    }

    /// Takes the faults of queue pairs, if they have changed.
    pub(super) fn take_faults(&mut self) -> Option<Vec<QueuePairFault>> {
        self.new_faults.take()
    }

    /// Looks for paths and faults, at most every few milliseconds.
    pub(super) fn look(&mut self, node: &Node) {
        let now = Instant::now();
        if now < self.due || self.port == Port::Removed {
            return;
        }
        self.due = now + INTERVAL;
        let faults = node.queue_pair_faults();
        if faults != self.faults {
            self.faults.clone_from(&faults);
            self.new_faults = Some(faults);
        }
        let has_agent = self.agent.is_none_or(|agent| node.reaches(agent));
        if has_agent {
            self.agent_reached = Some(now);
        }
        let is_reached = has_agent && self.neighbours.iter().any(|neighbour| node.reaches(*neighbour));
        self.was_reached |= is_reached;
        let silence = self.agent_reached.map(|reached| now - reached);
        self.port = if silence.is_some_and(|silence| silence > REMOVED_AFTER) {
            Port::Removed
        } else if is_reached || !self.was_reached {
            // The first program of a rack finds no neighbour, and its port is in order.
            Port::Active
        } else {
            Port::Down
        };
    }
}
