//! State of a member for reports, tests and watchdogs.
//!
//! The engine needs none of it to run a member, so [`Member`] does not include it.

use alloc::vec::Vec;

use crate::contract::{FrameCompletion, Member, PollSteps, Shortcuts, TimeoutExtensions};
use crate::forwarding::waits::Wait;
use crate::ids::PortId;
use crate::link::Link;
use crate::link::counters::PortCounters;

/// Member whose links and counters can be read. It has all extensions, so that any engine can drive it.
pub trait Inspect: Member + PollSteps + Shortcuts + FrameCompletion + TimeoutExtensions {
    /// Returns the counters of a port.
    fn port_counters(&self, port: PortId) -> &PortCounters;
    /// Returns the number of frames in transit that wait to leave through a port.
    fn queued_frames(&self, port: PortId) -> usize {
        let _ = port;
        0
    }
    /// Returns every port at which frames in transit wait for credits, to search for a cycle of waits.
    fn waits(&self) -> Vec<Wait> {
        Vec::new()
    }
    /// Returns the link of a port, or `None` if the member has none.
    fn link(&self, port: PortId) -> Option<&Link> {
        let _ = port;
        None
    }
    /// Returns the number of packets that are granted to others and have not arrived, or `None` if the member grants none.
    fn granted_packets(&self) -> Option<u32> {
        None
    }
}
