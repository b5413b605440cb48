//! A forwarder: star hub, ring hop, mesh relay. It has links and routes, no memory and no operations.

mod departures;
pub mod egress;
pub mod forwarder;
mod neighbours;
mod retries;
pub mod waits;

use alloc::vec::Vec;

use crate::config::MemberConfig;
use crate::error::CommandRefused;
use crate::event::{DropReason, Event};
use crate::ids::PortId;
use crate::link::Link;
use crate::link::counters::PortCounters;
use crate::memory::{LeaseId, MemoryDone, MemoryRequest, MemoryToken};
use crate::operation::Command;
use crate::surroundings::{Member, Transmit};
use crate::time::Instant;
use forwarder::Forwarder;
use waits::Wait;

/// A forwarder without memory.
#[derive(Debug)]
pub struct Switch {
    forwarder: Forwarder,
}

impl Switch {
    /// A switch at the beginning of its life.
    #[must_use]
    pub fn new(config: MemberConfig) -> Self {
        Self { forwarder: Forwarder::new(config) }
    }
}

impl Member for Switch {
    fn handle_frame(&mut self, now: Instant, port: PortId, lease: LeaseId, bytes: &[u8]) {
        if self.forwarder.handle_frame(now, port, lease, bytes).is_some() {
            // Nobody lives here.
            self.forwarder.drop_frame(port, DropReason::NoRoute);
            self.forwarder.release(lease);
        }
    }

    fn handle_memory_done(&mut self, _now: Instant, _token: MemoryToken, _done: MemoryDone<'_>) {}

    fn handle_command(&mut self, _now: Instant, _command: Command<'_>) -> Result<(), CommandRefused> {
        Err(CommandRefused::Invalid("a switch takes no commands"))
    }

    fn handle_carrier(&mut self, now: Instant, port: PortId, up: bool) {
        self.forwarder.handle_carrier(now, port, up);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.forwarder.handle_timeout(now);
    }

    fn settle(&mut self, _now: Instant) {
        self.forwarder.settle();
    }

    fn poll_memory(&mut self) -> Option<MemoryRequest<'_>> {
        None
    }

    fn wants_transmit(&self, now: Instant, port: PortId) -> bool {
        self.forwarder.wants_transmit(now, port)
    }

    fn poll_transmit(&mut self, now: Instant, port: PortId, out: &mut [u8]) -> Option<Transmit> {
        self.forwarder
            .transmit_control(now, port, out)
            .or_else(|| self.forwarder.transmit_transit(now, port, out))
    }

    fn keep_sent(&mut self, now: Instant, port: PortId, frame: &mut [u8]) {
        self.forwarder.keep_sent(now, port, frame);
    }

    fn poll_release(&mut self) -> Option<LeaseId> {
        self.forwarder.poll_release()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.forwarder.poll_event()
    }

    fn poll_timeout(&self) -> Instant {
        self.forwarder.deadline()
    }

    fn port_count(&self) -> usize {
        self.forwarder.port_count()
    }

    fn port_counters(&self, port: PortId) -> &PortCounters {
        self.forwarder.counters(port)
    }

    fn waits(&self) -> Vec<Wait> {
        self.forwarder.waits()
    }

    fn link(&self, port: PortId) -> Option<&Link> {
        Some(self.forwarder.link(port))
    }
}
