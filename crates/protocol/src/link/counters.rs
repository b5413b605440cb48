//! What has passed through one port.

use crate::event::DropReason;

/// Counters of one port. "Sent" and "received" are seen from this member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames handed to the device, control frames included.
    pub frames_sent: u64,
    /// Bytes of those frames, Ethernet header included, without preamble and gap.
    pub bytes_sent: u64,
    /// Of the frames sent: those that carry operations (also when passed on for others).
    pub data_frames_sent: u64,
    /// Bytes of the data frames sent.
    pub data_bytes_sent: u64,
    /// Of the frames sent: packets that this endpoint sent again.
    pub retransmitted: u64,
    /// Of the frames sent: frames passed on for others.
    pub forwarded: u64,
    /// Frames taken from the device.
    pub frames_received: u64,
    /// Bytes of those frames.
    pub bytes_received: u64,
    /// Frames of the neighbour that never came (holes in the link sequence).
    pub missing: u64,
    /// Times that sending stopped for lack of credits.
    pub credit_stalls: u64,
    /// Received frames not used, by [`DropReason`] index.
    pub dropped: [u64; DropReason::ALL.len()],
    /// What link-level retry did, where it is on.
    pub retry: RetryCounters,
}

/// What link-level retry did at one port. The names are those of public descriptions of UEC link-level retry, where there
/// are any. "Tx" counts frames of this end, "rx" frames of the neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryCounters {
    /// Routed frames sent for the first time.
    pub tx_ok: u64,
    /// Frames sent again.
    pub tx_replay: u64,
    /// Frames thrown away while the link was flushed.
    pub tx_discard: u64,
    /// Unacknowledged frames given up by a flush or with the link.
    pub tx_flushed: u64,
    /// Acknowledgements sent as frames of their own.
    pub tx_ack: u64,
    /// Refusals sent.
    pub tx_nack: u64,
    /// Times that numbers were offered to the neighbour.
    pub tx_init: u64,
    /// Replays begun: a refusal heeded or a timer run out.
    pub replays: u64,
    /// Times that the replays were used up.
    pub flushes: u64,
    /// Times that a frame waited for room among the unacknowledged ones.
    pub window_stalls: u64,
    /// Routed frames taken in order.
    pub rx_ok: u64,
    /// Gaps: times that a frame came while one before it was missing.
    pub rx_missing_seq: u64,
    /// Frames that had been taken before.
    pub rx_duplicate_seq: u64,
    /// Acknowledgements received as frames of their own.
    pub rx_ack: u64,
    /// Refusals received.
    pub rx_nack: u64,
}

impl RetryCounters {
    /// Every counter by name, in the order of reports.
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
    /// Frames dropped for this reason.
    #[must_use]
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }
    /// Why a frame was not used, told by the counts before it came in; `None` if it was.
    #[must_use]
    pub fn dropped_since(&self, before: &[u64; DropReason::ALL.len()]) -> Option<DropReason> {
        let mut reasons = DropReason::ALL.into_iter();
        reasons.find(|reason| self.dropped[*reason as usize] != before[*reason as usize])
    }
}
