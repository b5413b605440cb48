//! Counters of one port.

use crate::event::DropReason;

/// Counters of one port. "Sent" and "received" are as seen from this member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames handed to the device, control frames included.
    pub frames_sent: u64,
    /// Bytes of those frames, Ethernet header included, without preamble and gap.
    pub bytes_sent: u64,
    /// Frames sent that carry operations, forwarded ones included.
    pub data_frames_sent: u64,
    /// Bytes of the data frames sent.
    pub data_bytes_sent: u64,
    /// Packets of this endpoint among the frames sent that are retransmissions.
    pub retransmitted: u64,
    /// Frames sent that were forwarded for other members.
    pub forwarded: u64,
    /// Frames taken from the device.
    pub frames_received: u64,
    /// Bytes of the frames received.
    pub bytes_received: u64,
    /// Frames of the neighbour that did not arrive (gaps in the link sequence).
    pub missing: u64,
    /// Times that sending stopped for lack of credits or because of a pause.
    pub credit_stalls: u64,
    /// Credit frames among the frames sent.
    pub credit_updates: u64,
    /// Credit counters of the neighbour that cannot be right (W-20). They were ignored, or limited to the possible
    /// range.
    pub credit_violations: u64,
    /// Received frames that were dropped, indexed by [`DropReason`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Counters of link-level retry; zero if it is off.
    pub retry: RetryCounters,
    /// Counters of pauses; zero if they are off.
    pub pause: PauseCounters,
    /// Counters of congestion marks; zero if queues have no mark limit.
    pub marks: MarkCounters,
}

/// Congestion marks at one port. "Rx" counts frames received for this member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkCounters {
    /// Data frames marked here because more than the limit was queued for this port.
    pub marked: u64,
    /// Data frames for this member that arrived marked.
    pub rx_marked: u64,
    /// Acknowledgements for this member which report that its packets arrived marked.
    pub rx_echo: u64,
}

impl MarkCounters {
    /// Returns all counters by name, in report order.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, u64); 3] {
        [("marked", self.marked), ("rx_marked", self.rx_marked), ("rx_echo", self.rx_echo)]
    }
}

/// Counters of pauses at one port. "Tx" counts messages that pause the neighbour, "rx" counts messages of the
/// neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseCounters {
    /// Pauses sent, repeated ones included.
    pub tx_pause: u64,
    /// Resumes sent.
    pub tx_resume: u64,
    /// Pauses received.
    pub rx_pause: u64,
    /// Resumes received.
    pub rx_resume: u64,
    /// Time in which data could not leave, summed over all channels, in nanoseconds.
    pub paused_ns: u64,
    /// Times that the watchdog began to ignore pauses.
    pub watchdog: u64,
    /// Largest number of bytes of one channel that were held here.
    pub held_bytes_max: u64,
}

impl PauseCounters {
    /// Returns all counters by name, in report order.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, u64); 7] {
        [
            ("tx_pause", self.tx_pause),
            ("tx_resume", self.tx_resume),
            ("rx_pause", self.rx_pause),
            ("rx_resume", self.rx_resume),
            ("paused_ns", self.paused_ns),
            ("watchdog", self.watchdog),
            ("held_bytes_max", self.held_bytes_max),
        ]
    }
}

/// Counters of link-level retry at one port. The names follow public descriptions of UEC link-level retry where these
/// exist. "Tx" counts frames of this end, "rx" frames of the neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryCounters {
    /// Routed frames sent for the first time.
    pub tx_ok: u64,
    /// Frames replayed.
    pub tx_replay: u64,
    /// Frames discarded while the link was flushed.
    pub tx_discard: u64,
    /// Unacknowledged frames given up by a flush or when the link went down.
    pub tx_flushed: u64,
    /// Acknowledgements sent as separate frames.
    pub tx_ack: u64,
    /// Negative acknowledgements sent.
    pub tx_nack: u64,
    /// Times that sequence numbers were offered to the neighbour.
    pub tx_init: u64,
    /// Replays begun, after a negative acknowledgement or a timeout.
    pub replays: u64,
    /// Times that the replay limit was reached.
    pub flushes: u64,
    /// Times that a frame waited for the window of unacknowledged frames.
    pub window_stalls: u64,
    /// Routed frames accepted in order.
    pub rx_ok: u64,
    /// Gaps: times that a frame arrived while an earlier one was missing.
    pub rx_missing_seq: u64,
    /// Frames that had been accepted before.
    pub rx_duplicate_seq: u64,
    /// Acknowledgements received as separate frames.
    pub rx_ack: u64,
    /// Negative acknowledgements received.
    pub rx_nack: u64,
}

impl RetryCounters {
    /// Returns all counters by name, in report order.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, u64); 15] {
        [
            ("tx_ok", self.tx_ok),
            ("tx_replay", self.tx_replay),
            ("tx_discard", self.tx_discard),
            ("tx_flushed", self.tx_flushed),
            ("tx_ack", self.tx_ack),
            ("tx_nack", self.tx_nack),
            ("tx_init", self.tx_init),
            ("replays", self.replays),
            ("flushes", self.flushes),
            ("window_stalls", self.window_stalls),
            ("rx_ok", self.rx_ok),
            ("rx_missing_seq", self.rx_missing_seq),
            ("rx_duplicate_seq", self.rx_duplicate_seq),
            ("rx_ack", self.rx_ack),
            ("rx_nack", self.rx_nack),
        ]
    }
}

impl PortCounters {
    /// Number of frames dropped for this reason.
    #[must_use]
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }
    /// Returns the reason for which the last frame was dropped, from the counts `before` it arrived, or `None` if it
    /// was used.
    #[must_use]
    pub fn dropped_since(&self, before: &[u64; DropReason::ALL.len()]) -> Option<DropReason> {
        let mut reasons = DropReason::ALL.into_iter();
        reasons.find(|reason| self.dropped[*reason as usize] != before[*reason as usize])
    }
}
