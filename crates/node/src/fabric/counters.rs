//! What a node has done so far, for tests, measurements and the curious.

use rackloom_protocol::{Member, PortId};

use super::engine::Core;

/// Counts since the node began. They only grow, until the node leaves: its ports go with it, and their frames.
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
    /// Data frames sent, all ports together; what only acknowledges or keeps links alive does not count.
    pub data_frames_sent: u64,
}

impl Core {
    pub(super) fn counters(&self) -> NodeCounters {
        let member = self.member.as_deref().map(crate::runtime::Runtime::member);
        let frames = member.map_or(0, |member| {
            let ports = (0..member.port_count()).map(|port| PortId(port as u16));
            ports.map(|port| member.port_counters(port).data_frames_sent).sum()
        });
        NodeCounters {
            turns_of_callers: self.turns - self.background_turns,
            turns_of_background: self.background_turns,
            operations_ended: self.table.ended_count,
            data_frames_sent: frames,
        }
    }
}
