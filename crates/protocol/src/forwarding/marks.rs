//! Congestion marks (like explicit congestion notification): a data frame that joins a long queue is marked.
//!
//! This file counts the bytes queued for each channel of each port and compares them with a limit. The mark travels
//! in the frame's link header. Its receiver reports it in the next acknowledgement (`transport::receiver`), and the
//! sender counts that. With congestion control it also reduces its window (`transport::congestion`).

use alloc::vec::Vec;

use crate::config::{MemberConfig, PortConfig};
use crate::ids::{Channel, PortId};
use crate::per_channel::PerChannel;

/// Bytes in each queue, and the limit.
#[derive(Debug)]
pub(super) struct Marks {
    limit_bytes: u64,
    waiting_bytes: Vec<PerChannel<u64>>,
}

impl Marks {
    /// Returns empty queues, or `None` if frames are never marked.
    pub(super) fn new(config: &MemberConfig) -> Option<Self> {
        let limit_bytes = config.forwarding.mark_above_bytes?.into();
        let nothing = |port: &PortConfig| PerChannel::new(port.channel_count(config.channels.count()), |_| 0);
        Some(Self { limit_bytes, waiting_bytes: config.ports.iter().map(nothing).collect() })
    }

    // W-74
    /// Adds a data frame to a queue. Returns true if it must be marked: more bytes than the limit were queued before
    /// it.
    pub(super) fn join(&mut self, port: PortId, channel: Channel, bytes: usize) -> bool {
        let waiting = self.waiting_bytes[port.index()].of_mut(channel);
        let is_too_much = *waiting > self.limit_bytes;
        *waiting += bytes as u64;
        is_too_much
    }

    pub(super) fn leave(&mut self, port: PortId, channel: Channel, bytes: usize) {
        let waiting = self.waiting_bytes[port.index()].of_mut(channel);
        assert!(*waiting >= bytes as u64, "more bytes leave a queue than have joined it");
        *waiting -= bytes as u64;
    }

    /// Removes all frames of a port, which will be routed again.
    pub(super) fn leave_all(&mut self, port: PortId) {
        self.waiting_bytes[port.index()].iter_mut().for_each(|waiting| *waiting = 0);
    }
}
