//! A seat that is told to go, and leaves in order: its peers hear a departure and not a death.
//!
//! Only who took a seat by hand is told so, by Ctrl-C or SIGTERM: it ends what it has begun, as far as that ends soon, sends a departure
//! until its neighbours have heard it, and goes. A seat of `rackloom run` or `up` goes with its rack, and needs none of this.

use std::sync::Arc;

use rackloom_protocol::{Departure, Endpoint, Instant};

use crate::machine::interruption::Interruption;

/// What was begun may take so long to end.
const PATIENCE_NS: u64 = 2_000_000_000;
/// How often it looks in that time.
const LOOKS_PER_INTERVAL: u64 = 4;

/// Whether the seat is to go, and how far it is with that.
#[derive(Debug, Default)]
pub(super) struct Leave {
    /// Who says so, if anybody may.
    asked: Option<Arc<Interruption>>,
    /// Until when it waits for what was begun, once it was asked to go.
    begun_by: Option<Instant>,
    departure: Departure,
}

/// What the seat does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nobody asks it to go.
    Stay,
    /// It begins to go: no more turns for its job.
    Dismiss,
    /// Not yet; look again at this time.
    Wait(Instant),
    /// Everybody has heard, or patience has ended.
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
