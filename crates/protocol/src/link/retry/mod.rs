//! Link-level retry (UEC-LLR-like): a frame that one hop loses is sent again over that hop, before anybody else notices.
//!
//! [`sender`] numbers routed frames and keeps copies ([`buffer`]) until [`receiver`] at the other end has acknowledged them;
//! [`timer`] says when the sender stops waiting; [`state`] is the table of the sender's states, [`hearing`] of the receiver's. Data and acknowledgements of the transport are protected alike: neither
//! waits for anything but the neighbour's link acknowledgements, which are small unnumbered frames and always find room,
//! so retry adds no wait that could close a circle. Control frames repeat themselves and are not numbered.
//!
//! It does not know routes, streams or credits; what it gives up, the transport sends again.

pub mod buffer;
pub mod hearing;
pub mod receiver;
pub mod sender;
pub mod state;
pub mod timer;

use crate::config::RetryConfig;
use crate::time::Instant;
use receiver::Receiver;
use sender::Sender;

/// Both directions' ends of one link.
#[derive(Debug)]
pub struct Retry {
    config: RetryConfig,
    /// What this end sends.
    pub sender: Sender,
    /// What this end receives.
    pub receiver: Receiver,
}

impl Retry {
    /// A link that has not carried data yet. `init_interval_ns`: between attempts to agree on numbers.
    #[must_use]
    pub fn new(config: RetryConfig, init_interval_ns: u64, frame_bytes_max: usize) -> Self {
        let sender = Sender::new(config, init_interval_ns, frame_bytes_max);
        Self { config, sender, receiver: Receiver::new(&config) }
    }

    /// The neighbour has begun a new life: what it said of its numbers was of the old one.
    pub const fn meet(&mut self) {
        self.receiver = Receiver::new(&self.config);
    }

    /// The link no longer carries data. How many unacknowledged frames are given up with it.
    pub fn stop(&mut self) -> usize {
        self.receiver.fall_silent();
        self.sender.stop()
    }

    /// Whether a frame of retry's own, or a repeated one, must leave.
    #[must_use]
    pub fn wants_transmit(&self, now: Instant) -> bool {
        self.sender.wants_replay() || self.sender.init_is_due(now) || self.receiver.wants_to_speak(now)
    }

    /// When it must be asked next.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.sender.deadline().min(self.receiver.deadline())
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{FlushPolicy, RetryConfig};

    pub(super) const CONFIG: RetryConfig = RetryConfig {
        sequence_bits: 20,
        outstanding_frames: 10,
        outstanding_bytes: 2_000,
        ack_spacing_bytes: 2_048,
        ack_delay_ns: 200,
        replay_timer_ns: 1_000,
        replay_timer_max_ns: 1_000,
        replay_count_max: 3,
        flush: FlushPolicy::Block,
    };

    // The preset of the public descriptions: three loops and 500 ns, not below 1 us and not above 15.5 us.
    #[test]
    fn the_timer_follows_the_loop_within_its_bounds() {
        let timers = [0, 166, 167, 1_000, 5_000, 5_001, u64::MAX].map(RetryConfig::timer_for_loop_ns);
        assert_eq!(timers, [1_000, 1_000, 1_001, 3_500, 15_500, 15_500, 15_500]);
    }

    #[test]
    fn half_of_the_numbers_may_be_outstanding() {
        assert_eq!(RetryConfig::outstanding_frames_limit(20), 524_288);
        assert_eq!(RetryConfig::outstanding_frames_limit(1), 1);
        assert_eq!(RetryConfig::outstanding_frames_limit(32), 1 << 31);
    }
}
