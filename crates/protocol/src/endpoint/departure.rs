//! Departure of a member: its message is repeated until all neighbours have answered, or a fixed number of times.
//!
//! Wires may lose the message, and no acknowledgement exists for it: a link that goes down shows that the neighbour
//! has received it. The departure does not wait for operations; the caller ends them first.

use crate::endpoint::Endpoint;
use crate::time::Instant;

/// Largest number of transmissions of the message.
const SENDS_MAX: u32 = 8;
/// Number of transmissions per heartbeat interval.
const SENDS_PER_INTERVAL: u64 = 4;

/// Progress of a departure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Departure {
    sent: u32,
    due: Instant,
}

impl Departure {
    // W-50
    /// Sends the departure if it is due. Returns the latest time of the next call, or `None` if all neighbours have
    /// received it or the limit of transmissions is reached.
    pub fn advance(&mut self, now: Instant, endpoint: &mut Endpoint) -> Option<Instant> {
        if self.sent > 0 && (endpoint.has_departed() || self.sent == SENDS_MAX && now >= self.due) {
            return None;
        }
        if now >= self.due {
            endpoint.begin_departure(now);
            self.sent += 1;
            self.due = now + endpoint.config().timers.heartbeat_interval_ns / SENDS_PER_INTERVAL;
        }
        Some(self.due)
    }

    /// Returns true if the departure was sent at least once.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.sent > 0
    }
}
