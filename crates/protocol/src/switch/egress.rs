//! What waits to leave through one port: frames passed on for others, and which of them may go.
//!
//! Frames in transit go before frames of this member's own, and a member's own frames need a *bubble*: credits for two
//! of the largest frames, so that transit always finds room. On a ring that suffices against a circular wait
//! (bubble flow control, Puente et al. 1999). Each virtual channel has a queue of its own, and the port's arbiter says
//! whose turn it is.

use alloc::collections::VecDeque;

use super::arbiter::Arbiter;
use crate::config::{MemberConfig, PortConfig};
use crate::ids::{Channel, NodeId, PortId};
use crate::memory::LeaseId;
use crate::per_channel::PerChannel;

/// Acknowledgements in transit that a port keeps; they are cumulative, so more may be dropped.
pub const TRANSIT_ACKS_MAX: usize = 256;

/// A received frame that waits to be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transit {
    /// The frame.
    pub lease: LeaseId,
    /// Its length in bytes.
    pub length: usize,
    /// Where it came in.
    pub ingress: PortId,
    /// The channel of the ingress link on which it came.
    pub channel: Channel,
    /// The ingress link's generation then.
    pub generation: u32,
    /// Credits of the ingress link that it holds; zero for acknowledgements.
    pub held: u32,
    /// Where it goes.
    pub destination: NodeId,
    /// Path entropy.
    pub entropy: u16,
    /// Hops left after this one.
    pub hop_limit: u8,
    /// Whether it carries the end-to-end check.
    pub has_end_to_end_check: bool,
    /// Whether it is data (credits) or an acknowledgement.
    pub is_data: bool,
    /// Whether it has met congestion, here or before.
    pub is_marked: bool,
}

/// One port's queues.
#[derive(Debug)]
pub struct Egress {
    /// Acknowledgements in transit: no credits.
    pub acks: VecDeque<Transit>,
    /// Data in transit, by the channel on which it leaves: bounded by the credits given at the ingress links.
    pub data: PerChannel<VecDeque<Transit>>,
    /// Whose turn it is.
    pub arbiter: Arbiter,
    /// Credits that must stay free behind a frame of the member's own: those of a largest frame, or none.
    pub bubble: u32,
}

impl Egress {
    /// Nothing waits.
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

    /// Everything that waits, taken out.
    pub fn take_all(&mut self) -> impl Iterator<Item = Transit> + use<> {
        let acks = core::mem::take(&mut self.acks);
        let data: VecDeque<Transit> = self.data.iter_mut().flat_map(core::mem::take).collect();
        acks.into_iter().chain(data)
    }
}
