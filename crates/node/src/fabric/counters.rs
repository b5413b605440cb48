//! Counters of a node, for tests and measurements.

use rackloom_protocol::{Inspect, Member, PortId};

use crate::fabric::engine::core::Core;

/// Counters of a node since its start. They only grow, until the node leaves: its ports, with their frames, are then dropped.
///
/// Counters of frames and bytes are sums over all ports. Bytes are those of whole Ethernet frames, headers included, without preamble
/// and gap. Data frames carry operations, or are forwarded for others by this node. All other frames only acknowledge, grant credit or keep
/// links alive.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeCounters {
    /// Polls of the node by threads of the application, while they waited, polled or submitted.
    pub polls_by_callers: u64,
    /// Polls by the background thread.
    pub polls_by_background: u64,
    /// Operations of this node that have ended. Excludes operations that were refused at once and posted stores without a flush.
    pub operations_ended: u64,
    /// Operations on memory of other nodes of this server, mapped or copied, which need no frame.
    pub direct_operations: u64,
    /// Bytes that those operations moved.
    pub direct_bytes: u64,
    /// Direct puts and gets that the system copied from or to memory that the program of another process owns.
    pub copied_operations: u64,
    /// Bytes that those operations moved.
    pub copied_bytes: u64,
    /// Frames sent, of all kinds.
    pub frames_sent: u64,
    /// Bytes of the frames sent.
    pub bytes_sent: u64,
    /// Data frames sent, including forwarded and retransmitted ones.
    pub data_frames_sent: u64,
    /// Bytes of the data frames sent.
    pub data_bytes_sent: u64,
    /// Data frames of this node that were retransmitted end to end, because an acknowledgement was missing.
    pub packets_retransmitted: u64,
    /// Frames that a link replayed to its neighbour. Zero where links have no retry.
    pub frames_replayed: u64,
    /// Frames forwarded for other members.
    pub frames_forwarded: u64,
    /// Frames received, of all kinds.
    pub frames_received: u64,
    /// Bytes of the frames received.
    pub bytes_received: u64,
    /// Frames received and dropped: damaged, duplicate, or for another member.
    pub frames_dropped: u64,
    /// Frames of neighbours that did not arrive.
    pub frames_missing: u64,
    /// Number of times that sending stopped because a neighbour had no free space.
    pub credit_stalls: u64,
}

impl Core {
    pub(super) fn counters(&self) -> NodeCounters {
        let direct = self.local.as_ref().map(|local| local.counts()).unwrap_or_default();
        let mut counters = NodeCounters {
            polls_by_callers: self.polls - self.background_polls,
            polls_by_background: self.background_polls,
            operations_ended: self.table.ended_count,
            direct_operations: direct.operations,
            direct_bytes: direct.bytes,
            copied_operations: direct.copies,
            copied_bytes: direct.copied_bytes,
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
