//! Marks of congestion (as explicit congestion notification has them): a data frame that joins a long queue carries the news on.
//!
//! Here is how much waits for each channel of each port, and whether that is too much. The mark travels in the frame's link header; its
//! receiver says in its next acknowledgement that one came (`transport::receiver`), and the sender counts that. Nobody sends more
//! slowly because of it: marks are for seeing where queues form.

use alloc::vec::Vec;

use super::forwarder::Forwarder;
use crate::config::{MemberConfig, PortConfig};
use crate::ids::{Channel, PortId};
use crate::link::counters::MarkCounters;
use crate::per_channel::PerChannel;

/// Bytes that wait in each queue, held against a limit.
#[derive(Debug)]
pub(super) struct Marks {
    limit_bytes: u64,
    waiting_bytes: Vec<PerChannel<u64>>,
}

impl Marks {
    /// Nothing waits; `None` where nothing is ever marked.
    pub(super) fn new(config: &MemberConfig) -> Option<Self> {
        let limit_bytes = config.forwarding.mark_above_bytes?.into();
        let nothing = |port: &PortConfig| PerChannel::new(port.channel_count(config.channels.count()), |_| 0);
        Some(Self { limit_bytes, waiting_bytes: config.ports.iter().map(nothing).collect() })
    }

    // W-74
    /// A data frame joins a queue. Whether it must be marked: more than the limit waits there before it.
    pub(super) fn join(&mut self, port: PortId, channel: Channel, bytes: usize) -> bool {
        let waiting = self.waiting_bytes[port.index()].of_mut(channel);
        let is_too_much = *waiting > self.limit_bytes;
        *waiting += bytes as u64;
        is_too_much
    }

    pub(super) fn leave(&mut self, port: PortId, channel: Channel, bytes: usize) {
        let waiting = self.waiting_bytes[port.index()].of_mut(channel);
        *waiting = waiting.saturating_sub(bytes as u64);
    }

    /// All that waited there looks for another way.
    pub(super) fn leave_all(&mut self, port: PortId) {
        self.waiting_bytes[port.index()].iter_mut().for_each(|waiting| *waiting = 0);
    }
}

impl Forwarder {
    /// Marks that a port has seen.
    pub(crate) fn count_marks(&mut self, port: PortId) -> &mut MarkCounters {
        &mut self.counters[port.index()].marks
    }
}
