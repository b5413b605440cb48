//! A member for tests that is readable at a glance: it sends given frames, records received ones, and may echo them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use rackloom_protocol::link::counters::PortCounters;
use rackloom_protocol::transmit::{Body, Passage, Transmit};
use rackloom_protocol::{
    Command, CommandRefused, Event, FrameCompletion, Inspect, Instant, LeaseId, Member, MemoryDone,
    MemoryRequest, MemoryToken, NodeId, PollSteps, PortId, Shortcuts, TimeoutExtensions,
};

/// Frames that stub members have received: time, member, port, bytes.
pub(crate) type Log = Arc<Mutex<Vec<(u64, NodeId, PortId, Vec<u8>)>>>;

/// One stub member.
#[derive(Debug)]
pub(crate) struct StubMember {
    pub(crate) node: NodeId,
    pub(crate) log: Log,
    pub(crate) echoes: bool,
    /// Frames to send at these times, in order, each on a port.
    pub(crate) script: VecDeque<(u64, PortId, Vec<u8>)>,
    ready: VecDeque<(PortId, Vec<u8>)>,
    leases: Vec<LeaseId>,
    counters: PortCounters,
    ports: usize,
}

impl StubMember {
    pub(crate) fn new(node: u16, ports: usize, log: &Log) -> Self {
        Self {
            node: NodeId(node),
            log: Arc::clone(log),
            echoes: false,
            script: VecDeque::new(),
            ready: VecDeque::new(),
            leases: Vec::new(),
            counters: PortCounters::default(),
            ports,
        }
    }
}

impl Member for StubMember {
    fn handle_frame(&mut self, now: Instant, port: PortId, lease: LeaseId, bytes: &[u8]) {
        self.log.lock().unwrap().push((now.0, self.node, port, bytes.to_vec()));
        self.leases.push(lease);
        if self.echoes {
            self.ready.push_back((port, bytes.to_vec()));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while self.script.front().is_some_and(|(at, ..)| *at <= now.0) {
            self.ready.extend(self.script.pop_front().map(|(_, port, bytes)| (port, bytes)));
        }
    }

    fn poll_timeout(&self) -> Instant {
        self.script.front().map_or(Instant::NEVER, |(at, ..)| Instant(*at))
    }

    /// Replaces the frame's first byte by the number of frames that were ready at this moment: the frames that a packing
    /// sender would have found queued when the link granted.
    fn poll_transmit(&mut self, _now: Instant, port: PortId, out: &mut [u8]) -> Option<Transmit> {
        let ready = self.ready.len() as u8;
        let index = self.ready.iter().position(|(wanted, _)| *wanted == port)?;
        let (_, bytes) = self.ready.remove(index)?;
        out[..bytes.len()].copy_from_slice(&bytes);
        out[0] = ready;
        Some(Transmit {
            length: bytes.len(),
            body: Body::Written,
            end_to_end_check: false,
            doorbell: true,
            passage: Passage::Plain,
        })
    }

    fn poll_release(&mut self) -> Option<LeaseId> {
        self.leases.pop()
    }

    fn port_count(&self) -> usize {
        self.ports
    }

    fn handle_memory_done(&mut self, _now: Instant, _token: MemoryToken, _done: MemoryDone<'_>) {}
    fn handle_command(&mut self, _now: Instant, _command: Command<'_>) -> Result<(), CommandRefused> {
        Err(CommandRefused::Busy)
    }
    fn handle_carrier(&mut self, _now: Instant, _port: PortId, _up: bool) {}

    fn handle_new_cable(&mut self, _now: Instant, _port: PortId) {}
    fn poll_memory(&mut self) -> Option<MemoryRequest<'_>> {
        None
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

impl PollSteps for StubMember {
    fn wants_transmit(&self, _now: Instant, port: PortId) -> bool {
        self.ready.iter().any(|(wanted, _)| *wanted == port)
    }
}

impl Shortcuts for StubMember {}

impl FrameCompletion for StubMember {}

impl TimeoutExtensions for StubMember {}

impl Inspect for StubMember {
    fn port_counters(&self, _port: PortId) -> &PortCounters {
        &self.counters
    }
}
