//! Consecutive own data frames of a member: their link numbers, from counters held locally.
//!
//! Usually every frame that leaves checks its link, takes a number and credits, and is counted. While a member sends
//! only its own frames through one port, these results depend on nothing else. So they are read once into an
//! [`Outgoing`], which is written back when the last of these frames has left.
//!
//! Only links with predictable headers ([`Forwarder::trust`]) allow this: one channel, no retry. Nothing else may be
//! sent through that port in between.

use super::forwarder::Forwarder;
use crate::config::{CreditConfig, ForwardingPriority};
use crate::ids::{Channel, PortId};
use crate::wire::header_prediction::LinkNumbers;

/// Local counters of frames that leave, and the numbers of the next one.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    credits: CreditConfig,
    /// Credits that further frames may cost, without the bubble.
    available: u32,
    /// Numbers of the last frame that left.
    numbers: LinkNumbers,
    frames: u32,
    cost: u32,
    bytes: u64,
}

impl Outgoing {
    /// Numbers and counts a frame of this length. Returns `None` without credits for it.
    #[inline(always)]
    pub fn number(&mut self, length: usize) -> Option<LinkNumbers> {
        let cost = self.credits.cost(length);
        self.available = self.available.checked_sub(cost)?;
        self.cost = self.cost.wrapping_add(cost);
        self.frames += 1;
        self.bytes += length as u64;
        self.numbers.sequence = self.numbers.sequence.wrapping_add(1);
        self.numbers.consumed = self.numbers.consumed.wrapping_add(cost);
        Some(self.numbers)
    }

    /// Returns true if there are credits for a frame of this length.
    #[inline]
    #[must_use]
    pub const fn admits(&self, length: usize) -> bool {
        self.available >= self.credits.cost(length)
    }

    /// Returns true if any frame has left.
    #[inline]
    #[must_use]
    pub const fn has_sent(&self) -> bool {
        self.frames > 0
    }
}

impl Forwarder {
    /// Reads the counters of a port for own frames. Returns `None` if none may leave now: the link is down, or
    /// transit goes first.
    #[inline]
    #[must_use]
    pub fn begin_outgoing(&self, port: PortId) -> Option<Outgoing> {
        let channel = Channel(0);
        let (link, egress) = (&self.links[port.index()], &self.egress[port.index()]);
        let has_turn =
            egress.data.of(channel).is_empty() || self.config.forwarding.priority == ForwardingPriority::Own;
        if !has_turn || !link.carries() {
            return None;
        }
        let credits = link.credits(channel);
        Some(Outgoing {
            credits: credits.config(),
            available: credits.available().saturating_sub(egress.bubble),
            numbers: link.numbers(channel),
            frames: 0,
            cost: 0,
            bytes: 0,
        })
    }

    /// Writes the counters back.
    #[inline]
    pub fn end_outgoing(&mut self, port: PortId, outgoing: &Outgoing) {
        if !outgoing.has_sent() {
            return;
        }
        let left = self.links[port.index()].numbers(Channel(0)).sequence.wrapping_add(outgoing.frames);
        assert!(left == outgoing.numbers.sequence, "another frame took a number during a run");
        self.links[port.index()].note_numbered(Channel(0), outgoing.frames, outgoing.cost);
        let counters = &mut self.counters[port.index()];
        counters.frames_sent += u64::from(outgoing.frames);
        counters.bytes_sent += outgoing.bytes;
        counters.data_frames_sent += u64::from(outgoing.frames);
        counters.data_bytes_sent += outgoing.bytes;
    }
}
