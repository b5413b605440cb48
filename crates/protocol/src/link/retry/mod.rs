//! Link-level retry (UEC-LLR-like): a frame that one hop loses is replayed over that hop, below the transport.
//!
//! [`sender`] numbers routed frames and keeps copies ([`buffer`]) until the [`receiver`] at the other end has
//! acknowledged them. [`timer`] determines when the sender stops waiting. [`state`] is the table of the sender's
//! states, [`receiver_state`] that of the receiver's. Data and transport acknowledgements are protected alike. Neither waits
//! for anything but the neighbour's link acknowledgements, which are small unnumbered frames and always have space, so
//! retry adds no wait that could close a cycle. Control frames repeat themselves and are not numbered.
//!
//! Retry contains no routes, streams or credits. The transport retransmits what it gives up.

pub mod buffer;
pub mod receiver;
pub mod receiver_state;
pub mod sender;
pub mod state;
pub mod timer;

use crate::config::RetryConfig;
use crate::time::Instant;
use receiver::Receiver;
use sender::Sender;

/// Both ends, sending and receiving, of one link.
#[derive(Debug)]
pub struct Retry {
    config: RetryConfig,
    /// Sending end.
    pub sender: Sender,
    /// Receiving end.
    pub receiver: Receiver,
}

impl Retry {
    /// Returns the state of a link that has not carried data yet. `init_interval_ns` is the time between attempts to
    /// agree on sequence numbers.
    #[must_use]
    pub fn new(config: RetryConfig, init_interval_ns: u64, frame_bytes_max: usize) -> Self {
        let sender = Sender::new(config, init_interval_ns, frame_bytes_max);
        Self { config, sender, receiver: Receiver::new(&config) }
    }

    /// Resets the receiving end for a new incarnation of the neighbour.
    pub const fn begin_session(&mut self) {
        self.receiver = Receiver::new(&self.config);
    }

    /// Gives up all unacknowledged frames, because the link no longer carries data. Returns their number.
    pub fn stop(&mut self) -> usize {
        self.receiver.cancel_acks();
        self.sender.stop()
    }

    /// Returns true if a frame of retry itself or a replay must leave.
    #[must_use]
    pub fn wants_transmit(&self, now: Instant) -> bool {
        self.sender.wants_replay() || self.sender.init_is_due(now) || self.receiver.must_send(now)
    }

    /// Returns the time at which retry must be polled next.
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

    // Preset of the public descriptions: three loops and 500 ns, within 1 us to 15.5 us.
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
