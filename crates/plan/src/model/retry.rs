//! Link-level retry of a rack file.

use rackloom_protocol::{FlushPolicy, RetryConfig};

/// Link-level retry of a rack file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPlan {
    /// Width of the sequence numbers in bits. The window stays below half of their range.
    pub sequence_bits: u8,
    /// Largest number of unacknowledged frames.
    pub outstanding_frames: u32,
    /// Largest number of unacknowledged bytes.
    pub outstanding_bytes: u32,
    /// Number of received bytes after which an acknowledgement is sent at once.
    pub ack_spacing_bytes: u32,
    /// Longest delay of an acknowledgement, in nanoseconds. `None` is a quarter of the replay timer.
    pub ack_delay_ns: Option<u64>,
    /// Time without progress until a replay, in nanoseconds. `None` follows from the clock and the link.
    pub replay_timer_ns: Option<u64>,
    /// Largest number of consecutive replays without progress.
    pub replay_count_max: u8,
    /// Treatment of frames after the last replay.
    pub flush: FlushPolicy,
}

impl Default for RetryPlan {
    fn default() -> Self {
        Self {
            sequence_bits: 20,
            outstanding_frames: 1024,
            outstanding_bytes: 256 << 10,
            ack_spacing_bytes: 2048,
            ack_delay_ns: None,
            replay_timer_ns: None,
            replay_count_max: RetryConfig::REPLAYS_UNLIMITED,
            flush: FlushPolicy::Block,
        }
    }
}
