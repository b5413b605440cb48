//! A GPU node: forwarder, transports, operations, regions.

use alloc::string::String;
use alloc::vec::Vec;

use crate::config::MemberConfig;
use crate::error::CommandRefused;
use crate::event::Event;
use crate::ids::{NodeId, PortId, RegionId};
use crate::link::counters::PortCounters;
use crate::memory::{LeaseId, MemoryDone, MemoryRequest, MemoryToken, RegionConfig};
use crate::operation::Command;
use crate::surroundings::{Member, Transmit};
use crate::time::Instant;

/// A GPU node: forwarder, transports, operations, regions.
#[derive(Debug)]
pub struct Endpoint {
    config: MemberConfig,
    counters: PortCounters,
}

impl Endpoint {
    /// A member at the beginning of its life.
    #[must_use]
    pub fn new(config: MemberConfig) -> Self {
        Self { config, counters: PortCounters::default() }
    }

    /// Announce a region. Remote access is possible from now on.
    pub fn register(&mut self, region: RegionConfig) -> Result<(), CommandRefused> {
        let _ = region;
        Ok(())
    }

    /// Take a region back. No request that arrives after this call touches it.
    pub fn revoke(&mut self, region: RegionId) {
        let _ = region;
    }

    /// Whether the member can be reached now.
    #[must_use]
    pub fn is_reachable(&self, node: NodeId) -> bool {
        let _ = node;
        false
    }

    /// What the endpoint was told at birth.
    #[must_use]
    pub fn config(&self) -> &MemberConfig {
        &self.config
    }

    /// One line per thing that the endpoint waits for: operations, streams, credits. For the watchdog.
    #[must_use]
    pub fn waiting_for(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Member for Endpoint {
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
