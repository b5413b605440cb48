//! Tagged messages waiting to meet their receives.
//!
//! A short message travels with its data ("eager") as long as the receiver's budget for data nobody has asked for yet
//! lasts; a long one, or one beyond the budget, sends an offer, and the receiver pulls the data when it has a place for
//! it ("rendezvous"). So a missing receive stalls nobody else's traffic. Matching is in order: the oldest receive that
//! fits a message, the oldest message that fits a receive.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{LocalRange, OperationId};
use crate::ids::NodeId;
use crate::memory::LeaseId;

/// Longest message that may travel with its data (ours).
pub const EAGER_BYTES_MAX: u64 = 4096;
/// Data that one sender may have waiting unasked-for at one receiver (ours). A message counts at least
/// [`EAGER_COST_MIN`].
pub const EAGER_BUDGET_BYTES: u64 = 64 << 10;
/// What even an empty message costs of the budget (ours).
pub const EAGER_COST_MIN: u64 = 64;

/// What an eager message costs of the budget.
#[must_use]
pub const fn eager_cost(length: u64) -> u64 {
    if length < EAGER_COST_MIN { EAGER_COST_MIN } else { length }
}

/// A receive that waits for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The caller's name for it.
    pub operation: OperationId,
    /// From whom; `None` takes any.
    pub source: Option<NodeId>,
    /// The tag.
    pub tag: u64,
    /// Bits of the tag that do not matter.
    pub ignore: u64,
    /// Where to.
    pub into: LocalRange,
}

impl Posted {
    /// Whether a message fits this receive.
    #[must_use]
    pub fn takes(&self, source: NodeId, tag: u64) -> bool {
        self.source.is_none_or(|wanted| wanted == source) && (self.tag ^ tag) & !self.ignore == 0
    }
}

/// Where a message's data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// In a received frame.
    Eager {
        /// The frame.
        lease: LeaseId,
        /// First byte in the frame.
        frame_offset: u32,
    },
    /// Still at the sender.
    Offered,
}

/// A message that has come before its receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// From whom.
    pub source: NodeId,
    /// Its tag.
    pub tag: u64,
    /// Bytes.
    pub length: u64,
    /// Number of its operation in the sender's request stream.
    pub number: u32,
    /// Where the data is.
    pub content: Content,
}

/// Receives without a message, and messages without a receive.
#[derive(Debug, Default)]
pub struct Matching {
    /// In the order in which they were posted.
    pub posted: VecDeque<Posted>,
    /// In the order in which they came.
    unexpected: VecDeque<Unexpected>,
    /// By sender.
    waiting: Vec<WaitingFrom>,
}

/// What one sender has waiting for receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitingFrom {
    /// What its eager messages cost of the budget.
    pub eager_cost: u64,
    /// Messages on offer.
    pub offers: usize,
}

impl Matching {
    /// Whether nobody waits for a message, and no message for anybody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.posted.is_empty() && self.unexpected.is_empty()
    }

    // W-24
    /// The oldest receive that takes this message.
    pub fn take_posted(&mut self, source: NodeId, tag: u64) -> Option<Posted> {
        let index = self.posted.iter().position(|posted| posted.takes(source, tag))?;
        self.posted.remove(index)
    }

    /// The oldest message that this receive takes.
    pub fn take_unexpected(&mut self, posted: &Posted) -> Option<Unexpected> {
        let index = self.unexpected.iter().position(|message| posted.takes(message.source, message.tag))?;
        let message = self.unexpected.remove(index)?;
        let waiting = &mut self.waiting[message.source.index()];
        match message.content {
            Content::Eager { .. } => waiting.eager_cost -= eager_cost(message.length),
            Content::Offered => waiting.offers -= 1,
        }
        Some(message)
    }

    /// A message came before its receive.
    pub fn push_unexpected(&mut self, message: Unexpected) {
        let index = message.source.index();
        if self.waiting.len() <= index {
            self.waiting.resize(index + 1, WaitingFrom::default());
        }
        match message.content {
            Content::Eager { .. } => self.waiting[index].eager_cost += eager_cost(message.length),
            Content::Offered => self.waiting[index].offers += 1,
        }
        self.unexpected.push_back(message);
    }

    /// The offers of a sender are worth nothing any more.
    pub fn forget_offers(&mut self, source: NodeId) {
        self.unexpected.retain(|message| message.source != source || message.content != Content::Offered);
        if let Some(waiting) = self.waiting.get_mut(source.index()) {
            waiting.offers = 0;
        }
    }

    /// What a sender has waiting for receives.
    #[must_use]
    #[inline]
    pub fn waiting_from(&self, source: NodeId) -> WaitingFrom {
        self.waiting.get(source.index()).copied().unwrap_or_default()
    }
}
