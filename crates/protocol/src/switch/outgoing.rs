//! Data frames of a member's own that leave one behind the other: their places on the link, from counters at hand.
//!
//! Every frame that leaves asks its link whether it may, takes a number and some credits, and is counted. While a member sends
//! nothing but its own through one port, none of the answers depends on anything but what it sends itself: so they are
//! asked for once, the counters go along in an [`Outgoing`], and are put back when the last of these frames has left.
//!
//! Only for links whose headers are known in advance ([`Forwarder::trust`]): one channel, no retry. In between nobody else may
//! send through that port.

use super::forwarder::Forwarder;
use crate::config::CreditConfig;
use crate::ids::{Channel, PortId};
use crate::wire::familiar::LinkNumbers;

/// Frames that have left since these counters were taken, and what the next one would say.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    credits: CreditConfig,
    /// Credits that the next frames may cost, the bubble not counted.
    available: u32,
    /// Of the frame that left last.
    numbers: LinkNumbers,
    frames: u32,
    cost: u32,
    bytes: u64,
}

impl Outgoing {
    /// Number and count a frame of this length, if there are credits for it.
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

    /// Whether there are credits for a frame of this length.
    #[inline]
    #[must_use]
    pub const fn admits(&self, length: usize) -> bool {
        self.available >= self.credits.cost(length)
    }

    /// Whether any frame has left.
    #[inline]
    #[must_use]
    pub const fn has_sent(&self) -> bool {
        self.frames > 0
    }
}

impl Forwarder {
    /// The counters of a port, for frames of this member's own. `None` if none may leave now: the link is down, or something in
    /// transit goes first.
    #[inline]
    #[must_use]
    pub fn begin_outgoing(&self, port: PortId) -> Option<Outgoing> {
        let channel = Channel(0);
        let (link, egress) = (&self.links[port.index()], &self.egress[port.index()]);
        let has_turn = egress.data.of(channel).is_empty() || self.config.forwarding.own_first;
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

    /// Put the counters back.
    #[inline]
    pub fn end_outgoing(&mut self, port: PortId, outgoing: &Outgoing) {
        if !outgoing.has_sent() {
            return;
        }
        self.links[port.index()].note_numbered(Channel(0), outgoing.frames, outgoing.cost);
        let counters = &mut self.counters[port.index()];
        counters.frames_sent += u64::from(outgoing.frames);
        counters.bytes_sent += outgoing.bytes;
        counters.data_frames_sent += u64::from(outgoing.frames);
        counters.data_bytes_sent += outgoing.bytes;
    }
}
