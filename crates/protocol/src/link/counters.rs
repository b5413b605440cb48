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
