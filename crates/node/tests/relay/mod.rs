//! A member without a protocol: it forwards each received frame to the next port. It logs the calls that it receives.

use std::collections::VecDeque;

use rackloom_protocol::link::counters::PortCounters;
use rackloom_protocol::transmit::{Body, Passage, Transmit};
use rackloom_protocol::{
    Command, CommandRefused, Event, FrameCompletion, Inspect, Instant, LeaseId, Member, MemoryDone,
    MemoryRequest, MemoryToken, PollSteps, PortId, Shortcuts, TimeoutExtensions,
};

/// A member that forwards every frame to the next port.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    ports: usize,
    queued: Vec<VecDeque<(LeaseId, usize)>>,
    returned: VecDeque<LeaseId>,
    counters: PortCounters,
    /// Calls received so far, if it keeps a log.
    pub(crate) log: Option<Vec<String>>,
    /// Time of the member's next timeout.
    pub(crate) timeout: Option<Instant>,
}

impl Relay {
    /// Creates a relay with this many ports.
    pub(crate) fn new(ports: usize) -> Self {
        Self { ports, queued: vec![VecDeque::new(); ports], ..Self::default() }
    }

    /// Writes a line of the log.
    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(line());
        }
    }
}

impl Member for Relay {
    fn handle_frame(&mut self, _now: Instant, port: PortId, lease: LeaseId, bytes: &[u8]) {
        self.note(|| format!("frame of {} at {port}", bytes.len()));
        self.queued[(port.index() + 1) % self.ports].push_back((lease, bytes.len()));
    }
    fn handle_memory_done(&mut self, _now: Instant, _token: MemoryToken, _done: MemoryDone<'_>) {}
    fn handle_command(&mut self, _now: Instant, _command: Command<'_>) -> Result<(), CommandRefused> {
        self.note(|| "command".to_owned());
        Ok(())
    }
    fn handle_carrier(&mut self, _now: Instant, port: PortId, up: bool) {
        self.note(|| format!("carrier of {port} {}", if up { "up" } else { "down" }));
    }
    fn handle_new_cable(&mut self, _now: Instant, port: PortId) {
        self.note(|| format!("new cable at {port}"));
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.timeout = None;
        self.note(|| format!("timeout at {}", now.0));
    }
    fn poll_memory(&mut self) -> Option<MemoryRequest<'_>> {
        None
    }
    fn poll_transmit(&mut self, _now: Instant, port: PortId, _out: &mut [u8]) -> Option<Transmit> {
        let (lease, length) = self.queued[port.index()].pop_front()?;
        self.returned.push_back(lease);
        self.note(|| format!("transmit of {length} at {port}"));
        let body = Body::Lease { lease, at: 0, length };
        Some(Transmit { length, body, end_to_end_check: false, doorbell: true, passage: Passage::Plain })
    }
    fn poll_release(&mut self) -> Option<LeaseId> {
        self.returned.pop_front()
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
    fn poll_timeout(&self) -> Instant {
        self.timeout.unwrap_or(Instant::NEVER)
    }
    fn port_count(&self) -> usize {
        self.ports
    }
}

impl PollSteps for Relay {
    fn wants_transmit(&self, _now: Instant, port: PortId) -> bool {
        !self.queued[port.index()].is_empty()
    }
}

impl Shortcuts for Relay {}

impl FrameCompletion for Relay {}

impl TimeoutExtensions for Relay {}

impl Inspect for Relay {
    fn port_counters(&self, _port: PortId) -> &PortCounters {
        &self.counters
    }
}
