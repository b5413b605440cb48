//! Switch: a member that forwards frames, without memory or operations. It is a star hub, ring hop or mesh relay.

mod deadlines;

use alloc::vec::Vec;

use crate::config::MemberConfig;
use crate::contract::{FrameCompletion, Member, PollSteps, Shortcuts, TimeoutExtensions};
use crate::error::{CommandRefused, InvalidCommand};
use crate::event::{DropReason, Event};
use crate::forwarding::forwarder::Forwarder;
use crate::forwarding::waits::Wait;
use crate::ids::PortId;
use crate::inspect::Inspect;
use crate::link::Link;
use crate::link::counters::PortCounters;
use crate::memory::{LeaseId, MemoryDone, MemoryRequest, MemoryToken};
use crate::operation::Command;
use crate::time::Instant;
use crate::transmit::Transmit;
use deadlines::Deadlines;

/// State machine of a switch.
#[derive(Debug)]
pub struct Switch {
    forwarder: Forwarder,
    deadlines: Deadlines,
}

impl Switch {
    /// Returns a switch at the beginning of its incarnation.
    #[must_use]
    pub fn new(config: MemberConfig) -> Self {
        let deadlines = Deadlines::new(config.ports.len());
        Self { forwarder: Forwarder::new(config), deadlines }
    }

    /// Records that a port's link was touched: it may have something to send, and another deadline.
    fn touch(&mut self, port: PortId) {
        self.forwarder.ready.insert(port);
        self.deadlines.set(port, self.forwarder.link(port).deadline());
    }

    fn touch_all(&mut self) {
        (0..self.forwarder.port_count()).for_each(|port| self.touch(PortId(port as u16)));
    }
}

impl Member for Switch {
    fn handle_frame(&mut self, now: Instant, port: PortId, lease: LeaseId, bytes: &[u8]) {
        if self.forwarder.handle_frame(now, port, lease, bytes).is_some() {
            // A switch is no destination.
            self.forwarder.drop_frame(port, DropReason::NoRoute);
            self.forwarder.release(lease);
        }
        self.touch(port);
    }

    fn handle_memory_done(&mut self, _now: Instant, _token: MemoryToken, _done: MemoryDone<'_>) {}

    fn handle_command(&mut self, _now: Instant, _command: Command<'_>) -> Result<(), CommandRefused> {
        Err(CommandRefused::Invalid(InvalidCommand::SwitchCommand))
    }

    fn handle_carrier(&mut self, now: Instant, port: PortId, up: bool) {
        self.forwarder.handle_carrier(now, port, up);
        self.touch(port);
    }

    fn handle_new_cable(&mut self, now: Instant, port: PortId) {
        self.forwarder.handle_new_cable(now, port);
        self.touch(port);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.forwarder.handle_timeout(now);
        self.touch_all();
    }

    fn poll_memory(&mut self) -> Option<MemoryRequest<'_>> {
        None
    }

    fn poll_transmit(&mut self, now: Instant, port: PortId, out: &mut [u8]) -> Option<Transmit> {
        let forwarder = &mut self.forwarder;
        let transmit = forwarder.transmit_control(now, port, out).or_else(|| {
            forwarder
                .channel_order(port)
                .find_map(|channel| forwarder.transmit_transit(now, port, channel, out))
        });
        let transmit = transmit.or_else(|| forwarder.transmit_link_ack(now, port, out));
        self.touch(port);
        transmit
    }

    fn poll_release(&mut self) -> Option<LeaseId> {
        self.forwarder.poll_release()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.forwarder.poll_event()
    }

    fn poll_timeout(&self) -> Instant {
        self.deadlines.soonest().min(self.forwarder.report_due())
    }

    fn port_count(&self) -> usize {
        self.forwarder.port_count()
    }
}

impl PollSteps for Switch {
    fn settle(&mut self, _now: Instant) {
        self.forwarder.settle();
    }

    /// Returns the next port that has something to send. Only ports that were touched since they were last idle are
    /// polled.
    fn next_port(&mut self, now: Instant, from: PortId) -> Option<PortId> {
        let mut from = from;
        loop {
            let next = self.forwarder.ready.next(from);
            let skipped = from.0..next.map_or(self.forwarder.port_count() as u16, |port| port.0);
            debug_assert!(
                skipped.map(PortId).all(|port| !self.forwarder.wants_transmit(now, port)),
                "a port with something to send was not noted"
            );
            let port = next?;
            if self.forwarder.wants_transmit(now, port) {
                return next;
            }
            self.forwarder.ready.remove(port);
            from = PortId(port.0 + 1);
        }
    }

    fn wants_transmit(&self, now: Instant, port: PortId) -> bool {
        self.forwarder.wants_transmit(now, port)
    }

    fn must_poll_again(&mut self) -> bool {
        self.forwarder.has_moved()
    }
}

impl Shortcuts for Switch {}

impl FrameCompletion for Switch {
    fn keep_sent(&mut self, now: Instant, port: PortId, frame: &mut [u8], is_kept: bool) {
        self.forwarder.keep_sent(now, port, frame, is_kept);
        // The replay timer of the link may have started.
        self.touch(port);
    }

    fn repeatable(&self, port: PortId) -> Option<usize> {
        self.forwarder.repeatable(port)
    }

    fn refresh_sent(&mut self, port: PortId, frame: &mut [u8]) {
        self.forwarder.refresh_sent(port, frame);
        self.touch(port);
    }
}

impl TimeoutExtensions for Switch {
    fn extend_timeout(&mut self, now: Instant, port: PortId, extension_ns: u64) {
        self.forwarder.extend_timeout(now, port, extension_ns);
    }
}

impl Inspect for Switch {
    fn port_counters(&self, port: PortId) -> &PortCounters {
        self.forwarder.counters(port)
    }

    fn queued_frames(&self, port: PortId) -> usize {
        self.forwarder.queued_frames(port)
    }

    fn waits(&self) -> Vec<Wait> {
        self.forwarder.waits()
    }

    fn link(&self, port: PortId) -> Option<&Link> {
        Some(self.forwarder.link(port))
    }
}
