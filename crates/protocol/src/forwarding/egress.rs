//! Egress queues of one port: frames in transit, and the rule of which may leave.
//!
//! Frames in transit have priority over the member's own frames. Own frames need a *bubble*: credits for two of the
//! largest frames, so that transit always finds space. On a ring that is sufficient against a circular wait (bubble
//! flow control, Puente et al. 1999). Each virtual channel has a queue of its own, and the port's arbiter chooses
//! among them.

use alloc::collections::VecDeque;

use super::arbiter::Arbiter;
use crate::config::{MemberConfig, PortConfig};
use crate::ids::{Channel, NodeId, PortId};
use crate::memory::LeaseId;
use crate::per_channel::PerChannel;

/// Largest number of acknowledgements in transit that a port keeps. They are cumulative, so more may be dropped.
pub const TRANSIT_ACKS_MAX: usize = 256;

/// Received frame that waits to be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transit {
    /// Lease of the frame.
    pub lease: LeaseId,
    /// Length of the frame, in bytes.
    pub length: usize,
    /// Port on which the frame arrived.
    pub ingress: PortId,
    /// Channel of the ingress link on which the frame arrived.
    pub channel: Channel,
    /// Generation of the ingress link at arrival.
    pub generation: u32,
    /// Credits of the ingress link that the frame holds; zero for acknowledgements.
    pub held: u32,
    /// Destination member.
    pub destination: NodeId,
    /// Path entropy.
    pub entropy: u16,
    /// Number of hops left after this one.
    pub hop_limit: u8,
    /// True if the frame has the end-to-end check.
    pub has_end_to_end_check: bool,
    /// True for data, which needs credits; false for an acknowledgement.
    pub is_data: bool,
    /// True if the frame was marked, here or before.
    pub is_marked: bool,
}

/// Queues of one port.
#[derive(Debug)]
pub struct Egress {
    /// Acknowledgements in transit, which need no credits.
    pub acks: VecDeque<Transit>,
    /// Data in transit, by egress channel. Credits given at the ingress links bound it.
    pub data: PerChannel<VecDeque<Transit>>,
    /// Arbiter of the port's channels.
    pub arbiter: Arbiter,
    /// Credits that must stay free after an own frame leaves: those of a largest frame, or none.
    pub bubble: u32,
}

impl Egress {
    /// Returns empty queues.
    #[must_use]
    pub fn new(member: &MemberConfig, port: &PortConfig) -> Self {
        let count = port.channel_count(member.channels.count());
        let largest = port.credits.cost(usize::from(member.frame_bytes_max));
        Self {
            acks: VecDeque::new(),
            data: PerChannel::new(count, |_| VecDeque::new()),
            arbiter: Arbiter::new(&member.channels, count, member.frame_bytes_max),
            bubble: if member.forwarding.bubble { largest } else { 0 },
        }
    }

    /// Returns the number of queued frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.acks.len() + self.data.iter().map(VecDeque::len).sum::<usize>()
    }

    /// Returns whether no frame is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes and returns all queued frames.
    pub fn take_all(&mut self) -> impl Iterator<Item = Transit> + use<> {
        let acks = core::mem::take(&mut self.acks);
        let data: VecDeque<Transit> = self.data.iter_mut().flat_map(core::mem::take).collect();
        acks.into_iter().chain(data)
    }
}
