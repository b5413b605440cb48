//! Departure of a seat in order: peers receive a departure and detect no death.
//!
//! Only a process that took a seat by hand leaves on Ctrl-C or SIGTERM: it completes outstanding operations within a limit, sends a departure until its
//! neighbours have acknowledged it, and ends. A seat that the supervisor started ends with its rack.

use std::sync::Arc;

use rackloom_protocol::{Departure, Endpoint, Instant};

use crate::machine::interruption::Interruption;

/// Longest time for outstanding operations to complete.
const PATIENCE_NS: u64 = 2_000_000_000;
/// Time between two polls meanwhile.
const LOOKS_PER_INTERVAL: u64 = 4;

/// State of a seat's departure.
#[derive(Debug, Default)]
pub(super) struct Leave {
    /// Interruption that starts the departure, if there is one.
    asked: Option<Arc<Interruption>>,
    /// Until when it waits for what was begun, once it was asked to go.
    begun_by: Option<Instant>,
    departure: Departure,
}

/// Next step of the departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The seat does not leave.
    Stay,
    /// The departure begins: the job is not polled any more.
    Dismiss,
    /// Not yet; look again at this time.
    Wait(Instant),
    /// All neighbours have acknowledged, or the time is over.
    Go,
}

impl Leave {
    pub(super) fn when_asked(asked: Option<Arc<Interruption>>) -> Self {
        Self { asked, ..Self::default() }
    }

    // W-50
    /// One more step, if there is one. A forwarder has nothing to say: `None`.
    pub(super) fn advance(&mut self, now: Instant, endpoint: Option<&mut Endpoint>) -> Next {
        if !self.asked.as_ref().is_some_and(|asked| asked.is_asked()) {
            return Next::Stay;
        }
        let Some(endpoint) = endpoint else { return Next::Go };
        let Some(begun_by) = self.begun_by else {
            self.begun_by = Some(now + PATIENCE_NS);
            return Next::Dismiss;
        };
        if !self.departure.has_begun() && endpoint.operations_in_progress() > 0 && now < begun_by {
            let pause_ns = endpoint.config().timers.heartbeat_interval_ns / LOOKS_PER_INTERVAL;
            return Next::Wait(begun_by.min(now + pause_ns));
        }
        self.departure.advance(now, endpoint).map_or(Next::Go, Next::Wait)
    }
}
