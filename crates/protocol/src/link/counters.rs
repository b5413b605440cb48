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
    /// Times that sending stopped for lack of credits, or because the neighbour had asked for a pause.
    pub credit_stalls: u64,
    /// Of the frames sent: credit frames.
    pub credit_updates: u64,
    /// Credit counters of the neighbour that no honest one can have (W-20); they were ignored, or taken as far as they can be true.
    pub credit_violations: u64,
    /// Received frames not used, by [`DropReason`] index.
    pub dropped: [u64; DropReason::ALL.len()],
    /// What link-level retry did, where it is on.
    pub retry: RetryCounters,
    /// What pauses did, where they are on.
    pub pause: PauseCounters,
    /// Marks of congestion, where queues have a limit for them.
    pub marks: MarkCounters,
}

/// Marks of congestion at one port. "Rx" is what came in for this member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkCounters {
    /// Data frames that were marked here because more than the limit waited to leave through this port.
    pub marked: u64,
    /// Data frames for this member that came marked.
    pub rx_marked: u64,
    /// Acknowledgements for this member which say that packets of its own arrived marked.
    pub rx_echo: u64,
}

impl MarkCounters {
    /// Every counter by name, in the order of reports.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, u64); 3] {
        [("marked", self.marked), ("rx_marked", self.rx_marked), ("rx_echo", self.rx_echo)]
    }
}

/// What pauses did at one port. "Tx" counts words of this end, which pause the neighbour; "rx" words of the neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseCounters {
    /// Pauses asked for, repeated ones included.
    pub tx_pause: u64,
    /// Times that the neighbour was told to go on.
    pub tx_resume: u64,
    /// Pauses heard.
    pub rx_pause: u64,
    /// Times that this end was told to go on.
    pub rx_resume: u64,
    /// How long data could not leave, of all channels together.
    pub paused_ns: u64,
    /// Times that the watchdog stopped heeding pauses.
    pub watchdog: u64,
    /// Most bytes of one channel that were held here.
    pub held_bytes_max: u64,
}

impl PauseCounters {
    /// Every counter by name, in the order of reports.
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
