//! Departure of a member: its message is repeated until every neighbour has answered it, or a fixed number of times.
//!
//! Wires may lose it, and nobody acknowledges it: that a neighbour has heard is seen by its link, which ends. It does not wait for what
//! was begun before; who leaves in order sees to that first.

use super::Endpoint;
use crate::time::Instant;

/// It is said so often.
const SAID_MAX: u32 = 8;
/// And so often in a heartbeat's interval.
const SAID_PER_INTERVAL: u64 = 4;

/// How far a member is with its departure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Departure {
    said: u32,
    due: Instant,
}

impl Departure {
    // W-50
    /// Say it, if it is time. When to come again at the latest; `None` if it is over: everybody has heard, or it was said often enough.
    pub fn advance(&mut self, now: Instant, endpoint: &mut Endpoint) -> Option<Instant> {
        if self.said > 0 && (endpoint.is_parted() || self.said == SAID_MAX && now >= self.due) {
            return None;
        }
        if now >= self.due {
            endpoint.begin_departure(now);
            self.said += 1;
            self.due = now + endpoint.config().timers.heartbeat_interval_ns / SAID_PER_INTERVAL;
        }
        Some(self.due)
    }

    /// Whether it has been said at all.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.said > 0
    }
}
