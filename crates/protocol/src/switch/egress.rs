//! What waits to leave through one port: frames passed on for others, and which of them may go.
//!
//! Frames in transit go before frames of this member's own, and a member's own frames need a *bubble*: credits for two
//! of the largest frames, so that transit always finds room. On a ring that suffices against a circular wait
//! (bubble flow control, Puente et al. 1999); virtual channels will do the same for every graph.

use alloc::collections::VecDeque;

use crate::ids::{NodeId, PortId};
use crate::memory::LeaseId;

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
}

/// One port's queues.
#[derive(Debug, Default)]
pub struct Egress {
    /// Acknowledgements in transit: no credits.
    pub acks: VecDeque<Transit>,
    /// Data in transit: bounded by the credits given at the ingress links.
    pub data: VecDeque<Transit>,
    /// Credits that the largest frame costs on this link.
    pub largest: u32,
    /// Credits that must stay free behind a frame of the member's own: those of a largest frame, or none.
    pub bubble: u32,
}
