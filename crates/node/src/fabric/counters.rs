//! What a node has done so far, for tests, measurements and the curious.

use rackloom_protocol::{Member, PortId};

use super::core::Core;

/// Counts since the node began. They only grow, until the node leaves: its ports go with it, and their frames.
///
/// What is said of frames and bytes is the sum of all ports. Bytes are those of whole Ethernet frames, headers included, without preamble
/// and gap. Data frames carry operations, or pass for others through this node; all others only acknowledge, grant credit or keep
/// links alive.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeCounters {
    /// Turns of the node that threads of the application made, while they waited, polled or submitted.
    pub turns_of_callers: u64,
    /// Turns that the background thread made.
    pub turns_of_background: u64,
    /// Operations of this node that have ended, those that were refused at once and posted stores that are waited for not among them.
    pub operations_ended: u64,
    /// Frames sent, of all kinds.
    pub frames_sent: u64,
    /// Bytes of the frames sent.
    pub bytes_sent: u64,
    /// Data frames sent, those for others and those sent again among them.
    pub data_frames_sent: u64,
    /// Bytes of the data frames sent.
    pub data_bytes_sent: u64,
    /// Data frames of this node's own that were sent again end to end, because an acknowledgement was missing.
    pub packets_retransmitted: u64,
    /// Frames that a link sent again to its neighbour; zero where links have no retry.
    pub frames_replayed: u64,
    /// Frames passed on for others.
    pub frames_forwarded: u64,
    /// Frames received, of all kinds.
    pub frames_received: u64,
    /// Bytes of the frames received.
    pub bytes_received: u64,
    /// Frames received that were of no use: damaged, come twice, for somebody else.
    pub frames_dropped: u64,
    /// Frames of neighbours that never came.
    pub frames_missing: u64,
    /// Times that sending stopped because a neighbour had no room.
    pub credit_stalls: u64,
}

impl Core {
    pub(super) fn counters(&self) -> NodeCounters {
        let mut counters = NodeCounters {
            turns_of_callers: self.turns - self.background_turns,
            turns_of_background: self.background_turns,
            operations_ended: self.table.ended_count,
            ..NodeCounters::default()
        };
        let Some(member) = self.member.as_deref().map(crate::runtime::Runtime::member) else {
            return counters;
        };
        for port in (0..member.port_count()).map(|port| PortId(port as u16)) {
            let port = member.port_counters(port);
            counters.frames_sent += port.frames_sent;
            counters.bytes_sent += port.bytes_sent;
            counters.data_frames_sent += port.data_frames_sent;
            counters.data_bytes_sent += port.data_bytes_sent;
            counters.packets_retransmitted += port.retransmitted;
            counters.frames_replayed += port.retry.tx_replay;
            counters.frames_forwarded += port.forwarded;
            counters.frames_received += port.frames_received;
            counters.bytes_received += port.bytes_received;
            counters.frames_dropped += port.dropped.iter().sum::<u64>();
            counters.frames_missing += port.missing;
            counters.credit_stalls += port.credit_stalls;
        }
        counters
    }
}
