//! Departure of a seat in order: peers receive a departure and detect no death.
//!
//! Only a process that took a seat by hand leaves on SIGINT or SIGTERM. It completes outstanding operations
//! within a limit, sends a departure until its neighbours have acknowledged it, and ends. A seat that the
//! supervisor started ends with its rack.

use std::sync::Arc;

use rackloom_protocol::{Departure, Endpoint, Instant};

use crate::machine::interruption::Interruption;

/// Longest time for outstanding operations to complete.
const COMPLETION_TIMEOUT_NS: u64 = 2_000_000_000;
/// Number of polls per heartbeat interval meanwhile.
const POLLS_PER_HEARTBEAT: u64 = 4;

/// State of a seat's departure.
#[derive(Debug, Default)]
pub(super) struct Leave {
    /// Interruption that starts the departure, if there is one.
    interruption: Option<Arc<Interruption>>,
    /// Time until which outstanding operations may complete. Set when the departure begins.
    complete_by: Option<Instant>,
    departure: Departure,
}

/// Next step of the departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The seat does not leave.
    Stay,
    /// The departure begins: the job is not polled any more.
    EndJob,
    /// The departure continues. Call again at this time.
    Wait(Instant),
    /// All neighbours have acknowledged, or the time is over. The seat ends.
    End,
}

impl Leave {
    pub(super) fn when_interrupted(interruption: Option<Arc<Interruption>>) -> Self {
        Self { interruption, ..Self::default() }
    }

    // W-50
    /// Performs the next step. `endpoint` is `None` for a switch, which sends no departure.
    pub(super) fn advance(&mut self, now: Instant, endpoint: Option<&mut Endpoint>) -> Next {
        if !self.interruption.as_ref().is_some_and(|interruption| interruption.is_requested()) {
            return Next::Stay;
        }
        let Some(endpoint) = endpoint else { return Next::End };
        let Some(complete_by) = self.complete_by else {
            self.complete_by = Some(now + COMPLETION_TIMEOUT_NS);
            return Next::EndJob;
        };
        if !self.departure.has_begun() && endpoint.operations_in_progress() > 0 && now < complete_by {
            let pause_ns = endpoint.config().timers.heartbeat_interval_ns / POLLS_PER_HEARTBEAT;
            return Next::Wait(complete_by.min(now + pause_ns));
        }
        self.departure.advance(now, endpoint).map_or(Next::End, Next::Wait)
    }
}
