//! A forwarder: star hub, ring hop, mesh relay.

use crate::config::MemberConfig;
use crate::error::CommandRefused;
use crate::event::Event;
use crate::ids::PortId;
use crate::link::counters::PortCounters;
use crate::memory::{LeaseId, MemoryDone, MemoryRequest, MemoryToken};
use crate::operation::Command;
use crate::surroundings::{Member, Transmit};
use crate::time::Instant;

/// A forwarder: star hub, ring hop, mesh relay.
#[derive(Debug)]
pub struct Switch {
    config: MemberConfig,
    counters: PortCounters,
}

impl Switch {
    /// A member at the beginning of its life.
    #[must_use]
    pub fn new(config: MemberConfig) -> Self {
        Self { config, counters: PortCounters::default() }
    }
}

impl Member for Switch {
    fn handle_frame(&mut self, _now: Instant, _port: PortId, _lease: LeaseId, _bytes: &[u8]) {}
    fn handle_memory_done(&mut self, _now: Instant, _token: MemoryToken, _done: MemoryDone<'_>) {}
    fn handle_command(&mut self, _now: Instant, _command: Command<'_>) -> Result<(), CommandRefused> {
        Err(CommandRefused::Busy)
    }
    fn handle_carrier(&mut self, _now: Instant, _port: PortId, _up: bool) {}
    fn handle_timeout(&mut self, _now: Instant) {}
    fn poll_memory(&mut self) -> Option<MemoryRequest<'_>> {
        None
    }
    fn wants_transmit(&self, _now: Instant, _port: PortId) -> bool {
        false
    }
    fn poll_transmit(&mut self, _now: Instant, _port: PortId, _out: &mut [u8]) -> Option<Transmit> {
        None
    }
    fn poll_release(&mut self) -> Option<LeaseId> {
        None
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
    fn poll_timeout(&self) -> Instant {
        Instant::NEVER
    }
    fn port_count(&self) -> usize {
        self.config.ports.len()
    }
    fn port_counters(&self, _port: PortId) -> &PortCounters {
        &self.counters
    }
}
